"""Writers of logs as other systems write them: the text of a few events, and the line of each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from beforehand.logs.model import Event

Places = list[str]
"""For each event, the file and line that report it."""


@dataclass
class Page:
    """The text of one file, as it grows."""

    path: Path
    text: str = ""
    places: dict[int, str] = field(default_factory=dict)

    def add(self, text: str, event: int | None = None, below: int = 0) -> None:
        """Append lines. event: the event that they report, in the line so many below the first."""
        if event is not None:
            self.places[event] = f"{self.path}:{self.text.count(chr(10)) + 1 + below}"
        self.text += text + "\n"


Lines = Callable[[Sequence[Event]], Iterable[tuple[str, int | None, int]]]
"""Returns lines of text, the event that they report, and the line of it."""


@dataclass(frozen=True)
class Writer:
    """One format: how its files look, and what can go wrong in it."""

    form: str
    source: str
    lines: Lines
    kinds: tuple[str, ...]
    name: str = "log"
    is_file_per_node: bool = False
    options: dict[str, Any] = field(default_factory=dict)
    is_direct: bool = False
    """Whether a receive before its send is proved by these two alone: one order has all events."""

    def write(self, folder: Path, events: Sequence[Event]) -> tuple[Path, Places]:
        """Write the events; return what to read, and the place of each event."""
        folder.mkdir(exist_ok=True)
        nodes = sorted({event.node for event in events}) if self.is_file_per_node else [""]
        places: dict[int, str] = {}
        for node in nodes:
            page = Page(folder / (f"x.{NUMBERS[node]}.{self.name}" if node else self.name))
            mine = [event for event in events if not node or event.node == node]
            numbers = [n for n, event in enumerate(events) if not node or event.node == node]
            for text, event, below in self.lines(mine):
                page.add(text, None if event is None else numbers[event], below)
            page.path.write_text(page.text)
            places |= page.places
        read = folder if self.is_file_per_node else folder / self.name
        return read, [places[number] for number in range(len(events))]


def each(text: Callable[[Event], str], head: str = "", tail: str = "", below: int = 0) -> Lines:
    """Write each event as its own lines, between a head and a tail."""

    def lines(events: Sequence[Event]) -> Iterable[tuple[str, int | None, int]]:
        if head:
            yield head, None, 0
        for number, event in enumerate(events):
            yield text(event), number, below
        if tail:
            yield tail, None, 0

    return lines


def items(item: Callable[[Event], Any], head: str, tail: str) -> Lines:
    """Write JSON with one event per line between commas."""

    def lines(events: Sequence[Event]) -> Iterable[tuple[str, int | None, int]]:
        yield head, None, 0
        for number, event in enumerate(events):
            comma = "," if number + 1 < len(events) else ""
            yield json.dumps(item(event)) + comma, number, 0
        yield tail, None, 0

    return lines


CLOCK_KINDS = ("not monotone", "not closed", "cycle")
NUMBERS = {name: str(at) for at, name in enumerate("abcd")}


def clock_text(event: Event) -> str:
    return json.dumps(event.clock)


def numbered(event: Event) -> dict[str, int]:
    return {NUMBERS[node]: entry for node, entry in (event.clock or {}).items()}


def synoptic(event: Event) -> str:
    return ",".join(str((event.clock or {}).get(node, 0)) for node in "abcd") + " step"


def tlc(event: Event) -> str:
    clock = json.dumps(event.clock).replace('"', '\\"')
    return f'State 1:\n/\\ Host = "{event.node}"\n/\\ Clock = "{clock}"\n'


def akka(event: Event) -> str:
    said = {
        "broadcast": f"Initiating RBBroadcast(DataMessage({digits(event)})",
        "deliver": f"RBDeliver of message DataMessage({digits(event)})",
    }.get(event.kind, "works")
    return f"[INFO] [10:0] [d] [akka://x/user/{event.node}] {json.dumps(event.clock)} {said}"


CLOCKS = (
    Writer("shiviz", "clocks", each(lambda e: f"{e.node} {clock_text(e)}\nstep"), CLOCK_KINDS),
    Writer(
        *("shiviz", "clocks"),
        each(lambda e: f"step\n{e.node} {clock_text(e)}", below=1),
        CLOCK_KINDS,
        "clock-below",
    ),
    Writer(
        *("shiviz", "clocks"),
        each(
            lambda e: f"step @{e.node} {clock_text(e)}",
            head="^(?<event>\\w+) @(?<host>\\w+) (?<clock>\\{.*\\})$\n",
        ),
        CLOCK_KINDS,
        "header",
    ),
    Writer("shiviz", "clocks", each(tlc, below=2), CLOCK_KINDS, "tlc"),
    Writer("shiviz", "clocks", each(akka), CLOCK_KINDS, "akka"),
    Writer("synoptic", "clocks", each(synoptic), CLOCK_KINDS),
    Writer(
        *("ewd998", "clocks"),
        each(
            lambda e: json.dumps(
                {"event": ">", "node": int(NUMBERS[e.node]), "pkt": {"vc": numbered(e)}}
            ),
            head='{"N": 4}',
        ),
        CLOCK_KINDS,
    ),
    Writer(
        *("shiviz-json", "clocks"),
        items(
            lambda e: {"source": e.node, "clock": e.clock, "description": "x"},
            '{"nodes": [{"id": "a"}], "links": [',
            "]}",
        ),
        CLOCK_KINDS,
    ),
    Writer("json", "clocks", each(lambda e: json.dumps({"node": e.node, "clock": e.clock})),
           CLOCK_KINDS),
    Writer(
        *("csv", "clocks"),
        each(lambda e: f"{e.node};{json.dumps(e.clock).replace(' ', '')}", head="node;clock"),
        CLOCK_KINDS,
    ),
)  # fmt: skip
GRAPH_KINDS = ("cycle", "own parent")


def hexed(name: str, width: int = 16) -> str:
    return format(sum(ord(letter) * 251**at for at, letter in enumerate(name)), f"0{width}x")


def git(event: Event) -> str:
    parents = " ".join(hexed(parent, 40) for parent in event.parents)
    return f"{hexed(event.id, 40)}\t{parents}\t{event.node}\t1700000000"


def otlp(event: Event) -> dict[str, Any]:
    first = {"parentSpanId": hexed(event.parents[0])} if event.parents else {}
    links = [{"traceId": "7" * 32, "spanId": hexed(parent)} for parent in event.parents[1:]]
    own = {"traceId": "7" * 32, "spanId": hexed(event.id), **first, "links": links, "name": "x"}
    service = {"key": "service.name", "value": {"stringValue": event.node}}
    return {"resource": {"attributes": [service]}, "scopeSpans": [{"spans": [own]}]}


def jaeger(event: Event) -> dict[str, Any]:
    references = [
        {"refType": "CHILD_OF", "traceID": "5", "spanID": hexed(parent)} for parent in event.parents
    ]
    own = {"traceID": "5", "spanID": hexed(event.id), "references": references}
    return {**own, "process": {"serviceName": event.node}}


def zipkin(event: Event) -> dict[str, Any]:
    parent = {"parentId": hexed(event.parents[0])} if event.parents else {}
    endpoint = {"localEndpoint": {"serviceName": event.node}}
    return {"traceId": "5", "id": hexed(event.id), **parent, **endpoint}


def xtrace(event: Event) -> dict[str, Any]:
    return {"EventID": event.id, "ParentEventID": [*event.parents], "Host": event.node}


def ssb(event: Event) -> dict[str, Any]:
    links = {"content": {"type": "post", "branch": [f"%{parent}" for parent in event.parents]}}
    value = {"author": f"@{event.node}", "sequence": 1, "previous": None, **links}
    return {"key": f"%{event.id}", "value": value}


def nezha(event: Event) -> str:
    return f"5,{event.id},{event.parents[0] if event.parents else 'root'},{event.node},x,1"


def as_changes(events: Sequence[Event]) -> Iterable[tuple[str, int | None, int]]:
    """Write changes of Automerge: an id is the actor and the number of its change."""
    names: dict[str, tuple[str, int]] = {}
    counts: dict[str, int] = {}
    for event in sorted(events, key=lambda event: event.position or 0):
        counts[event.node] = counts.get(event.node, 0) + 1
        names[event.id] = (event.node, counts[event.node])
    for number, event in enumerate(events):
        actor, seq = names[event.id]
        deps = dict(names.get(parent, (parent, 1)) for parent in event.parents)
        yield json.dumps({"actor": actor, "seq": seq, "deps": deps}), number, 0


def as_edits(events: Sequence[Event]) -> Iterable[tuple[str, int | None, int]]:
    """Write an editing trace: an id is the index of a transaction."""
    names = {event.id: number for number, event in enumerate(events)}
    yield '{"txns": [', None, 0
    for number, event in enumerate(events):
        parents = [names.get(parent, 99) for parent in event.parents]
        comma = "," if number + 1 < len(events) else ""
        yield json.dumps({"parents": parents, "agent": event.node}) + comma, number, 0
    yield "]}", None, 0


def named(event: Event) -> dict[str, Any]:
    return {"node": event.node, "id": event.id, "parents": [*event.parents]}


PARENTS = (
    Writer("otlp", "parents", items(otlp, '{"resourceSpans": [', "]}"), GRAPH_KINDS),
    Writer("jaeger", "parents", items(jaeger, '{"data": [{"traceID": "5", "spans": [', "]}]}"),
           GRAPH_KINDS),
    Writer("zipkin", "parents", items(zipkin, "[", "]"), GRAPH_KINDS),
    Writer("xtrace", "parents", items(xtrace, '[{"id": "1", "reports": [', "]}]"), GRAPH_KINDS),
    Writer(
        *("matrix", "parents"),
        items(
            lambda e: {"event_id": e.id, "prev_events": [*e.parents], "sender": e.node}, "[", "]"
        ),
        GRAPH_KINDS,
    ),
    Writer("editing", "parents", as_edits, GRAPH_KINDS),
    Writer("automerge", "parents", as_changes, GRAPH_KINDS),
    Writer("ssb", "parents", items(ssb, "[", "]"), GRAPH_KINDS),
    Writer(
        *("nezha", "parents"),
        each(nezha, head="TraceID,SpanID,ParentID,PodName,OperationName,StartTimeUnixNano"),
        GRAPH_KINDS,
    ),
    Writer("git", "parents", each(git), GRAPH_KINDS),
    Writer("json", "parents", each(lambda e: json.dumps(named(e))), GRAPH_KINDS),
    Writer(
        *("csv", "parents"),
        each(lambda e: f"{e.node},{e.id},{' '.join(e.parents)}", head="node,id,parents"),
        GRAPH_KINDS,
    ),
)  # fmt: skip
SINGLE = ("zipkin", "nezha")
"""Formats in which an event names one parent at most."""
MESSAGE_KINDS = ("receive before send", "receive too many", "receive without send")
PAIRED_KINDS = ("receive before send", "receive without send")
"""Where the k-th receive is that of the k-th send, one receive too many has no send."""


def digits(event: Event) -> str:
    return "".join(letter for letter in event.message if letter.isdigit())


def peers(events: Sequence[Event]) -> dict[tuple[str, str], str]:
    """Return the node at the other end of each message, by its kind here."""
    ends = {(event.message, event.kind): event.node for event in events}
    other = {"send": "receive", "receive": "send"}
    return {(m, kind): ends.get((m, other[kind]), "d") for m, kind in ends if kind in other}


def as_simgrid(events: Sequence[Event]) -> Iterable[tuple[str, int | None, int]]:
    """Write actions of MPI; the tag is the number of the message."""
    ends = peers(events)
    for number, event in enumerate(events):
        rank, text = NUMBERS[event.node], "compute 5"
        if event.kind in ("send", "receive"):
            word = {"send": "send", "receive": "recv"}[event.kind]
            peer = NUMBERS[ends[event.message, event.kind]]
            text = f"{word} {peer} {digits(event)} 64"
        yield f"{rank} {text}", number, 0


def as_raft(events: Sequence[Event]) -> Iterable[tuple[str, int | None, int]]:
    word = {"send": "SendX", "receive": "ReceiveX"}
    for number, event in enumerate(events):
        inner = {"name": word.get(event.kind, "Commit"), "nid": NUMBERS[event.node]}
        inner |= {"msg": {"n": event.message}} if event.message else {}
        yield json.dumps({"tag": "trace", "event": inner}), number, 0


def as_caf(events: Sequence[Event]) -> Iterable[tuple[str, int | None, int]]:
    ends = peers(events)
    for number, event in enumerate(events):
        own, text = NUMBERS[event.node], "SPAWN"
        if event.kind in ("send", "receive"):
            is_send = event.kind == "send"
            far = NUMBERS[ends[event.message, event.kind]]
            to = f"TO = {far}@n ; " if is_send else ""
            origin = own if is_send else far
            text = f"{event.kind.upper()} ; {to}FROM = {origin}@n ; STAGES = [] ; "
            text += f"CONTENT = ({event.message})"
        yield f"0 caf_flow DEBUG actor{own} 1 a b c.cpp:1 {text}", number, 0


def as_concuerror(events: Sequence[Event]) -> Iterable[tuple[str, int | None, int]]:
    ends = peers(events)
    yield "Options: {instant_delivery,true}\nInterleaving #1", None, 0
    for number, event in enumerate(events, 1):
        own, text = f"P.{NUMBERS[event.node]}", "true = work()"
        if event.kind == "send":
            far = f"P.{NUMBERS[ends[event.message, 'send']]}"
            text = f"{event.message} = {far} ! {event.message}"
        elif event.kind == "receive":
            text = f"receives message ({event.message})"
        yield f"   {number}: {own}: {text}", number - 1, 0


def as_processor(events: Sequence[Event]) -> Iterable[tuple[str, int | None, int]]:
    """Write the log of one processor of Projections."""
    yield "PROJECTIONS-RECORD 2", None, 0
    for number, event in enumerate(events):
        text = "6 1 2 3"
        if event.kind == "send":
            text = f"1 4 5 82 {digits(event)} 0 64"
        elif event.kind == "receive":
            text = f"2 4 5 82 {digits(event)} {NUMBERS[event.text]} 64"
        yield text, number, 0


def erlang(event: Event) -> str:
    word = event.kind if event.kind in ("send", "receive") else "spawn"
    return f"{{trace_{word},{digits(event) or 99}}}."


def lock(event: Event) -> str:
    word = {"send": "REQUEST", "receive": "RESPONSE"}[event.kind]
    ahead = "2023-12-01 16:10:34.000921 [main] INFO  StructuredLogger - : "
    return f"{ahead}MessageType={word}, ClientID=0, LockID=0, TransactionID={digits(event)}"


def record(event: Event) -> dict[str, str]:
    return {"node": event.node, "kind": event.kind, "message": event.message}


WHOLE = {"is_whole": True}
MESSAGES = (
    Writer("simgrid", "messages", as_simgrid, PAIRED_KINDS, options=WHOLE),
    Writer("projections", "messages", as_processor, PAIRED_KINDS, "log", True, WHOLE),
    Writer("concuerror", "messages", as_concuerror, PAIRED_KINDS, options=WHOLE, is_direct=True),
    Writer("cauder", "messages", each(erlang), MESSAGE_KINDS, "log", True, WHOLE),
    Writer("caf", "messages", as_caf, MESSAGE_KINDS, options=WHOLE),
    Writer("etcd-raft", "messages", as_raft, MESSAGE_KINDS, options=WHOLE),
    Writer("pobserve-lock", "messages", each(lock), MESSAGE_KINDS, options=WHOLE, is_direct=True),
    Writer("json", "messages", each(lambda e: json.dumps(record(e))), MESSAGE_KINDS, options=WHOLE),
    Writer(
        *("csv", "messages"),
        each(lambda e: ",".join(record(e).values()), head="node,kind,message"),
        MESSAGE_KINDS,
        options=WHOLE,
    ),
)
BROADCAST_KINDS = ("late", "twice", "unknown")


def maelstrom(event: Event) -> str:
    source = "c1" if event.kind == "broadcast" else "n9"
    body = json.dumps({"type": "broadcast", "message": int(digits(event))})
    return f"2024/11/07 16:30:52 Received {{{source} {event.node} {body}}}"


BROADCASTS = (
    Writer("shiviz", "broadcasts", each(akka), BROADCAST_KINDS, "akka"),
    Writer("maelstrom-node", "broadcasts", each(maelstrom), ("late", "unknown"),
           "log", True, WHOLE),
    Writer("json", "broadcasts", each(lambda e: json.dumps(record(e))), BROADCAST_KINDS),
    Writer(
        *("csv", "broadcasts"),
        each(lambda e: ",".join(record(e).values()), head="node,kind,message"),
        BROADCAST_KINDS,
    ),
)  # fmt: skip
CONSUMERS = (
    Writer(
        *("kafka-console", "consumer"),
        each(lambda e: f"CreateTime:1700000000000\tPartition:0\tOffset:{digits(e)}\tk\tv"),
        ("twice",),
    ),
    Writer(
        *("kcat", "consumer"),
        each(
            lambda e: json.dumps(
                {"topic": "t", "partition": 0, "offset": int(digits(e)), "payload": "x"}
            )
        ),
        ("twice",),
    ),
)
READ_KINDS = ("late", "unknown", "gap", "own write missing", "twice in a read")


def edn(event: Event) -> str:
    f = ":broadcast" if event.kind == "broadcast" else ":read"
    kind = ":invoke" if event.kind == "broadcast" else ":ok"
    return f"{{:process {NUMBERS[event.node]}, :type {kind}, :f {f}, :value {event.text}}}"


def history(event: Event) -> str:
    f = ":broadcast" if event.kind == "broadcast" else ":read"
    kind = ":invoke" if event.kind == "broadcast" else ":ok"
    return f"{NUMBERS[event.node]}\t{kind}\t{f}\t{event.text}"


HISTORIES = (
    Writer("jepsen", "reads", each(edn), READ_KINDS, options={"has_complete_reads": True}),
    Writer(
        *("jepsen", "reads"),
        each(history),
        READ_KINDS,
        "history",
        options={"has_complete_reads": True},
    ),
)
WRITERS = (*CLOCKS, *PARENTS, *MESSAGES, *BROADCASTS, *CONSUMERS, *HISTORIES)


def write_parquet(path: Path, rows: list[dict[str, Any]]) -> Path:
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path
