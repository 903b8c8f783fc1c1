"""Logs as other people write them: other orders of fields, packing, line ends, and near misses.

None of them is in the corpus. Each is recognised, or refused with a reason; none is misread.
"""

from __future__ import annotations

import gzip
import io
import json
from types import SimpleNamespace

import pytest

from beforehand.errors import InputError
from beforehand.verify.verdict import verify_events

V, I, U = "valid", "invalid", "unknown"  # noqa: E741
TRACE, HASH = "0af7651916cd43dd8448eb211c80319c", "0123456789abcdef0123456789abcdef01234567"


def span(own, parent=""):
    """Keys in another order than the SDKs write them."""
    above = {"parentSpanId": parent} if parent else {}
    return {"name": "x", "spanId": own, "traceId": TRACE, "startTimeUnixNano": "5", **above}


def of_service(name, *spans):
    attributes = [{"key": "x"}, {"value": {"stringValue": name}, "key": "service.name"}]
    scopes = [{"spans": list(spans), "scope": {}}]
    return {"scopeSpans": scopes, "resource": {"attributes": attributes}}


WEB = of_service("web", span("b7ad6b7169203331"))
DB = of_service("db", span("00f067aa0ba902b7", "B7AD6B7169203331"))
JAEGER = {
    "total": 0,
    "errors": None,
    "data": [
        {
            "processes": {"p": {"serviceName": "s"}, "q": {"serviceName": "t"}},
            "spans": [
                {
                    "processID": process,
                    "spanID": own,
                    "references": [{"refType": "CHILD_OF", "spanID": cause, "traceID": "t"}],
                    "traceID": "t",
                }
                for process, own, cause in (("p", "1", "2"), ("q", "2", "1"))
            ],
            "traceID": "t",
        }
    ],
}
FRONT = {"traceId": "5a", "id": "6b", "kind": "CLIENT", "localEndpoint": {"serviceName": "front"}}
BACK = {"parentId": "6b", "id": "7c", "localEndpoint": {"serviceName": "back"}, "traceId": "5a"}
PDUS = [
    {"type": "m.room.create", "sender": "@a:h", "prev_events": [], "event_id": "$0"},
    {"prev_events": ["$0"], "event_id": "$1", "sender": "@b:g", "type": "m.room.message"},
]
ROWS = [{"node": "a", "kind": "broadcast", "message": 1}, {"node": "b", "kind": "deliver"}]
ROWS[1]["message"] = 1


def lines(*records):
    return "".join(json.dumps(record) + "\n\n" for record in records)


SHIVIZ = '\ufeffa {"a":1}\r\nstart a\r\n\r\nb {"b":1}\r\nstart b\r\n\r\nb {"b":2, "a":1}\r\nget\r\n'
BAD_SHIVIZ = 'a {"a":1}\ns\nb {"a":1,"b":1}\nr\nc {"b":1,"c":1}\nt\n'
HEADER = r"^(?<date>\d+) (?<event>.*) @(?<host>\w+) (?<clock>\{.*\})$"
CSV = (
    '\ufeff"Date Time";"Host";"Event";"Message ID"\r\n"2024-01-01T00:00:00+01:00";a;send;"m;1"\r\n'
)
CSV += '\r\n"2023-12-31T23:00:01Z";b;receive;"m;1"\r\n'
EDN = """[{:index 0, :type :invoke, :process 0, :f :broadcast, :value 1}
 {:value 1 :type :ok :f :broadcast :process 0 :index 1} ; a comment
 {:index 2 :process 1 :type :invoke :f :read :value nil}
 {:index 3 :process 1 :type :ok :f :read :value [1]}]"""
OPERATIONS = "\n".join(
    f"#jepsen.history.Op{{:index {i}, :type {t}, :process 0, :f :write, :value 3}}"
    for i, t in enumerate((":invoke", ":ok"))
)
UTF16 = "node,kind,message\na,broadcast,1\nb,deliver,1\n".encode("utf-16")
TLA = """{"N": 2}
{"node": 0, "event": ">", "pkt": {"vc": {"0": 1, "1": 0}, "snd": 0}}
{"node": 1, "event": "<", "pkt": {"vc": {"0": 1, "1": 1}, "snd": 0}}
"""
DUMP = """Dumping /tmp/kafka-logs/t-0/00000000000000000000.log
Log starting offset: 0
baseOffset: 0 lastOffset: 0 count: 1 baseSequence: 0 lastSequence: 0 producerId: 1
| offset: 0 CreateTime: 1700000000000 keySize: 1 valueSize: 1 sequence: 0 headerKeys: [] key: a
"""
CONSOLE = "NoTimestampType:-1\tPartition:0\tOffset:5\tk\tv\n"
CONSOLE += "LogAppendTime:7\tPartition:0\tOffset:6\tk\tv\n"
KCAT = '{"partition":0,"offset":1,"topic":"t","ts":1700000000000,"key":null,"payload":"x"}\n'
MAELSTROM = '2024-11-07T16:30:52Z Received {c1 n0 {"msg_id":1,"type":"broadcast","message":7}}\n'
CONCUERROR = """Options: {instant_delivery,true}
Interleaving #1
   1: P: true = erlang:register(server, P.1)
   2: P: go = server ! go
   3: P.1: receives message (go)
"""
CAF = "0 caf_flow DEBUG actor5 1 a b c.cpp:1 "
CAF += "SEND ; TO = 4@n ; FROM = 5@n ; STAGES = [] ; CONTENT = (1)\n"
IRC = "[12:18] <ann> which port?\n[12:19] * bob shrugs\n=== eve has joined #x\n[12:19] <ann> ok\n"
GIT = f"{HASH}\t{HASH[::-1]}\tAnn X\t1700000000\n{HASH[::-1]}\t\tBob\t1690000000\n"

READ = {
    "shiviz with CRLF, a mark of the byte order and blank lines": (SHIVIZ, "shiviz", V, 2, 3),
    "shiviz with a pattern of its own": (
        *(f'{HEADER}\n\n1 go @x {{"x":1}}\n2 got @y {{"y":1,"x":1}}\n', "shiviz", V, 2, 2),
    ),
    "shiviz that knows what nobody told": (BAD_SHIVIZ, "shiviz", I, 3, 3),
    "OTLP, indented": (json.dumps({"resourceSpans": [DB, WEB]}, indent=3), "otlp", V, 2, 2),
    "OTLP, one document per line": (
        *(lines({"resourceSpans": [DB]}, {"resourceSpans": [WEB]}), "otlp", V, 2, 2),
    ),
    "an answer of Jaeger with a cycle": (json.dumps(JAEGER), "jaeger", I, 2, 2),
    "traces of Zipkin": (json.dumps([[BACK, FRONT], []]), "zipkin", V, 2, 2),
    "one span of Zipkin per line": (lines(BACK, FRONT), "zipkin", V, 2, 2),
    "Matrix, an answer with `pdus`": (json.dumps({"pdus": PDUS}), "matrix", V, 2, 2),
    "Matrix, one event per line": (lines(*PDUS), "matrix", V, 2, 2),
    "Matrix with a state event without causes": (
        *(json.dumps([*PDUS, {"event_id": "$9", "sender": "@c:g"}]), "matrix", U, 2, 2),
    ),
    "Automerge as an array": (
        json.dumps([{"actor": a, "deps": {}, "seq": 1} for a in "ab"]),
        *("automerge", V, 2, 2),
    ),
    "CSV with semicolons, quotes and zones": (CSV, "csv", V, 2, 2),
    "CSV in UTF-16": (UTF16, "csv", V, 2, 2),
    "JSON lines with blank lines": (lines(*ROWS), "json", V, 2, 2),
    "JSON records below a key": (json.dumps({"events": ROWS}), "json", V, 2, 2),
    "a history as one vector": (EDN, "jepsen", V, 2, 4),
    "a history of tagged operations": (OPERATIONS, "jepsen", U, 1, 2),
    "a TLA+ trace with other keys first": (TLA, "ewd998", V, 2, 2),
    "a node log of Maelstrom with ISO times": (MAELSTROM, "maelstrom-node", U, 1, 1),
    "a console consumer without times": (CONSOLE, "kafka-console", U, 1, 2),
    "kcat with other keys first": (KCAT, "kcat", U, 1, 1),
    "a segment of a broker": (DUMP, "kafka-dump", U, 1, 1),
    "an interleaving of Concuerror": (CONCUERROR, "concuerror", V, 2, 3),
    "an actor of CAF whose message stays in flight": (CAF, "caf", U, 1, 1),
    "a chat without annotations": (IRC, "irc", U, 2, 3),
    "git with tabs": (GIT, "git", V, 2, 2),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_a_log_as_others_write_it_is_read_by_its_format(tmp_path, name):
    content, form, state, nodes, events = READ[name]
    path = tmp_path / "log"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    (run,) = verify_events(path).runs
    assert (run.format, run.state, run.nodes, run.events) == (form, state, nodes, events)


@pytest.mark.parametrize("name", list(READ)[::3])
def test_a_packed_log_and_the_standard_input_give_the_same_answer(tmp_path, monkeypatch, name):
    content, _, state, nodes, events = READ[name]
    data = content if isinstance(content, bytes) else content.encode()
    path = tmp_path / "log"
    path.write_bytes(gzip.compress(data))
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(data)))
    for place in (path, "-"):
        (run,) = verify_events(place).runs
        assert (run.state, run.nodes, run.events) == (state, nodes, events)


REFUSED = {
    "a git log for people": (f"commit {HASH}\nAuthor: A <a@x>\nDate: x\n\n  m\n", "parents"),
    "an export of Element": (json.dumps({"room": "x", "messages": PDUS[:0]}), "node"),
    "events of Matrix without ids": (lines({"sender": "@a:h", "prev_events": []}), "node"),
    "lines of a service": (lines({"ts": "2024-01-01", "level": "info", "msg": "up"}), "node"),
    "nested records, with their paths": (
        *(lines({"log": {"host": {"name": "a"}, "id": 1}}), r"log\.host\.name, log\.id"),
    ),
    "syslog": ("Jan  1 00:00:00 host sshd[1]: hello\n" * 2, "no known format"),
    "an access log": ('127.0.0.1 - - [01/Jan/2024] "GET / HTTP/1.1" 200 1\n', "no known format"),
    "metrics": ('# HELP x y\n# TYPE x counter\nx{a="b"} 1\n', "no known format"),
    "a package": (json.dumps({"name": "x", "version": "1", "dependencies": {"a": "1"}}), "node"),
    "a cut document": (json.dumps({"resourceSpans": [DB, WEB]})[:-30], "broken JSON"),
    "a cut archive": (gzip.compress(b"node,kind,message\n" * 1000)[:-20], "cannot read it"),
    "a cut archive of zstd": (b"\x28\xb5\x2f\xfd" + b"\x00" * 9, "cannot read it"),
    "a binary file": (bytes(range(256)) * 9, "the file is binary"),
    "nothing": ("\n\n", "an empty file"),
    "pairs of numbers": ("1002 1003 -\n1010 1011 -\n", "without their chat"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_files_are_refused_with_the_reason(tmp_path, name):
    content, reason = REFUSED[name]
    path = tmp_path / "log"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=reason):
        verify_events(path)


def test_planted_violations_of_actors_and_processors_are_proved_by_their_lines(tmp_path):
    early = CONCUERROR.replace("2: P: go = server ! go", "2: P.1: receives message (go)")
    early = early.replace("3: P.1: receives message (go)", "3: P: go = server ! go")
    plants = {
        "log": (early, "receive before send", [4, 5]),
        "x.0.log": (
            "PROJECTIONS-RECORD 2\n2 4 5 82 7 0 64\n1 4 5 83 7 0 64\n",
            *("receive before send", [2, 3]),
        ),
    }
    for name, (content, kind, places) in plants.items():
        path = tmp_path / name
        path.write_text(content)
        (run,) = verify_events(path).runs
        assert run.counts == {kind: 1}
        (story,) = run.stories()
        assert [line.split()[0] for line in story.splitlines()[1:]] == [
            f"{path}:{line}" for line in places
        ]


def test_the_annotations_of_a_chat_are_causes(tmp_path):
    (tmp_path / "x.raw.txt").write_text(IRC)
    (tmp_path / "x.annotation.txt").write_text("0 1 -\n1 3 -\n2 3 -\n0 0 -\n")
    verdict = verify_events(tmp_path)
    (run,) = verdict.runs
    assert (run.state, run.edges, run.messages) == (V, 2, 2)
    (reading,) = verdict.readings
    assert reading.skipped["pairs that name a notice of the server"] == 1
