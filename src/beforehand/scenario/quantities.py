"""Parse parameters of readers and generators that have a unit.

A parameter name contains its unit: `slot_s`, `stay_s_mean`, `width_m`, `hours`. Under that name a
bare number is in this unit, and a text has its own unit: `slot_s = 20`, `slot_s = "20s"`. A
parameter may also be written under the name of its flag (`slot`, `layover`) or without its unit
(`width`, `stay_mean`). Such a name takes only a text: the unit of a bare number would be unknown.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from beforehand.errors import InputError
from beforehand.units import UNITS_US, parse_distance, parse_duration

FLAGS = {"slot": "slot_s", "gap": "gap_s", "layover": "layover_s_max"}
"""The reader parameters that are also flags, by flag name."""


class Unit(NamedTuple):
    """The parser of a unit, and an example for hints."""

    parse: Callable[[str], float]
    example: str


def _seconds(text: str) -> float:
    return _number(Fraction(parse_duration(text), UNITS_US["s"]))


def _hours(text: str) -> float:
    return _number(Fraction(parse_duration(text), UNITS_US["h"]))


def _metres(text: str) -> float:
    return _number(Fraction(parse_distance(text)))


def _number(value: Fraction) -> float:
    """Return a whole number as int, so that `20` and `"20s"` give the same value."""
    return int(value) if value.denominator == 1 else float(value)


UNITS = {"s": Unit(_seconds, "20s"), "m": Unit(_metres, "200m"), "hours": Unit(_hours, "2h")}


def unit_of(parameter: str) -> Unit | None:
    """Return the unit of a parameter; None if it has none or a rate, such as `entries_per_s`."""
    parts = parameter.split("_")
    if "per" in parts:
        return None
    return next((UNITS[part] for part in parts if part in UNITS), None)


def names_of(parameters: Iterable[str]) -> dict[str, str]:
    """Return the parameter of every alternative name."""
    known = list(parameters)
    bare = {
        "_".join(part for part in name.split("_") if part not in UNITS): name
        for name in known
        if unit_of(name) is not None
    }
    flags = {flag: name for flag, name in FLAGS.items() if name in known}
    return {name: own for name, own in (bare | flags).items() if name and name not in known}


def read_quantities(
    make: Callable[..., Any], options: Mapping[str, Any]
) -> tuple[dict[str, Any], list[tuple[str, InputError]]]:
    """Return the options in the units and under the names of `make`, and (key, error) pairs.

    Options that have no unit, or that `make` does not know, are unchanged.
    """
    parameters = inspect.signature(make).parameters.values()
    others = names_of(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)
    found: dict[str, Any] = {}
    problems: list[tuple[str, InputError]] = []
    for key, value in options.items():
        name = others.get(key, key)
        unit = unit_of(name) if key in others or isinstance(value, str) else None
        try:
            if name in found:
                raise InputError(f"`{name}` is there twice", hint=f"leave `{key}` out")
            found[name] = value if unit is None else _with_unit(key, value, unit)
        except InputError as error:
            problems.append((key, error))
    return found, problems


def _with_unit(key: str, value: object, unit: Unit) -> float:
    if not isinstance(value, str):
        hint = f'write it as `"{unit.example}"`'
        raise InputError(f"`{key}`: a number without a unit: `{value}`", hint=hint)
    try:
        return unit.parse(value)
    except InputError as error:
        raise InputError(f"`{key}`: {error.problem}", hint=error.hint) from error
