"""The canonical form of a core: equal for two cores that no input can tell apart.

`pickle` distinguishes more than a core can: whether two equal tuples are one object, and in which
order elements were added to a set. Both depend on the history of a core. A canonical form is a
nested tuple that keeps only what can matter:

- a set is a set: a core that depends on the order of iteration over a set is not deterministic,
  because names are hashed differently in every process;
- an immutable value is its content;
- a mutable object is its content at its first occurrence, and a back reference at every other:
  whether two registries share an entry does matter;
- a dict keeps its order: cores iterate over dicts, and send frames in that order. Where a family
  knows that the order does not matter, it makes the dict an `AnyOrder`.
"""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Hashable
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import msgspec

ATOMS = (int, str, bytes, float, type(None))
CODE = (FunctionType, BuiltinFunctionType, type)


class AnyOrder(dict[Any, Any]):
    """A dict whose order no later step depends on."""


def canonical_form(core: Any) -> Hashable:
    """Return the canonical form of a core, or of any other object."""
    return _form(core, {})


def _form(thing: Any, met: dict[int, int]) -> Hashable:
    kind = type(thing)
    if kind in ATOMS or isinstance(thing, ATOMS):
        return (kind, thing) if kind is bool else thing
    if kind is tuple:
        return tuple([_form(item, met) for item in thing])
    if kind is frozenset:
        return (kind, frozenset([_form(item, met) for item in thing]))
    if isinstance(thing, CODE):
        return (kind, thing.__module__, thing.__qualname__)
    if kind is MethodType:
        return (kind, _form(thing.__self__, met), thing.__name__)
    if isinstance(thing, msgspec.Struct) and kind.__struct_config__.frozen:
        return (kind, *[_form(getattr(thing, f), met) for f in kind.__struct_fields__])
    if id(thing) in met:
        return ("met", met[id(thing)])
    met[id(thing)] = len(met)
    return (kind, _content(thing, met))


def _content(thing: Any, met: dict[int, int]) -> Hashable:
    """Return the form of the content of a mutable object."""
    if isinstance(thing, AnyOrder):
        return frozenset([(_form(key, met), _form(value, met)) for key, value in thing.items()])
    if isinstance(thing, dict):
        return tuple([(_form(key, met), _form(value, met)) for key, value in thing.items()])
    if isinstance(thing, list | deque):
        return tuple([_form(item, met) for item in thing])
    if isinstance(thing, set):
        return frozenset([_form(item, met) for item in thing])
    if isinstance(thing, msgspec.Struct):
        return tuple([_form(getattr(thing, field), met) for field in thing.__struct_fields__])
    kind, fields = type(thing), getattr(thing, "__dict__", None)
    is_plain = all(getattr(kind, n) is getattr(object, n) for n in ("__reduce__", "__reduce_ex__"))
    slots = [slot for base in kind.__mro__ for slot in getattr(base, "__slots__", ())]
    if fields is None or slots or not is_plain:  # its class defines its own pickling
        return pickle.dumps(thing)
    return tuple([(name, _form(fields[name], met)) for name in sorted(fields)])
