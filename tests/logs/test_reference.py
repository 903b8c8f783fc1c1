"""Logs of 23 systems get the numbers and verdicts that were computed for them independently.

The files come from public repositories and are not part of this one. They are expected in
`../shared/data/logs`.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from beforehand.errors import InputError
from beforehand.logs.formats import READERS, detect
from beforehand.logs.profile import recognises, shipped
from beforehand.logs.source import Source, open_sources
from beforehand.mobility.read import read as read_trace
from beforehand.verify.foreign.judge import judge_reading
from beforehand.verify.verdict import verify_events

ROOT = Path(__file__).parents[3] / "shared" / "data" / "logs"
pytestmark = pytest.mark.skipif(
    not ROOT.is_dir(), reason="no real logs here: they are expected in `../shared/data/logs`"
)

# Path, verdict, nodes, events, messages, edges: sums over the runs of the file.
V, U, BAD = "valid", "unknown", "invalid"
SHIVIZ = "shiviz/DistributedClocks+shiviz"
DINV = "shiviz/ModelInference+dinv"
SYNOPTIC = "shiviz/ModelInference+synoptic"
TABLE = [
    (f"{SHIVIZ}/chord.log.gz", V, 8, 1235, 541, 1768),
    (f"{SHIVIZ}/facebook.log", V, 4, 47, 23, 66),
    (f"{SHIVIZ}/facebook-multiple.log", V, 8, 88, 43, 123),
    (f"{SHIVIZ}/multiple-comparison.log", V, 10, 40, 20, 50),
    (f"{SHIVIZ}/reliable-broadcast.log", V, 4, 116, 48, 160),
    (f"{SHIVIZ}/simple-reliable-broadcast.log", V, 3, 39, 16, 52),
    (f"{SHIVIZ}/simpledb.log", V, 5, 509, 95, 599),
    (f"{SHIVIZ}/voldemort-simple-threadnames.log.gz", V, 19, 863, 34, 878),
    (f"{SHIVIZ}/tsviz_shared_var_4_threads.log.gz", V, 4, 5000, 548, 5544),
    (f"{SHIVIZ}/RpcClientServer.log", V, 2, 10, 4, 12),
    # The reference counts the state whose host is `--` as an event of the third run.
    (f"{SHIVIZ}/ewd998.log.gz", U, 19, 990, 285, 1256),
    ("shiviz/bestchai+shiviz-logs/slack-execution1.log", V, 2, 121, 22, 141),
    ("govector/bestchai+shiviz-logs/slack-execution1", V, 2, 121, 22, 141),
    ("shiviz/bestchai+shiviz-logs/rfs-execution1.log.gz", V, 3, 8213, 1311, 9521),
    ("shiviz/Blueprint-uServices+blueprint/shiviz_all_services.log", V, 2, 107, 30, 135),
    ("govector/Blueprint-uServices+blueprint", V, 2, 107, 30, 135),
    (f"{DINV}/dinv-raft.log.gz", V, 3, 1882, 918, 2797),
    (f"{DINV}/dinv-helloMutant.log", V, 2, 6, 2, 6),
    (f"{DINV}/dinv-serialize.log", V, 1, 1, 0, 0),
    (f"{DINV}/dinv-ricartagrawala-failing.log", V, 5, 400, 119, 514),
    (f"{SYNOPTIC}/po_tcp_log.txt", V, 4, 36, 18, 50),
    (f"{SYNOPTIC}/trace_po_long.txt", V, 46, 1667, None, None),
    (f"{SYNOPTIC}/2pc_3nodes_100tx.log", U, 4, 900, 0, 0),
    ("xtrace/MPI-SWS+xtrace-shiviz/hdfs-gc.json", BAD, 1, 4, 0, 0),
    ("otlp/ymtdzzz+otel-tui/test_data.json.gz", U, 8, 547, 213, 406 + 53),
    ("otlp/grafana+tempo/trace-with-queue-database.json", V, 3, 19, 2, 18),
    # The reference counts services; here two instances of one service are two nodes.
    ("otlp/grafana+tempo/trace.json", V, 2, 6, 0, 4),
    ("otlp/grafana+tempo/tempopb-trace.json", U, 1, 1, 0, 0),
    ("otlp/open-telemetry+opentelemetry-proto/trace.json", U, 1, 1, 0, 0),
    ("otlp/jaegertracing+jaeger/link_attributes_trace.json", U, 1, 1, 0, 0),
    ("otlp/jaegertracing+jaeger-ui/otlp2jaeger-multi-in-combined.json", V, 1, 4, 0, 3),
    ("otlp/kkimsungchul+Opentelemetry-lamp-test/traces.json", V, 1, 10, 0, 8),
    ("jaeger/HiImLuxifer+UML_Generator/trace.json", V, 4, 23, 8, 20),
    ("jaeger/HiImLuxifer+UML_Generator/traccia_payment.json.gz", V, 7, 33, 12, 30),
    ("jaeger/jaegertracing+jaeger-ui/flamegraph-testTrace.json", V, 2, 4, 1, 3),
    # The reference counts one message, and the reference across services apart.
    ("jaeger/jaegertracing+jaeger-ui/tracegraph-testTrace.json", V, 2, 11, 2, 9 + 1),
    ("jaeger/jaegertracing+jaeger-ui/genaiTestTrace.json", V, 10, 57, 29, 56),
    # The reference counts two references to the id that is there twice.
    ("jaeger/jaegertracing+jaeger/ui_01.json", U, 2, 5, None, None),
    ("jaeger/uber-research+CRISP/18.json", V, 9, 9, 8, 8),
    ("jaeger/uber-research+CRISP/24.json", V, 3, 9, 8, 8),
    ("zipkin/openzipkin+zipkin/smartthings-oauth-authorization.json.gz", V, 8, 171, 35, 170),
    ("zipkin/openzipkin+zipkin/messaging-kafka.json", V, 2, 28, 3, 27),
    ("zipkin/openzipkin+zipkin/yelp.json", V, 6, 16, 7, 15),
    ("zipkin/openzipkin+zipkin/skew.json", V, 2, 4, 1, 3),
    ("zipkin/openzipkin+zipkin/envoy.json", V, 1, 1, 0, 0),
    ("zipkin/openzipkin+zipkin/messaging2.json", U, 4, 11, 1, 4),
    ("csv/IntelligentDDS+Nezha/2023-01-29-trace-08_50_trace.csv.gz", V, 25, 4890, 783, 4819),
    ("csv/IntelligentDDS+Nezha/2022-08-23-trace-17_00_trace.csv.gz", V, 10, 22969, 5525, 22467),
    ("text/logpai+loghub/HDFS_2k.log.gz", U, None, 2000, 0, 0),
    ("text/logpai+loghub/OpenStack_2k.log.gz", U, None, 2000, 0, 0),
    ("text/logpai+loghub/Zookeeper_2k.log.gz", U, None, 2000, 0, 0),
    ("jepsen/Deabus+braft_bug/history.edn.gz", U, 5, 2 * 1636, 0, 0),
    ("jepsen/Deabus+braft_bug/history.txt.gz", U, 5, 2 * 1636, 0, 0),
    # The reference counts the 12 operations of the nemesis.
    ("jepsen/jepsen-io+knossos/etcd.edn", U, 5, 1135 - 12, 0, 0),
    ("jepsen/jepsen-io+knossos/memstress3-77.edn", U, 10, 626, 0, 0),
    ("jepsen/jepsen-io+knossos/rethink-fail-smaller.edn", U, 26, 500, 0, 0),
    # The reference counts 19 processes; they are 5 sessions.
    ("jepsen/anishathalye+porcupine/etcd_000.log", U, 5, 170, 0, 0),
    ("jepsen/anishathalye+porcupine/etcd_101.log", U, 5, 154, 0, 0),
    ("jepsen/anishathalye+porcupine/c01-ok.txt", U, 1, 116, 0, 0),
    ("jepsen/anishathalye+porcupine/c10-bad.txt", U, 10, 810, 0, 0),
    ("kafka/poldam+multiconsumer/consumer.log", U, 1, 70, 0, 0),
    ("matrix/ruma+ruma/MSC4297-problem-A-pdus-v11.json", V, 3, 10, 5, 9),
    ("matrix/ruma+ruma/MSC4297-problem-A-pdus-v12.json", V, 3, 10, 5, 9),
    ("matrix/ruma+ruma/bootstrap-public-chat.json", V, 2, 8, 2, 7),
    ("matrix/ruma+ruma/origin-server-ts-tiebreak.json", U, 1, 2, 0, 0),
    ("editing/josephg+editing-traces/friendsforever.json.gz", V, 2, 26078, 2446, 28335),
    ("editing/josephg+eg-walker-reference/git-makefile-raw.json.gz", V, 299, 1612, 2859, 3365),
    ("automerge/automerge+automerge-perf/paper-first-181000.jsonl.gz", V, 3, 181000, 5, 181002),
    # The reference counts authors of the right type only.
    ("ssb/fraction+ssb-validation-dataset/data.json.gz", U, 8, 126, None, None),
    ("ssb/ssbc+ssb-fixtures/0.json", V, 1, 1, 0, 0),
    ("ssb/ssbc+ssb-fixtures/2.json", U, 1, 1, 0, 0),
    ("git/DistributedClocks+shiviz/log.tsv.gz", V, 17, 953, 224, 1094),
    ("git/jepsen-io+elle/log.tsv", V, 8, 268, 31, 280),
    ("git/jepsen-io+maelstrom/log.tsv", V, 41, 359, 129, 421),
    ("mpi/simgrid+simgrid/actions_with_isend.txt", V, 3, 24, 3, None),
    ("mpi/simgrid+simgrid/ti_traces_32_1", U, 32, 3232, 0, None),
    ("erlang/mistupv+cauder/airline", V, 3, 42, 20, 39 + 20),
    ("erlang/mistupv+cauder/purchase", V, 5, 11, 3, 6 + 3),
    # The nodes of 8 interleavings, 49 each, and 8 messages that nobody received.
    ("erlang/parapluu+Concuerror", V, 8 * 49, 4000, 832, None),
    # Messages that the logs do not create were received, too; a broadcast is as many sends.
    ("mpi/hpcgroup+pipit", U, 2, None, 285, None),
    ("actor/CppPhil+caf_shiviz_trial", U, 7, 20, 10, None),
    # The reference counts two pairs that name a notice of the server, which is no event.
    ("chat/jkkummerfeld+irc-disentanglement", U, 76, 1077, 129, 189 - 2),
    ("tla/tlaplus+Examples/EWD998ChanTrace.ndjson", V, 5, 654, 227, 876),
    ("pobserve/p-org+P/lock_server_log_10000_1_happy.txt.gz", V, 1, 20000, 10000, None),
    ("pobserve/p-org+P/test_case_4_log_10000_50_happy_unsorted.txt.gz", U, 50, 10000, 0, 0),
    ("pobserve/p-org+P/test_case_5_log_10000_50_happy_unsorted.txt.gz", U, 50, 10000, 0, 0),
]
SKEW = {
    "otlp/ymtdzzz+otel-tui/test_data.json.gz": 30,
    "zipkin/openzipkin+zipkin/messaging-kafka.json": 3,
    "zipkin/openzipkin+zipkin/skew.json": 1,
    "zipkin/openzipkin+zipkin/smartthings-oauth-authorization.json.gz": 2,
    "csv/IntelligentDDS+Nezha/2022-08-23-trace-17_00_trace.csv.gz": 8,
    "git/jepsen-io+elle/log.tsv": 1,
    "git/jepsen-io+maelstrom/log.tsv": 1,
}


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row[0])
def test_a_log_of_another_system_gets_its_reference_numbers(row):
    path, state, *wanted = row
    verdict = verify_events(ROOT / path)
    runs = verdict.runs
    sums = [sum(values) for values in zip(*map(numbers, runs), strict=True)]
    assert verdict.state == state, [run.reason for run in runs]
    assert [s for s, w in zip(sums, wanted, strict=True) if w is not None] == [
        w for w in wanted if w is not None
    ]
    if path in SKEW:
        assert sum(run.skew for run in runs) == SKEW[path]


def numbers(run):
    return run.nodes, run.events, run.messages, run.edges


REFUSED = {
    "jaeger/kiali+kiali/responseAmbient.json": "a search result of Tempo",
    "otlp/lquerel+oltp-arrow/2_traces.json": "spans in a flat dialect",
    "otlp/sapvs+nats_otel/go-stdout-traces.json": "stdout exporter of the Go SDK",
    "shiviz/bestchai+shiviz-logs/slack-execution1.json": "two events claim counter",
    "jepsen/jepsen-io+elle/paper-example.edn": "without :process or :f",
    "tla/microsoft+CCF/election_no_rollback.ndjson": "transactions and no nodes",
    "tla/microsoft+CCF/rollback_two_transactions.ndjson": "transactions and no nodes",
    "kafka/badri-4+kafka-streaming-pipelines/consumer.log.gz": "no known format of a log",
    "kafka/fvaleri+strimzi-debugging/session-001.md": "no known format of a log",
    "yjs/y-crdt+y-crdt/b4-update.bin.gz": "no known format of a log",
    # A part of a log without the rest: the reference judges the folders.
    "chat/jkkummerfeld+irc-disentanglement/2004-11-15_03.annotation.txt": "without their chat",
    "mpi/hpcgroup+pipit/pingpong.prj.sts": "a description without its logs",
}


@pytest.mark.parametrize("path", REFUSED)
def test_a_log_without_causality_to_read_is_refused_by_name(path):
    with pytest.raises(InputError, match=REFUSED[path]):
        verify_events(ROOT / path)


MAELSTROM = {
    "SuchitraShankar07+flyio-solns/20241107T163051.284+0530": (V, 98, 392, {}, "2,450 messages"),
    "imperfect-fourth+gossip-glomers/20250420T205750.477+0530": (
        *(V, 93, 372),
        {"twice in a read": 103},
        "1,208 messages",
    ),
    "imperfect-fourth+gossip-glomers/20250421T094338.263+0530": (
        *(V, 104, 342),
        {"gap": 69},
        "942 messages between nodes were received, of 1,011 sent",
    ),
}


@pytest.mark.parametrize("folder", MAELSTROM)
def test_a_run_of_maelstrom_is_judged_by_its_history_and_by_its_node_logs(folder):
    state, broadcasts, deliveries, counts, note = MAELSTROM[folder]
    verdict = verify_events(ROOT / "maelstrom" / folder)
    (nodes,) = [run for run in verdict.runs if run.format == "maelstrom-node"]
    histories = [run for run in verdict.runs if run.format == "jepsen"]
    assert verdict.state == state
    assert (nodes.broadcasts, nodes.deliveries, nodes.counts) == (broadcasts, deliveries, {})
    assert any(note in told for told in nodes.notes)
    assert [run.counts for run in histories] == [counts, counts]  # as EDN and as text
    promised = verify_events(ROOT / "maelstrom" / folder, has_complete_reads=True)
    assert promised.state == ("invalid" if counts else "valid")


def test_the_missed_messages_of_a_partition_agree_between_history_and_node_logs():
    folder = ROOT / "maelstrom/imperfect-fourth+gossip-glomers/20250421T094338.263+0530"
    notes = [note for run in verify_events(folder).runs for note in run.notes]
    assert sum("74 " in note for note in notes) == 3


FORMS = {
    "actor": {"caf"},
    "automerge": {"automerge"},
    "chat": {"irc"},
    "csv": {"nezha", "csv"},
    "editing": {"editing"},
    "erlang": {"cauder", "concuerror", None},
    "git": {"git", "git-plain"},
    "govector": {"shiviz"},
    "jaeger": {"jaeger", "tempo-search"},
    "jepsen": {"jepsen", "jepsen-edn", "jepsen-results"},
    "kafka": {"kafka-commits", None},
    "maelstrom": {"maelstrom-node", "jepsen", "jepsen-edn", "jepsen-results", None},
    "matrix": {"matrix"},
    "mpi": {"simgrid", "projections"},
    "otlp": {"otlp", "otel-flat", "go-otel"},
    "pobserve": {"pobserve-lock", "pobserve-keys"},
    "shiviz": {"shiviz", "shiviz-json", "synoptic", "two-phase"},
    "ssb": {"ssb"},
    "text": {"hdfs", "openstack", "zookeeper"},
    "tla": {"ewd998", "etcd-raft", "ccf"},
    "xtrace": {"xtrace"},
    "yjs": {None},
    "zipkin": {"zipkin"},
}
"""The formats of the files in each folder of the corpus; None for files that are no logs."""
SHARED = ROOT.parent


def test_each_file_is_recognised_by_the_reader_of_its_folder_and_by_no_other():
    misread = []
    for path in sorted(file for file in ROOT.rglob("*") if file.is_file()):
        if path.name == "PROVENANCE.txt":
            continue
        (source,) = open_sources(path)
        found = detect(source)
        form = found[0].name if found else None
        if form not in FORMS[path.relative_to(ROOT).parts[0]]:
            misread.append((str(path), form))
        if b"\0" in source.data[:65536]:
            continue
        marks = [form.name for form in READERS if form.test(source)]
        marks += [profile.name for profile in shipped() if recognises(profile, source)]
        if len(marks) > 1:
            misread.append((path.name, marks))
    assert misread == []


def test_a_file_of_mobility_is_no_log_and_a_log_is_no_trace():
    """A table with a header may be one of another system; then it names no node and is refused."""
    misread = []
    for path in sorted(file for file in SHARED.rglob("*") if file.is_file()):
        if path.name in ("PROVENANCE.txt", "README.md"):
            continue
        if path.is_relative_to(ROOT):
            with suppress(InputError):
                misread.append((str(path), read_trace(path)))
            continue
        for source in open_sources(path):
            found = detect(source)
            if found and found[0].name not in ("csv", "json"):
                misread.append((source.name, found[0].name))
    assert misread == []


def test_no_reader_finds_a_run_in_a_file_of_another_format():
    """Each reader is forced on a file of every other format."""
    examples = {}
    for path in sorted(file for file in ROOT.rglob("*") if file.stat().st_size < 60_000):
        if path.is_file() and path.name != "PROVENANCE.txt":
            (source,) = open_sources(path)
            if found := detect(source):
                examples.setdefault(found[0].name, source)
    assert len(examples) > 25
    misread = []
    for name, source in examples.items():
        for form in READERS:
            if form.name == name or form.test(source):
                continue
            try:
                reading = form.read([Source(source.name, source.data)], "forced")
                verdicts = [*judge_reading(reading, None)]
            except (InputError, ValueError, LookupError, TypeError, AttributeError):
                continue
            misread += [(form.name, source.name) for run in verdicts if run.state != "unknown"]
    assert misread == []
