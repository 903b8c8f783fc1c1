"""The formats of logs: how each is recognised by its content, and the reader of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from beforehand.errors import InputError
from beforehand.logs.mapping import Fields
from beforehand.logs.model import Reading
from beforehand.logs.profile import Profile, read_with, recognises, shipped
from beforehand.logs.readers import (
    actors,
    chat,
    clocks,
    graphs,
    histories,
    maelstrom,
    mpi,
    otf2_traces,
    projections,
    spans,
    tables,
)
from beforehand.logs.source import HEAD_BYTES, HINT, Source


@dataclass(frozen=True)
class Format:
    """One format."""

    name: str
    title: str
    example: str
    """A line of such a log."""
    test: Callable[[Source], str]
    """Returns the mark by which a file is of the format; empty if it is not."""
    read: Callable[[list[Source], str], Reading]
    """Reads the files of one run. The second argument is the mark."""
    causality: str = ""


def _table(name: str, fields: Fields | None = None) -> Callable[[list[Source], str], Reading]:
    records = tables.csv_records if name == "csv" else tables.json_records

    def read(sources: list[Source], why: str) -> Reading:
        reading = Reading(name, why, [], [source.name for source in sources])
        rows = [row for source in sources for row in records(source)]
        return tables.read_records(rows, reading, fields, sources[0].name)

    return read


TABLES = (
    Format(
        "json",
        "JSON lines, or an array, of objects with named fields",
        '{"node": "a", "kind": "send", "message": "m1"}',
        lambda source: tables.is_json_lines(source) or tables.is_json_array(source),
        _table("json"),
    ),
    Format(
        "csv",
        "a table with a header: comma, tab or semicolon",
        "node,kind,message\na,broadcast,m1",
        tables.is_csv,
        _table("csv"),
    ),
)
READERS = (
    Format(
        "shiviz",
        "ShiViz, GoVector, Akka and TLC: a host and a vector clock",
        'alice {"alice":2, "bob":1}',
        clocks.is_shiviz,
        clocks.read_shiviz,
        "clocks",
    ),
    Format(
        "synoptic",
        "Synoptic: a vector of counters and an event",
        "1,0 send_m",
        clocks.is_synoptic,
        clocks.read_synoptic,
        "clocks",
    ),
    Format(
        "otlp",
        "OpenTelemetry spans as OTLP JSON, also of Tempo",
        '{"resourceSpans": [{"scopeSpans": [{"spans": []}]}]}',
        spans.is_otlp,
        spans.read_otlp,
        "parents",
    ),
    Format(
        "ssb",
        "Secure Scuttlebutt: author, sequence, previous",
        '{"key": "%a", "value": {"previous": null, "author": "@a", "sequence": 1}}',
        graphs.is_ssb,
        graphs.read_ssb,
        "parents",
    ),
    Format(
        "jaeger",
        "Jaeger traces as JSON",
        '{"data": [{"traceID": "1", "spans": [{"spanID": "2"}], "processes": {}}]}',
        spans.is_jaeger,
        spans.read_jaeger,
        "parents",
    ),
    Format(
        "zipkin-v1",
        "Zipkin v1 (refused)",
        '[{"traceId": "1", "id": "2", "binaryAnnotations": []}]',
        spans.is_zipkin1,
        spans.refuse_zipkin1,
        "parents",
    ),
    Format(
        "zipkin",
        "Zipkin v2 spans",
        '[{"traceId": "1", "id": "2", "localEndpoint": {"serviceName": "a"}}]',
        spans.is_zipkin,
        spans.read_zipkin,
        "parents",
    ),
    Format(
        "xtrace",
        "X-Trace reports",
        '[{"id": "1", "reports": [{"EventID": "2", "ParentEventID": ["1"]}]}]',
        spans.is_xtrace,
        spans.read_xtrace,
        "parents",
    ),
    Format(
        "matrix",
        "Matrix events of a room",
        '[{"event_id": "$1", "prev_events": [], "sender": "@a:b"}]',
        graphs.is_matrix,
        graphs.read_matrix,
        "parents",
    ),
    Format(
        "editing",
        "editing traces of concurrent text editing",
        '{"txns": [{"parents": [], "agent": 0}]}',
        graphs.is_editing,
        graphs.read_editing,
        "parents",
    ),
    Format(
        "automerge",
        "Automerge changes as JSON lines",
        '{"actor":"a","seq":1,"deps":{}}',
        graphs.is_automerge,
        graphs.read_automerge,
        "parents",
    ),
    Format(
        "jepsen-results",
        "results of a Jepsen checker (skipped)",
        "{:valid? true}",
        histories.is_results,
        histories.read_results,
        "none",
    ),
    Format(
        "jepsen-edn",
        "Jepsen and Maelstrom histories as EDN",
        "{:process 0, :type :invoke, :f :broadcast, :value 1}",
        histories.is_edn_history,
        histories.read_edn,
        "messages",
    ),
    Format(
        "maelstrom-node",
        "the log of a node of Maelstrom",
        '2024/11/07 16:30:52 Received {c10 n0 {"type":"broadcast","message":0}}',
        maelstrom.is_node_log,
        maelstrom.read_node_logs,
        "messages",
    ),
    Format(
        "jepsen",
        "history.txt and jepsen.log",
        "0\t:invoke\t:broadcast\t1",
        histories.is_text_history,
        histories.read_text,
        "messages",
    ),
    Format(
        "simgrid",
        "time-independent traces of SimGrid",
        "0 send 1 0 1024",
        mpi.is_simgrid,
        mpi.read_simgrid,
        "messages",
    ),
    Format(
        "otf2",
        "traces of OTF2 (Score-P): NAME.otf2 or its folder, with the extra `otf2`",
        "\x03BOTF2\0",
        otf2_traces.is_otf2,
        otf2_traces.read_anchors,
        "messages",
    ),
    Format(
        "projections",
        "logs of Projections (Charm++), one per processor",
        "PROJECTIONS-RECORD 2\n20 3 5 80894 0 0 80 6 2",
        projections.is_projections,
        projections.read_projections,
        "messages",
    ),
    Format(
        "caf",
        "the actor framework CAF at the level DEBUG",
        "0 caf_flow DEBUG actor5 139691 caf.scheduled_actor enqueue a.cpp:166 SEND ; TO = 4@n ;"
        " FROM = 5@n ; STAGES = [] ; CONTENT = (1)",
        actors.is_caf,
        actors.read_caf,
        "messages",
    ),
    Format(
        "concuerror",
        "interleavings of Concuerror",
        "Interleaving #1\n   1: P: P.1 ! go",
        actors.is_concuerror,
        actors.read_concuerror,
        "messages",
    ),
    Format(
        "irc",
        "a chat, and annotations of which line answers which",
        "[12:18] <ann> which port?",
        chat.is_irc,
        chat.read_irc,
        "parents",
    ),
)
"""Formats with readers of their own, in the order in which they are tried."""
BINARY = ("otf2",)


@cache
def all_formats() -> tuple[Format, ...]:
    """Return all formats in the order in which they are tried: tables are the last."""
    return (*READERS, *map(_declared, shipped()), *TABLES)


def _declared(profile: Profile) -> Format:
    declared = profile.declared

    def test(source: Source) -> str:
        return recognises(profile, source)

    def read(sources: list[Source], why: str) -> Reading:
        return read_with(profile, sources, why=why)

    return Format(profile.name, declared.title, declared.example, test, read, declared.causality)


def detect(source: Source) -> tuple[Format, str] | None:
    """Return the first format that recognises a file, and by which mark; None if none does."""
    is_binary = b"\0" in source.data[:HEAD_BYTES]
    for form in all_formats():
        if is_binary == (form.name in BINARY) and (why := form.test(source)):
            return form, why
    return None


def read_sources(sources: list[Source], fields: Fields | None = None) -> list[Reading]:
    """Read files. The files of one format in one folder are read together.

    fields: which field has which role, for tables; None to detect it.
    """
    groups: dict[tuple[str, str], list[Source]] = {}
    found: dict[tuple[str, str], tuple[Format, str]] = {}
    strange: list[str] = []
    for source in sources:
        detected = _detect_table(source) if fields else detect(source)
        if detected is None:
            strange.append(source.name)
            continue
        key = (source.folder, detected[0].name)
        groups.setdefault(key, []).append(source)
        found[key] = detected
    if not groups:
        tried = ", ".join(form.name for form in all_formats())
        problem = "no known format of a log" if sources[0].data.strip() else "an empty file"
        if b"\0" in sources[0].data[:HEAD_BYTES]:
            problem += ": the file is binary"
        hint = f"tried: {tried}. {HINT}"
        raise InputError(problem, where=strange[0], hint=hint)
    readings = []
    for key, files in sorted(groups.items(), key=lambda item: item[0]):
        form, why = found[key]
        files.sort(key=lambda source: source.name)
        read = _table(form.name, fields) if fields else form.read
        readings.append(read(files, why))
    for name in strange:
        readings[0].skipped[f"file `{name}`: no known format of a log"] += 1
    return readings


def _detect_table(source: Source) -> tuple[Format, str] | None:
    for form in TABLES:
        if why := form.test(source):
            return form, f"{why}; the fields were named"
    return None
