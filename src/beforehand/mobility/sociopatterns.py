"""SocioPatterns' proximity lists: `t i j` says that i and j faced each other in the slot up to t.

A contact is a run of slots without a gap. Further columns (the classes of i and j) are ignored.
"""

from __future__ import annotations

from pathlib import Path

from beforehand.errors import InputError
from beforehand.mobility import lines
from beforehand.mobility.contacts_list import split_fields
from beforehand.mobility.trace import Trace


def read_sociopatterns(path: str | Path, *, slot_s: float = 20, presence: str = "whole") -> Trace:
    """The contacts of the file; slots that were joined are counted as `merged`.

    slot_s: length of the slot that ends at t. presence: the file does not say who was there when.
    `whole`: everybody from its first to its last instant; `seen`: each node from its first to its
    last contact.
    """
    lines.check_presence(presence)
    if not slot_s > 0:
        raise InputError(f"a slot of {slot_s} s", hint="leave `slot_s` out: it is 20")
    path, slot_us = Path(path), round(slot_s * 1e6)
    problems = lines.Problems(path)
    rows: list[tuple[str, str, int, int]] = []
    for number, line in lines.numbered_lines(lines.read_text(path)):
        fields = split_fields(line)
        try:
            if len(fields) < 3:
                raise ValueError(f"{len(fields)} fields where at least 3 are needed")
            end_us = lines.seconds_us(fields[0])
            if end_us < slot_us:
                raise ValueError(f"the slot that ends at {fields[0]} starts before zero")
            rows.append((fields[1], fields[2], end_us - slot_us, end_us))
        except ValueError as error:
            problems.add(number, str(error), hint="a line is `t i j`, t in seconds")
    problems.check()
    if not rows:
        raise InputError("no contacts in the file", where=str(path), hint="is it the right file?")
    return lines.trace_of_contacts(rows, {}, presence)
