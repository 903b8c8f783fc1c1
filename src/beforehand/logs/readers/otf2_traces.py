"""Read traces of OTF2, the format of Score-P: messages of MPI between locations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from beforehand.errors import InputError
from beforehand.logs.model import RECEIVE, SEND, Event, Reading, Run
from beforehand.logs.source import Source

MARKS = (b"\x03BOTF2\0", b"\x03LOTF2\0")
"""How the anchor file of a trace begins: the size of its numbers, the order of their bytes."""
ANCHOR = "*.otf2"
HINT = "give `NAME.otf2`, or its folder, with `NAME.def` and the folder `NAME` beside it"
SENDS, RECEIVES = ("MpiSend", "MpiIsend"), ("MpiRecv", "MpiIrecv")
Channel = tuple[str, str, str, int]
"""Sender, receiver, communicator and tag."""


def anchor_of(path: Path) -> Path | None:
    """Return the anchor file of the trace at a path, or in the folder there; None if none is."""
    files = sorted(path.glob(ANCHOR)) if path.is_dir() else [path] if path.is_file() else []
    found = [file for file in files if _begins(file).startswith(MARKS)]
    if len(found) > 1:
        names = ", ".join(file.name for file in found)
        raise InputError(f"several traces of OTF2: {names}", where=str(path), hint="give one file")
    return found[0] if found else None


def is_otf2(source: Source) -> str:
    return "the first bytes are the mark of OTF2" if source.data.startswith(MARKS) else ""


def read_anchors(sources: list[Source], _why: str) -> Reading:
    """Return the trace of an anchor file that is on the disk, with the files beside it."""
    for source in sources[:1]:
        if anchor := anchor_of(Path(source.name)):
            return read_otf2(anchor)
    problem = "the anchor file of a trace of OTF2, without the trace"
    raise InputError(problem, where=sources[0].name, hint=HINT)


def _begins(path: Path) -> bytes:
    try:
        with path.open("rb") as opened:
            return opened.read(len(MARKS[0]))
    except OSError:
        return b""


def read_otf2(anchor: Path) -> Reading:
    """Return the sends and receives of MPI, with locations (processes or threads) as nodes.

    MPI does not let messages of one channel overtake each other: the k-th send of a sender to a
    receiver in a communicator with a tag is received by the k-th receive that was posted for it.
    The line of an event is its number at its location.
    """
    try:
        import _otf2
        import otf2
    except ImportError as error:
        hint = "pip install 'beforehand[otf2]'"
        raise InputError("a trace of OTF2", where=str(anchor), hint=hint) from error
    reading = Reading("otf2", "the anchor file begins with `OTF2`", [], [str(anchor)])
    reading.assumed.append("messages of one sender, receiver, communicator and tag do not overtake")
    reading.assumed.append("the line of an event is its number at its location")
    run = Run(anchor.stem, "messages")
    try:
        with otf2.reader.open(str(anchor)) as trace:
            clock = trace.definitions.clock_properties
            found = _Channels(anchor.with_suffix(""), clock.timer_resolution, reading, run)
            for location, event in trace.events:
                found.add(location, event)
    except (otf2.error.Error, _otf2.Error, LookupError, AttributeError, OSError) as error:
        raise InputError(f"cannot read it: {error}", where=str(anchor), hint=HINT) from error
    run.events = [*found.events()]
    if found.collectives:
        run.notes.append(
            f"collectives synchronise all ranks and are not judged: {found.collectives:,}"
        )
    reading.runs = [run]
    return reading


class _Channels:
    """Events so far, and the order of the messages in each channel."""

    def __init__(self, folder: Path, ticks_per_s: int, reading: Reading, run: Run) -> None:
        self._folder, self._ticks_per_s = folder, ticks_per_s
        self._reading, self._run = reading, run
        self._lines: Counter[int] = Counter()
        self._posted: dict[tuple[int, int], int] = {}
        """The line at which a receive was posted, by location and request."""
        self._sends: dict[Channel, list[Event]] = {}
        self._receives: dict[Channel, list[tuple[int, Event]]] = {}
        self.collectives = 0

    def add(self, location: Any, event: Any) -> None:
        """Take the next event of a location."""
        number, kind = location._ref, type(event).__name__
        self._lines[number] += 1
        line = self._lines[number]
        if kind == "MpiIrecvRequest":
            self._posted[number, event.request_id] = line
        elif kind == "MpiCollectiveEnd":
            self.collectives += 1
        elif kind == "MeasurementOnOff":
            self._run.doubts.append(f"the measurement of {_name(location)} was off for a while")
        elif kind in SENDS:
            channel = self._channel(location, event.receiver, event, is_send=True)
            self._sends.setdefault(channel, []).append(self._event(SEND, location, event))
        elif kind in RECEIVES:
            channel = self._channel(location, event.sender, event, is_send=False)
            at = self._posted.pop((number, event.request_id), line) if kind == "MpiIrecv" else line
            self._receives.setdefault(channel, []).append(
                (at, self._event(RECEIVE, location, event))
            )
        else:
            self._reading.skipped[f"events of the kind {kind}"] += 1

    def _channel(self, location: Any, rank: int, event: Any, *, is_send: bool) -> Channel:
        own, other = _name(location), _name(event.communicator.location(rank))
        ends = (own, other) if is_send else (other, own)
        return (*ends, event.communicator.name or "", event.msg_tag)

    def _event(self, kind: str, location: Any, event: Any) -> Event:
        line = self._lines[location._ref]
        found = Event(_name(location), kind, f"{self._folder}/{location._ref}.evt", line)
        found.time_ns = event.time * 10**9 // self._ticks_per_s
        found.text = f"{type(event).__name__} of {event.msg_length} bytes"
        return found

    def events(self) -> Iterator[Event]:
        """Yield all events, each with the name of its message."""
        receives = {
            channel: [event for _, event in sorted(found, key=lambda one: one[0])]
            for channel, found in self._receives.items()
        }
        for channels in (self._sends, receives):
            for (sender, receiver, group, tag), found in channels.items():
                for count, event in enumerate(found, 1):
                    place = f"{group} " if group else ""
                    event.message = f"{sender} to {receiver} {place}tag {tag} #{count}"
                    yield event


def _name(location: Any) -> str:
    return "/".join(filter(None, (location.group.name, location.name)))
