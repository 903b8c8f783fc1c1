"""Read traces of message passing: time-independent traces of SimGrid."""

from __future__ import annotations

import re
from collections import Counter

from beforehand.logs.model import Event, Reading, Run
from beforehand.logs.source import Source

LINE = re.compile(r"^p?(?P<node>\d+) (?P<kind>[A-Za-z]\w*)(?: (?P<rest>.*))?$", re.I)
WORDS = {
    *("init", "finalize", "compute", "send", "isend", "recv", "irecv", "wait", "waitall"),
    *("barrier", "bcast", "reduce", "allreduce", "alltoall", "gather", "allgather", "scatter"),
    *("comm_size", "comm_split", "comm_dup", "waitany", "test", "sleep", "alltoallv"),
    *("allgatherv", "gatherv", "scatterv", "reducescatter", "sendrecv", "scan", "exscan"),
}
SENDS, RECEIVES = ("send", "isend"), ("recv", "irecv")
POINT = (*SENDS, *RECEIVES, "init", "finalize", "compute", "wait", "waitall", "comm_size")


def is_simgrid(source: Source) -> str:
    lines = [line for line in source.head.split("\n") if line.strip() and line[0] != "#"]
    matches = [LINE.match(line.strip()) for line in lines]
    words = {match["kind"].casefold() for match in matches if match}
    is_all = bool(lines) and all(matches) and words <= WORDS
    return "lines of a rank and an action of MPI" if is_all else ""


def read_simgrid(sources: list[Source], why: str) -> Reading:
    """Return one run: the k-th send of a rank to another with a tag is its k-th receive.

    MPI does not let messages of one channel overtake each other.
    """
    reading = Reading("simgrid", why, [], [source.name for source in sources])
    name = sources[0].short if len(sources) == 1 else sources[0].folder.rpartition("/")[2]
    run = Run(name, "messages")
    counts: Counter[tuple[str, ...]] = Counter()
    collectives: Counter[str] = Counter()
    for source in sources:
        for number, line in enumerate(source.lines, 1):
            match = LINE.match(line.strip())
            if match is None:
                continue
            node, kind = match["node"], match["kind"].casefold()
            event = Event(node, "local", source.name, number, text=line.strip())
            words = (match["rest"] or "").split()
            if kind in (*SENDS, *RECEIVES) and words:
                peer, tag = words[0], words[1] if len(words) > 2 else ""
                is_send = kind in SENDS
                channel = (node, peer, tag) if is_send else (peer, node, tag)
                counts[(kind[-4:], *channel)] += 1
                event.kind = "send" if is_send else "receive"
                event.message = f"{'>'.join(channel)}#{counts[(kind[-4:], *channel)]}"
            elif kind not in POINT:
                collectives[kind] += 1
            run.events.append(event)
    reading.assumed.append("messages between two ranks with one tag do not overtake each other")
    if collectives:
        listed = ", ".join(f"{kind} {count:,}" for kind, count in sorted(collectives.items()))
        run.notes.append(f"collectives synchronise all ranks and are not judged: {listed}")
    reading.runs = [run]
    return reading
