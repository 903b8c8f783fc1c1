"""Draw frames of any type from the type's field annotations."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import inspect

from beforehand.protocols.contract.base import NAME_CHARS_MAX

NUMBERS = (0, 1, 2, 127, 128, 255, 256, 65_535, 1 << 32, (1 << 62) - 1)
NAMES = ("a", "b", "zoë", "node-17", "x" * NAME_CHARS_MAX)
ITEMS_MAX = 3


def draw_frame(rng: random.Random, kind: type[msgspec.Struct]) -> Any:
    """Return a frame of this type, with values at the limits of its fields."""
    return _draw(rng, inspect.type_info(kind))


def _draw(rng: random.Random, info: inspect.Type) -> Any:
    return DRAW[type(info)](rng, info)


def _draw_struct(rng: random.Random, info: Any) -> Any:
    return info.cls(*(_draw(rng, field.type) for field in info.fields))


def _draw_int(rng: random.Random, info: Any) -> int:
    number = rng.choice(NUMBERS)
    return number if info.ge is not None else number * rng.choice((1, 1, -1))


def _draw_name(rng: random.Random, _: Any) -> str:
    # The longest name is rare: a few of them fill a frame.
    return rng.choice(NAMES[: rng.choice((4, 4, 5))])


def _draw_row(rng: random.Random, info: Any) -> tuple[Any, ...]:
    return tuple(_draw(rng, info.item_type) for _ in range(rng.randrange(ITEMS_MAX + 1)))


DRAW: dict[type[inspect.Type], Callable[[random.Random, Any], Any]] = {
    inspect.StructType: _draw_struct,
    inspect.IntType: _draw_int,
    inspect.StrType: _draw_name,
    inspect.BoolType: lambda rng, _: rng.random() < 0.5,
    inspect.BytesType: lambda rng, _: rng.randbytes(rng.randrange(9)),
    inspect.NoneType: lambda _, __: None,
    inspect.UnionType: lambda rng, info: _draw(rng, rng.choice(info.types)),
    inspect.TupleType: lambda rng, info: tuple(_draw(rng, item) for item in info.item_types),
    inspect.VarTupleType: _draw_row,
}
