"""Read ns-2 movement scripts, and the event lists of KTH's walkers.

ns-2: `$node_(3) set X_ 10.0` places a node, and `$ns_ at 2.5 "$node_(3) setdest 40 60 1.5"` sends
it off at a speed. Other Tcl is skipped and counted. `\\$node_` within a quoted command is `$node_`:
scripts that write scripts escape it.

KTH's walkers (CRAWDAD kth/walkers) have one event per line:
`time create id x y [z]`, `time setdest id x y [z] speed [arrival]` or `time destroy id`.

A node moves straight to its destination and rests there. Without `create` it is present from time
0; without `destroy` it is present until the last event or arrival in the file.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from beforehand.errors import InputError
from beforehand.kernels.contacts import Segments
from beforehand.mobility import lines
from beforehand.mobility.positions import Positions, make_positions
from beforehand.mobility.repairs import Repairs

NODE = r"\$\w+\((?P<node>[^)]+)\)"
AT = r"(?:\$\w+\s+at\s+(?P<time>\S+)\s+\"\s*)?"
TCL = re.compile(AT + NODE + r"\s+(?P<verb>setdest|set\s+[XYZ]_)\s+(?P<rest>[^\"]*)\"?\s*$")
STATEMENT = re.compile(r'(?:[^";]|"[^"]*")+')
SPEED_MIN = 1e-300  # avoids an infinite quotient
VERBS = ("create", "setdest", "destroy")

Event = tuple[int, int, str, str, list[float]]  # time_us, line, verb, node, numbers
Leg = tuple[int, float, float, int, float, float]  # t0_us, x0, y0, t1_us, x1, y1


@dataclass
class Walk:
    """The state of one node while its events are applied: place, destination and legs so far."""

    since_us: int
    x: float = 0.0
    y: float = 0.0
    goal: tuple[int, float, float] | None = None  # arrival_us and place
    there: bool = True
    legs: list[Leg] = field(default_factory=list)

    def advance(self, time_us: int) -> None:
        """Move on to `time_us`: towards the destination, then rest."""
        if self.goal is not None:
            arrival_us, x, y = self.goal
            if time_us >= arrival_us:
                self._leg(arrival_us, x, y)
                self.goal = None
            else:
                share = (time_us - self.since_us) / (arrival_us - self.since_us)
                self._leg(time_us, self.x + (x - self.x) * share, self.y + (y - self.y) * share)
        self._leg(time_us, self.x, self.y)

    def _leg(self, time_us: int, x: float, y: float) -> None:
        if time_us > self.since_us and self.there:
            self.legs.append((self.since_us, self.x, self.y, time_us, x, y))
        self.since_us, self.x, self.y = time_us, x, y


def read_ns2(path: str | Path, *, strict: bool = False) -> Positions:
    """Return the movement in the file, in metres as given.

    strict: reject, line by line, what would otherwise be repaired.
    """
    path = Path(path)
    problems = lines.Problems(path)
    repairs = Repairs(path, strict=strict)
    events = _events(lines.read_text(path), problems, repairs)
    problems.check()
    if not events:
        raise InputError(
            "no movement in the file",
            where=str(path),
            hint="check that the path names the right file",
        )
    events.sort(key=lambda event: event[0])  # stable: events at one time keep the file's order
    walks: dict[str, Walk] = {}
    for time_us, number, verb, name, numbers in events:
        try:
            _apply(walks, time_us, verb, name, numbers)
        except ValueError as error:
            problems.add(number, str(error), hint="check the order of the events of this node")
    problems.check()
    found = _positions(walks, repairs.changes)
    if strict:
        lines_of = {event[3]: event[1] for event in reversed(events)}
        for name in sorted(set(walks) - set(found.names), key=lines_of.__getitem__):
            what = f"`{name}` is there for no time; left out"
            repairs.mend("never_present", "", lines_of[name], what)
    repairs.check()
    return found


def _events(text: str, problems: lines.Problems, repairs: Repairs) -> list[Event]:
    events: list[Event] = []
    for number, line in lines.numbered_lines(text):
        fields, line = line.split(), line.replace("\\$", "$").replace('\\"', '"')
        try:
            if len(fields) >= 3 and fields[1] in VERBS:
                numbers = [lines.metres(value) for value in fields[3:]]
                events.append((lines.seconds_us(fields[0]), number, fields[1], fields[2], numbers))
                continue
            found = [_statement(text, number) for text in _statements(line)]
            moved = [event for event in found if event is not None]
            events += moved
            if not moved:
                repairs.mend("skipped_line", "", number, f"moves no node: `{line[:60]}`; skipped")
        except ValueError as error:
            problems.add(number, str(error), hint="see the formats in docs/mobility.md")
    return events


def _statements(line: str) -> list[str]:
    """Return the Tcl commands of a line, up to a trailing comment."""
    if line.count('"') % 2:
        return [line.rstrip("; ")]
    found: list[str] = []
    for text in map(str.strip, STATEMENT.findall(line)):
        if text.startswith("#"):
            break
        found.append(text)
    return found


def _statement(text: str, number: int) -> Event | None:
    """Return the movement event of a command; None if the command moves no node."""
    match = TCL.match(text)
    if match is None:
        if "setdest" in text:
            raise ValueError(f"not a movement: `{text}`")
        return None
    name, verb = match["node"].strip(), match["verb"].split()[-1]
    if "$" in name:
        raise ValueError(f"a variable, and not the name of a node: `{name}`")
    numbers = [lines.metres(value) for value in match["rest"].split()]
    return lines.seconds_us(match["time"] or "0"), number, verb, name, numbers


def _apply(
    walks: dict[str, Walk], time_us: int, verb: str, name: str, numbers: list[float]
) -> None:
    walk = walks.get(name)
    if verb == "create":
        if walk is not None and walk.there:
            raise ValueError(f"node {name} is created twice")
        if len(numbers) not in (2, 3):
            raise ValueError("`create` needs x y, and perhaps z")
        _check_places(numbers[:2])
        legs = walk.legs if walk is not None else []
        walks[name] = Walk(time_us, numbers[0], numbers[1], legs=legs)
        return
    walk = walks.setdefault(name, Walk(0))
    if not walk.there:
        raise ValueError(f"node {name} moves after it was destroyed")
    walk.advance(time_us)
    if verb == "destroy":
        walk.there, walk.goal = False, None
    elif verb == "setdest":
        walk.goal = _goal(walk, time_us, numbers)
    elif len(numbers) != 1:
        raise ValueError(f"`set {verb}` needs one number")
    elif verb != "Z_":
        _check_places(numbers)
        setattr(walk, verb[0].lower(), numbers[0])


def _goal(walk: Walk, time_us: int, numbers: list[float]) -> tuple[int, float, float] | None:
    """Return arrival and place of `x y speed`, `x y z speed` or `x y z speed arrival`."""
    if len(numbers) not in (3, 4, 5):
        raise ValueError("`setdest` needs x y speed")
    x, y = numbers[:2]
    _check_places(numbers[:2])
    speed = numbers[2] if len(numbers) == 3 else numbers[3]
    if speed < 0:
        raise ValueError(f"a speed below zero: {speed}")
    way_m = math.hypot(x - walk.x, y - walk.y)
    if len(numbers) == 5 and numbers[4] * 1e6 > time_us:
        return _arrival_us(numbers[4] * 1e6), x, y
    if way_m == 0 or speed == 0:
        return None  # in ns-2 a speed of zero stops the node where it is
    return time_us + _arrival_us(way_m / max(speed, SPEED_MIN) * 1e6), x, y


def _check_places(numbers: list[float]) -> None:
    for number in numbers:
        lines.check_place(number, f"{number:g}")


def _arrival_us(time_us: float) -> int:
    if time_us > lines.SECONDS_MAX * 1e6:
        raise ValueError(f"it arrives after {time_us / 1e6:g} seconds")
    return round(time_us)


def _positions(walks: dict[str, Walk], changes: dict[str, int]) -> Positions:
    arrivals = [walk.goal[0] for walk in walks.values() if walk.goal is not None]
    end_us = max([walk.since_us for walk in walks.values()] + arrivals)
    for walk in walks.values():
        if walk.there:
            walk.advance(end_us)
    names = lines.natural_order(walks)
    rows = [(i, *leg) for i, name in enumerate(names) for leg in walks[name].legs]
    ints = np.array([(row[0], row[1], row[4]) for row in rows], dtype=np.int64).reshape(-1, 3)
    places = np.array([row[2:4] + row[5:7] for row in rows], dtype=np.float64).reshape(-1, 4)
    (node, t0_us, t1_us), (x0, y0, x1, y1) = ints.T, places.T
    return make_positions(names, Segments(node, t0_us, x0, y0, t1_us, x1, y1), changes)
