"""Read the `[[protocols]]` of a scenario: the protocols to run and their lifetimes."""

from __future__ import annotations

from collections.abc import Sequence

from beforehand.errors import InputError
from beforehand.protocols.registry import LITERAL, ORDERS, find_order, find_protocol, present_name
from beforehand.scenario import values
from beforehand.scenario.document import Document, Table
from beforehand.scenario.lines import KeyPath
from beforehand.sim.contacts.run import Spec

KEYS = ("name", "lifetimes", *LITERAL)


def read_protocols(document: Document) -> tuple[Spec, ...]:
    """Return one spec for each protocol and lifetime; the caller sets its other fields."""
    entries = document.content.get("protocols")
    if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
        hint = 'write `[[protocols]]` and below it `name = "causal"`'
        document.add(InputError("no protocols to run", hint=hint), ("protocols",))
        return ()
    specs: list[Spec] = []
    for index, entry in enumerate(entries):
        at = ("protocols", index)
        document.check_keys(entry, at, KEYS)
        name = document.value(entry, (*at, "name"), _known, None)
        if name is None:
            if "name" not in entry:
                document.add(InputError("a protocol without a `name`"), at)
            continue
        literal = {key: document.value(entry, (*at, key), values.switch, False) for key in LITERAL}
        if any(literal.values()) and find_order(name).options != LITERAL:
            document.add(InputError(f"`{name}` has no barriers to take literally"), at)
        for lifetime_us in _lifetimes(document, entry, at, name):
            spec = Spec(name, lifetime_us=lifetime_us, **literal)
            if spec in specs:
                document.add(InputError("the same protocol and lifetime a second time"), at)
            specs.append(spec)
    return tuple(specs)


def _known(value: object) -> str:
    """Parse the name of a protocol for contacts, perhaps with the size of its clock."""
    name = present_name(values.text(value))
    found = find_protocol(name)
    return name if found is not None and found.make else str(values.one_of(*ORDERS)(name))


def _lifetimes(document: Document, entry: Table, at: KeyPath, name: str) -> Sequence[int | None]:
    hint = 'write `lifetimes = ["20m", "10m"]`'
    path = (*at, "lifetimes")
    listed, protocol = entry.get("lifetimes", []), find_order(name)
    if "lifetimes" in entry and not protocol.takes_lifetime:
        document.add(InputError(f"`{name}` has no message lifetimes", hint="use `delta`"), path)
    elif not isinstance(listed, list) or ("lifetimes" in entry and not listed):
        document.add(InputError(f"not a list of lifetimes: `{listed}`", hint=hint), path)
    elif not listed and protocol.lifetimes == "must":
        document.add(InputError(f"`{name}` needs lifetimes", hint=hint), at)
    elif not listed:
        return (None,)
    else:
        found = [document.parsed(item, path, values.positive_duration) for item in listed]
        return [us for us in found if us is not None]
    return ()
