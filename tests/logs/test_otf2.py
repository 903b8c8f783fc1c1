"""Traces of OTF2: messages of MPI between the locations of a program."""

from __future__ import annotations

import subprocess
import sys

import pytest

from beforehand.errors import InputError
from beforehand.verify.verdict import verify_events

otf2 = pytest.importorskip("otf2", reason="traces of OTF2 need the extra `otf2`")
SEND, RECEIVE, POST, GET = "send", "receive", "post", "get"
PING = [(0, SEND, 1), (1, RECEIVE, 0), (1, SEND, 0), (0, RECEIVE, 1)]


def write_trace(folder, steps, *, is_off=False):
    """Write a trace in which ranks take steps: rank, kind, and the rank at the other end."""
    with otf2.writer.open(str(folder), timer_resolution=1_000_000) as trace:
        define = trace.definitions
        root = define.system_tree_node("machine", "node")
        groups = [define.location_group(f"rank {n}", system_tree_parent=root) for n in range(3)]
        places = [define.location("main", group=group) for group in groups]
        mpi = otf2.enums.Paradigm.MPI
        define.group("", otf2.enums.GroupType.COMM_LOCATIONS, mpi, members=places)
        kinds = (otf2.enums.GroupType.COMM_GROUP, mpi)
        world = define.comm("world", group=define.group("", *kinds, members=[0, 1, 2]))
        region = define.region("work")
        writers = [trace.event_writer_from_location(place) for place in places]
        for at, (rank, kind, other) in enumerate(steps, 1):
            writer = writers[rank]
            if kind == SEND:
                writer.mpi_send(10 * at, other, world, 7, 64)
            elif kind == RECEIVE:
                writer.mpi_recv(10 * at, other, world, 7, 64)
            elif kind == POST:
                writer.mpi_irecv_request(10 * at, other)
            else:
                sender, request = other
                writer.mpi_irecv(10 * at, sender, world, 7, 64, request)
        writers[2].enter(900, region)
        writers[2].leave(901, region)
        if is_off:
            writers[2].measurement_on_off(902, otf2.enums.MeasurementMode.OFF)
    return folder


def test_a_trace_is_read_from_its_folder_and_from_its_anchor(tmp_path):
    folder = write_trace(tmp_path / "t", PING)
    for path in (folder, folder / "traces.otf2"):
        verdict = verify_events(path)
        (run,) = verdict.runs
        assert (run.format, run.state, run.nodes) == ("otf2", "valid", 2)
        assert (run.events, run.messages, run.skew) == (4, 2, 0)
        assert verdict.readings[0].skipped == {"events of the kind Enter": 1} | {
            "events of the kind Leave": 1
        }


def test_a_planted_violation_is_proved_by_the_locations_and_numbers_of_its_events(tmp_path):
    early = [(0, RECEIVE, 1), (0, SEND, 1), (1, RECEIVE, 0), (1, SEND, 0)]
    folder = write_trace(tmp_path / "early", early)
    (run,) = verify_events(folder).runs
    assert (run.state, run.counts) == ("invalid", {"receive before send": 1})
    (story,) = run.stories()
    places = [line.split("  ")[1].rpartition("/")[2] for line in story.splitlines()[1:]]
    assert places == ["0.evt:1", "0.evt:2", "1.evt:1", "1.evt:2"]
    folder = write_trace(tmp_path / "lost", [*PING, (2, RECEIVE, 0)])
    (run,) = verify_events(folder).runs
    assert "1 received messages have no send" in run.reason
    (run,) = verify_events(folder, is_whole=True).runs
    assert (run.state, run.counts) == ("invalid", {"receive without send": 1})


def test_receives_match_in_the_order_in_which_they_were_posted(tmp_path):
    """The request that was posted first gets the first message, though it is completed last."""
    steps = [(0, SEND, 1), (0, SEND, 1), (1, POST, 5), (1, POST, 6), (1, GET, (0, 6))]
    folder = write_trace(tmp_path / "t", [*steps, (1, GET, (0, 5))])
    (reading,) = verify_events(folder).readings
    got = {
        event.line: event.message[-2:] for event in reading.runs[0].events if event.node[5] == "1"
    }
    assert got == {3: "#2", 4: "#1"}


def test_a_pause_of_the_measurement_makes_the_verdict_unknown(tmp_path):
    (run,) = verify_events(write_trace(tmp_path / "t", PING, is_off=True)).runs
    assert run.state == "unknown"
    assert "the measurement of rank 2/main was off" in run.reason


def test_a_trace_that_is_cut_or_incomplete_is_refused(tmp_path):
    folder = write_trace(tmp_path / "t", PING)
    (folder / "traces.def").write_bytes(b"x")
    with pytest.raises(InputError, match="cannot read it") as told:
        verify_events(folder)
    assert "with `NAME.def`" in told.value.hint
    (folder / "traces.otf2").rename(tmp_path / "alone.otf2")
    with pytest.raises(InputError, match="cannot read it"):
        verify_events(tmp_path / "alone.otf2")


def test_without_the_extra_the_refusal_names_it(tmp_path):
    folder = write_trace(tmp_path / "t", PING)
    code = "import sys; sys.modules['otf2'] = None; from beforehand.cli import main;"
    code += f" sys.exit(main(['verify', {str(folder)!r}]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert "pip install 'beforehand[otf2]'" in done.stderr
