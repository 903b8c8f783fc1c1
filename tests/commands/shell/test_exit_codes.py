"""Exit codes of commands that fail for a reason other than their input or verdict."""

from __future__ import annotations

import errno
import json
import os
import shlex
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

from beforehand.cli import main
from beforehand.commands import doctor
from beforehand.commands.shell.dispatch import COMMANDS
from beforehand.errors import BeforehandError, LocalError, RemoteError
from tests.commands.zoo import CONTACTS

CLI = [sys.executable, "-m", "beforehand.cli"]


@pytest.fixture
def contacts(tmp_path):
    path = tmp_path / "contacts.txt"
    path.write_text(CONTACTS)
    return path


@pytest.fixture
def raises(monkeypatch):
    """Make the command `doctor` raise this error."""

    def prepare(error):
        def run(_):
            raise error

        monkeypatch.setattr(doctor, "run", run)

    return prepare


def test_an_internal_error_has_its_own_exit_code_and_a_line_to_report(raises, capsys):
    raises(ZeroDivisionError("by nothing\nat all"))
    assert main(["doctor"]) == 4
    told = capsys.readouterr().err
    assert "internal error" in told
    assert "ZeroDivisionError: by nothing" in told
    assert "dispatch.py:" in told
    assert "Traceback" not in told


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BeforehandError("the stream failed"), 2),
        (LocalError("a core was misused"), 4),
        (RemoteError("a peer broke the protocol"), 4),
    ],
)
def test_an_error_never_has_the_code_of_a_violation(raises, capsys, error, code):
    raises(error)
    assert main(["doctor"]) == code
    assert error.problem in capsys.readouterr().err


@pytest.mark.parametrize("how", ["-v before", "-v after", "environment"])
def test_the_traceback_of_a_crash_is_shown_on_request(raises, capsys, monkeypatch, how):
    raises(AssertionError("a broken invariant"))
    arguments = {"-v before": ["-v", "doctor"], "-v after": ["doctor", "-v"]}.get(how, ["doctor"])
    if how == "environment":
        monkeypatch.setenv("BEFOREHAND_TRACEBACK", "1")
    assert main(arguments) == 4
    told = capsys.readouterr().err
    assert told.index("please report") < told.index("Traceback")


def test_ctrl_c_gives_130(raises, capsys):
    raises(KeyboardInterrupt())
    assert main(["doctor"]) == 130
    assert capsys.readouterr().err == "interrupted\n"


@pytest.mark.parametrize(
    ("error", "fragment"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "x.txt"), "at x.txt"),
        (PermissionError(errno.EACCES, "Permission denied", "x.txt"), "Permission denied"),
        (IsADirectoryError(errno.EISDIR, "Is a directory", "x"), "Is a directory"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"), "invalid start byte"),
        (MemoryError(), "not enough memory"),
        (ModuleNotFoundError("no", name="pyspark"), "not installed: pyspark"),
    ],
)
def test_errors_of_the_machine_are_not_reported_as_internal_errors(raises, capsys, error, fragment):
    raises(error)
    assert main(["doctor"]) == 2
    told = capsys.readouterr().err
    assert told.startswith("error: ")
    assert fragment in told


@pytest.mark.skipif(sys.platform != "linux", reason="there is no full device")
@pytest.mark.parametrize("command", ["doctor", "--help"])
def test_a_full_disk_behind_stdout_is_reported(command):
    with open("/dev/full", "w") as full:
        done = subprocess.run([*CLI, command], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("error: No space left on device")
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


@pytest.mark.parametrize(
    ("command", "streams", "code"),
    [
        ("contacts FILE", "2>/dev/full", 0),
        ("contacts FILE", "2>&-", 0),
        ("verify none", "2>/dev/full", 2),
        ("verify none", ">/dev/full 2>/dev/full", 2),
        ("contacts FILE", ">&-", 2),
        ("contacts -", "<&-", 2),
        ("verify -", "<&- 2>&-", 2),
    ],
)
def test_streams_that_are_full_or_closed_never_give_the_code_of_a_violation(
    contacts, command, streams, code
):
    words = [str(contacts) if word == "FILE" else word for word in command.split()]
    line = f"{shlex.join([*CLI, *words])} {streams}"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True)
    assert done.returncode == code
    assert "Traceback" not in done.stderr


def test_a_closed_pipe_ends_a_command_silently(contacts):
    for arguments in (["simulate", str(contacts)], ["--help"], ["doctor", "--json"]):
        reader, writer = os.pipe()
        os.close(reader)
        try:
            done = subprocess.run(
                [*CLI, *arguments], stdout=writer, stderr=subprocess.PIPE, text=True
            )
        finally:
            os.close(writer)
        assert done.returncode == 141, done.stderr
        assert "Traceback" not in done.stderr
        assert "Exception" not in done.stderr


def test_a_full_disk_leaves_no_partial_event_log(contacts, tmp_path, capsys, monkeypatch):
    write = pq.ParquetWriter.write_table

    def write_half(*arguments):
        write(*arguments)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(pq.ParquetWriter, "write_table", write_half)
    events = tmp_path / "events.parquet"
    assert main(["simulate", str(contacts), "--events", str(events)]) == 2
    assert "cannot write it: No space left on device" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["contacts.txt"]


def test_quiet_leaves_results_and_errors(contacts, tmp_path, capsys):
    for arguments in (["-q", "simulate", str(contacts)], ["simulate", str(contacts), "--quiet"]):
        assert main(arguments) == 0
        shown = capsys.readouterr()
        assert "deliveries" in shown.out
        assert shown.err == ""
    assert main(["-q", "verify", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err.startswith("error: ")
    assert main(["simulate", str(contacts)]) == 0
    assert "transfer model" in capsys.readouterr().err


def test_a_baseline_that_promised_no_order_is_valid_for_verify_too(tmp_path, capsys):
    from beforehand.mobility.formats.contacts_list import write_contacts
    from beforehand.mobility.generators import crowd

    meetings, events = tmp_path / "meetings.txt", tmp_path / "events.parquet"
    write_contacts(crowd.generate(1, nodes_mean=60, hours=0.5), meetings)
    command = ["simulate", str(meetings), "--protocol", "none", "--events", str(events), "--json"]
    assert main(command) == 0
    late = json.loads(capsys.readouterr().out)["violations"]["late"]
    assert late > 20
    assert main(["verify", str(events)]) == 0
    shown = capsys.readouterr().out
    assert f"{late:,} late, but no order was promised" in shown
    assert main(["verify", str(events), "--promise", "causal", "--explain"]) == 1
    assert f"{late - 20:,} more violations not shown" in capsys.readouterr().err
    assert main(["verify", str(events), "--json"]) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert (run["promise"], run["promise_from"]) == ("none", "log")


def test_delivery_ratio_and_reach_without_messages_are_dashes(tmp_path, capsys):
    path = tmp_path / "short.txt"
    path.write_text("a b 0 5\n")  # over before any node broadcasts
    assert main(["simulate", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    for name in ("delivery ratio", "reach"):
        (line,) = [line for line in lines if f" {name} " in line]
        assert "–" in line
        assert "%" not in line
    assert not any("0us" in line for line in lines)
    assert main(["simulate", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["delivery_ratio"], found["reach"]) == (None, None)


def test_reach_stands_beside_the_delivery_ratio(contacts, capsys):
    assert main(["simulate", str(contacts), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["delivery_ratio"] == 1.0
    assert found["reach"] == found["receptions"] / found["reachable"] < 1


def test_every_command_takes_quiet_and_verbose(capsys):
    for command in COMMANDS:
        name = command.__name__.rpartition(".")[2]
        assert main([name, "-q", "-v", "--no-such-option-anywhere"]) == 2
        assert "-q" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("protocol", "kind", "code"),
    [("causal", "late", 1), ("none", "late", 0), ("none", "twice", 1), ("none", "unknown", 1)],
)
def test_simulate_and_verify_hold_a_protocol_to_the_same_promise(
    contacts, monkeypatch, protocol, kind, code
):
    """`simulate --protocol none` ended with 0 also if a message was delivered twice."""
    counts = {"late": 0, "twice": 0, "unknown": 0} | {kind: 1}
    # Of the cores and of the twin: which of them plays depends on what is compiled here.
    for counted in ("engines.count_violations", "running.RunningFigures.violations"):
        monkeypatch.setattr(f"beforehand.sim.contacts.{counted}", lambda _: counts)
    assert main(["simulate", str(contacts), "--protocol", protocol]) == code
