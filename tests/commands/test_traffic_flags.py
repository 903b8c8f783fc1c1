"""`simulate` takes the laws of traffic that a scenario has."""

import itertools
import json

import pyarrow.parquet as pq
import pytest

from beforehand.cli import main

MET = "a,b,start,end\na,b,0,300\nb,c,50,300\nc,d,60,300\n"


@pytest.fixture
def simulate(tmp_path, capsys):
    """Return a function that simulates and returns the exit code, the figures and the errors."""
    path = tmp_path / "met.csv"
    path.write_text(MET)

    def call(*flags):
        code = main(["simulate", str(path), "--engine", "cores", "--json", *map(str, flags)])
        shown = capsys.readouterr()
        return code, json.loads(shown.out or "{}"), shown.err

    return call


def times_of(path, node):
    rows = pq.read_table(path).to_pylist()
    return [r["t_us"] for r in rows if r["kind"] == "broadcast" and r["node"] == node]


def test_times_between_broadcasts_are_drawn_by_a_law(simulate, tmp_path):
    gaps = {}
    for law in ("periodic", "poisson", "uniform"):
        events = tmp_path / f"{law}.parquet"
        assert simulate("--law", law, "--period", "20s", "--events", events)[0] == 0
        times = times_of(events, 0)
        gaps[law] = {b - a for a, b in itertools.pairwise(times)}
    assert gaps["periodic"] == {20_000_000}
    assert min(len(gaps["poisson"]), len(gaps["uniform"])) > 3
    assert max(gaps["uniform"]) < 40_000_000


def test_only_the_named_sources_or_a_share_of_the_nodes_broadcast(simulate, tmp_path):
    events = tmp_path / "events.parquet"
    assert simulate("--sources", "a,d", "--events", events)[0] == 0
    assert [bool(times_of(events, node)) for node in range(4)] == [True, False, False, True]
    assert simulate("--sources", "50%", "--events", events)[0] == 0
    assert sum(bool(times_of(events, node)) for node in range(4)) == 2


def test_each_node_has_a_phase_of_its_own(simulate, tmp_path):
    events = tmp_path / "events.parquet"
    assert simulate("--phase", "own", "--events", events)[0] == 0
    assert len({times_of(events, node)[0] for node in range(4)}) == 4
    assert simulate("--phase", "same", "--events", events)[0] == 0
    assert len({times_of(events, node)[0] for node in range(4)}) == 1


def test_payloads_of_other_sizes_change_the_bytes_on_the_links(simulate):
    fixed, drawn = (simulate("--payload-law", law)[1]["bytes"] for law in ("fixed", "exponential"))
    assert fixed != drawn > 0


def test_the_messages_of_a_file_are_broadcast(simulate, tmp_path):
    messages, events = tmp_path / "messages.csv", tmp_path / "events.parquet"
    messages.write_text("time,source,size\n10,a,200\n60,c,100\n")
    code, found, _ = simulate("--messages", messages, "--events", events)
    assert (code, found["broadcasts"]) == (0, 2)
    assert [times_of(events, node) for node in (0, 2)] == [[10_000_000], [60_000_000]]


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (["--law", "file"], "traffic from no file"),
        (["--law", "poisson", "--phase", "own"], "`poisson` traffic has no phase"),
        (["--law", "often"], "no such choice: `often`"),
        (["--sources", "a,zed"], "no such node: `zed`"),
        (["--sources", "0%"], "no node would broadcast"),
        (["--messages", "x.csv", "--period", "5s"], "this does not go with `--messages`"),
    ],
)
def test_flags_of_traffic_that_make_no_sense_are_refused(simulate, flags, problem):
    code, _, errors = simulate(*flags)
    assert code == 2
    assert problem in errors
