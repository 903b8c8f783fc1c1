"""Find the lines of repairs that are made on arrays; only strict mode needs them.

`make_trace` and `positions_of_points` repair arrays, which is fast but loses line numbers. This
module finds the same repairs again row by row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from beforehand.mobility.positions import Positions
from beforehand.mobility.repairs import Repairs

Contact = tuple[str, str, int, int]
Stays = Mapping[str, Sequence[tuple[int, int]]]


def find_contact_repairs(
    repairs: Repairs,
    rows: Sequence[Contact],
    numbers: Sequence[int],
    stays: Stays | None = None,
) -> None:
    """Report contacts that `make_trace` would repair, with their lines; strict mode only.

    rows: names and times. numbers: the line of each row. stays: the presence intervals of every
    node, if the file gives presence.
    """
    if not repairs.strict:
        return
    kept: list[tuple[str, str, int, int, int]] = []
    for (a, b, up_us, down_us), number in zip(rows, numbers, strict=True):
        if a == b:
            repairs.mend("self_contact", "", number, f"`{a}` meets itself; left out")
        elif up_us == down_us:
            what = f"`{a}` and `{b}` meet for no time; left out"
            repairs.mend("zero_length", "", number, what)
        else:
            kept.append((min(a, b), max(a, b), up_us, down_us, number))
    _find_overlaps(repairs, kept)
    if stays is not None:
        for a, b, up_us, down_us, number in kept:
            _compare_with_stays(repairs, (a, b, up_us, down_us), number, stays)


def _find_overlaps(repairs: Repairs, kept: Sequence[tuple[str, str, int, int, int]]) -> None:
    until: dict[tuple[str, str], tuple[int, int]] = {}  # pair -> its end, and the line
    for a, b, up_us, down_us, number in sorted(kept):
        last = until.get((a, b))
        if last is not None and up_us <= last[0]:
            what = f"`{a}` and `{b}` meet while they still do, by line {last[1]}; joined"
            repairs.mend("merged", "", number, what)
        if last is None or down_us > last[0]:
            until[a, b] = down_us, number


def _compare_with_stays(repairs: Repairs, contact: Contact, number: int, stays: Stays) -> None:
    a, b, up_us, down_us = contact
    pieces = [
        (max(up_us, first[0], second[0]), min(down_us, first[1], second[1]))
        for first in stays.get(a, ())
        for second in stays.get(b, ())
    ]
    inside = [piece for piece in pieces if piece[0] < piece[1]]
    if not inside:
        what = f"`{a}` and `{b}` meet while one of them is away; left out"
        repairs.mend("outside_presence", "", number, what)
    elif inside != [(up_us, down_us)]:
        what = f"`{a}` and `{b}` meet also while one of them is away; cut to the time of both"
        repairs.mend("clipped_to_presence", "", number, what)


def find_point_repairs(
    repairs: Repairs, points: Sequence[tuple[str, int, int]], found: Positions
) -> None:
    """Report points that `positions_of_points` would repair, with their lines; strict mode only.

    points: node, time and line of each point. found: the positions built from the points.
    """
    if not repairs.strict:
        return
    first: dict[str, int] = {}
    there: dict[tuple[str, int], int] = {}
    for name, t_us, number in points:
        first.setdefault(name, number)
        if (name, t_us) in there:
            what = f"`{name}` is in two places at one time, by line {number}; that one counts"
            repairs.mend("duplicate_position", "", there[name, t_us], what)
        there[name, t_us] = number
    present = set(found.names)
    for name, number in first.items():
        if name not in present:
            repairs.mend("never_present", "", number, f"`{name}` is there for no time; left out")
