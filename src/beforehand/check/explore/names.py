"""Node ids that can be renamed: their type distinguishes them from other numbers in a core."""

from __future__ import annotations

import io
import pickle
from typing import Any

import msgspec

Renaming = tuple[int, ...]
"""The new id of every node."""


def inverse(renaming: Renaming) -> Renaming:
    """Return the renaming that undoes this one."""
    return tuple(renaming.index(node) for node in range(len(renaming)))


class NodeName(int):
    """The id of a node, distinguishable from other numbers."""


class NamedPayload(bytes):
    """A payload of the form `node.number`."""


def renamed(thing: Any, renaming: Renaming) -> Any:
    """Return an immutable value with all nodes renamed."""
    kind = type(thing)
    if kind is NodeName:
        return NodeName(renaming[thing])
    if kind is NamedPayload:
        node, rest = thing.split(b".")
        return NamedPayload(b"%d.%s" % (renaming[int(node)], rest))
    if kind in (tuple, frozenset):
        return kind([renamed(item, renaming) for item in thing])
    if isinstance(thing, msgspec.Struct):
        return kind(*[renamed(getattr(thing, field), renaming) for field in kind.__struct_fields__])
    return thing


class _Pickler(pickle.Pickler):
    def persistent_id(self, thing: Any) -> tuple[str, Any] | None:
        if type(thing) is NodeName:
            return ("node", int(thing))
        return ("words", bytes(thing)) if type(thing) is NamedPayload else None


class _Unpickler(pickle.Unpickler):
    renaming: Renaming

    def persistent_load(self, found: Any) -> Any:
        kind, value = found
        return renamed(NodeName(value) if kind == "node" else NamedPayload(value), self.renaming)


def renamed_core(core: Any, renaming: Renaming) -> Any:
    """Return a copy of a core with all nodes renamed."""
    file = io.BytesIO()
    _Pickler(file).dump(core)
    unpickler = _Unpickler(io.BytesIO(file.getvalue()))
    unpickler.renaming = renaming
    return unpickler.load()
