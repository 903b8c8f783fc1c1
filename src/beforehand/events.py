"""The format of the event log: the kinds of events, the columns, and the metadata of a file.

Simulations and real nodes write event logs, and `verify` reads them. All of them take from here
what a log contains.
"""

from __future__ import annotations

import json

import msgspec

SHARED_KINDS = ("broadcast", "receive", "deliver", "expire", "drop")
KINDS = (*SHARED_KINDS, "send", "join", "leave", "crash", "recover", "miss", "skip")
"""The kinds of events in the log of a simulation. The code of a kind is its index."""
(BROADCAST, RECEIVE, DELIVER, EXPIRE, DROP, SEND, JOIN, LEAVE, CRASH, RECOVER, MISS, SKIP) = range(
    len(KINDS)
)
NODE_KINDS = (*SHARED_KINDS, "start", "stop", "miss", "skip")
"""The kinds of events in the log of a real node. Its store keeps their codes on disk."""
START, STOP, NODE_MISS, NODE_SKIP = range(len(SHARED_KINDS), len(NODE_KINDS))
LOSSES = {"expire": EXPIRE, "drop": DROP, "miss": MISS, "skip": SKIP}
"""The code of each kind of loss that a core reports. *miss*: the node gave up a cause that no peer
holds. *skip*: its `seq` is the stamp up to which the node delivers nothing more."""
NODE_LOSSES = {"expire": EXPIRE, "drop": DROP, "miss": NODE_MISS, "skip": NODE_SKIP}
"""The same for the log of a real node."""

EVENTS_FILE = "events.parquet"
LINKS_SUFFIX = ".links.parquet"
"""The end of the name of the links that lie beside the event log of a simulation."""
PASTS_FILE, POSITIONS_FILE = "pasts.parquet", "positions.parquet"
PASTS_SUFFIX, POSITIONS_SUFFIX = f".{PASTS_FILE}", f".{POSITIONS_FILE}"
LINKS_FILE, PHASES_FILE, FRAMES_FILE = "links.parquet", "phases.parquet", "frames.parquet"
"""Beside the log of a run of cells: wires and the cells of hosts, handoff phases, radio frames."""
PLAY_FILE = "play.html"
"""The page in a results folder that plays its first run."""
BESIDE = (LINKS_SUFFIX, PASTS_SUFFIX, POSITIONS_SUFFIX)
"""The ends of the names of the tables beside the event log of a simulation: its links, the causes
that each message names, and the places of the nodes."""
PAST_COLUMNS = ("origin", "seq", "cause_origin", "cause_seq")
"""The columns of the causes: a row for each cause that a message names."""
NODE_SUFFIX = ".node.parquet"
"""The end of the names of the files that a real node writes."""

COLUMNS = {
    "t_us": "int64",
    "node": "int32",
    "kind": "int8",
    "origin": "int32",
    "seq": "int64",
    "value": "int64",
}
"""The columns of a simulation's log in memory, with their types. `kind` is a code."""
SENDER = "sender"
"""The node from which a message was received. It is null in all other rows, and where the world
does not know it. Logs of earlier versions lack the column: nothing is known of their senders."""
FILE_COLUMNS = ("run", "step", *COLUMNS, SENDER)
"""The columns of a simulation's log in a file. `step` is the position of an event in its run.
`run` and `kind` are text."""
OPTIONAL_COLUMNS = ("value", SENDER)
"""The columns that a verdict does not need."""
NODE_TEXTS = ("run", "node", "life", "kind", "origin")
NODE_COLUMNS = ("run", "node", "life", "step", "t_us", "kind", "origin", "seq", "value")
"""The columns of the log of a real node: NODE_TEXTS are text, the others are 64-bit integers.
`step` counts the events of one incarnation of the node (`life`)."""

METADATA = "beforehand"
"""The key of the file's metadata about its runs.

`{"runs": {RUN: {"promise": "none", "events": 1200, "names": ["a", "b"], "members": ["ann"]}}}`
"""


class About(msgspec.Struct, frozen=True, omit_defaults=True):
    """The metadata of one run; each field is optional."""

    events: int | None = None
    """The number of events of the run; None if the log does not say."""
    members: tuple[str, ...] = ()
    """The roster of a node's log: the members that the node knew, itself included."""
    promise: str | None = None
    """The promised order; None if the log does not say."""
    names: tuple[str, ...] = ()
    """The names of the nodes by number."""
    protocol: str | None = None
    """The protocol of a simulation. This and the next four are None if the log does not say."""
    lifetime_us: int | None = None
    range_m: float | None = None
    """The radio range, where the nodes have places."""
    stations: int | None = None
    """In a world of cells: the first so many nodes are stations, the others are hosts."""
    skew_us: int | None = None
    """The largest difference between the clocks of two nodes."""
    doubts: tuple[str, ...] = ()


class Runs(msgspec.Struct, frozen=True):
    """The metadata of a file."""

    runs: dict[str, About]


def metadata_of(run: str, about: About) -> dict[str, str]:
    """Return the metadata to write into a file of one run."""
    return {METADATA: json.dumps(msgspec.to_builtins(Runs({run: about})))}
