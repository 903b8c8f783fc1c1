"""Ctrl-C, as a terminal sends it: to the command and to all that it started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from beforehand.commands.shell.interrupt import GOES_ON, Signals
from tests.waiting import wait_until

SCENARIO = """
[mobility]
generator = "walkers"
range = "50m"
hours = 0.1

[sweep]
seeds = 8

[[protocols]]
name = "causal"
"""
STOPPING = f"stopping; {GOES_ON}"
BOOT_SECONDS_MAX = STOP_SECONDS_MAX = 120
LONG_SECONDS = 600
"""The bound for work that does not end by itself."""


PATIENT = """
import sys
from beforehand.commands.shell import interrupt

interrupt.PATIENCE_SECONDS = 600  # a busy machine takes longer to tidy up
from beforehand.cli import main

if __name__ == "__main__":
    sys.exit(main())
"""


@contextmanager
def started(scratch: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", PATIENT, *arguments],
        env=os.environ | {"TMPDIR": str(scratch), "SPARK_LOCAL_DIRS": str(scratch)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # what a terminal does, and what this may signal as a whole
        # What runs in the background of a shell ignores Ctrl-C, and so would its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def wait_for(process: subprocess.Popen[str], what: Callable[[], object]) -> None:
    until = time.monotonic() + BOOT_SECONDS_MAX
    while not what():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.05)


def members(group: int) -> list[str]:
    """Return the processes of a session, as Linux lists them, without zombies."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, session = path.read_text().rpartition(")")[2].split()[:4]
        except (OSError, ValueError):
            continue  # it is gone
        if int(session) == group and state != "Z":
            found.append(path.parent.name)
    return found


def command_lines(group: int) -> str:
    paths = [Path("/proc", member, "cmdline") for member in members(group)]
    with suppress(OSError):  # one is gone since; the next look finds what is there
        return "\n".join(path.read_text() for path in paths)
    return ""


def interrupt(process: subprocess.Popen[str]) -> str:
    """Interrupt the process and return its stderr."""
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=STOP_SECONDS_MAX)
    return said


def check_over(process: subprocess.Popen[str]) -> None:
    """Check that no process of the session is left."""
    wait_until(lambda: members(process.pid) == [])


def check_stopped(process: subprocess.Popen[str]) -> str:
    said = interrupt(process)
    assert process.returncode == 130
    told, stopping, noise = said.partition(f"{STOPPING}\n")
    assert stopping
    # Spark may log until its log level is set.
    assert not any(word in noise for word in ("Traceback", "py4j", "KeyboardInterrupt")), noise
    check_over(process)
    return told


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes where Linux has them")
def test_ctrl_c_ends_a_run_without_a_traceback_and_the_same_command_goes_on(tmp_path):
    scenario, out = tmp_path / "small.toml", tmp_path / "out"
    scenario.write_text(SCENARIO)
    arguments = ("run", str(scenario), "--out", str(out), "--no-report")
    with started(tmp_path, *arguments) as process:
        wait_for(process, lambda: "pyspark.daemon" in command_lines(process.pid))
        told = check_stopped(process)
    assert told.startswith("positions: 8 of 8 to do\ncontacts: 8 of 8 to do\n")
    assert not list(tmp_path.glob("beforehand-*"))

    finished = {path: path.stat().st_mtime_ns for path in out.glob("data/*/*/manifest.json")}
    # Positions and contacts need no Spark here; it was stopped while events were made.
    missing = 8 - len(list(out.glob("data/events/*/manifest.json")))
    assert len(finished) >= 16
    with started(tmp_path, *arguments) as again:  # stopped while Java is on its way
        wait_for(again, lambda: "SparkSubmit" in command_lines(again.pid))
        assert check_stopped(again) == f"events: {missing} of 8 to do\n"
    assert {path: path.stat().st_mtime_ns for path in finished} == finished


SLOW_START = """
import sys, time

class Slow:  # as on a cold disk
    def find_spec(self, name, path=None, target=None):
        if name == "beforehand.commands.shell.dispatch":
            print("importing", flush=True)
            time.sleep(600)

sys.meta_path.insert(0, Slow())
sys.argv = ["beforehand", "--version"]
from beforehand.cli import main
sys.exit(main())
"""


def test_ctrl_c_while_modules_are_loaded_showed_a_traceback():
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_START],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "importing\n"
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=STOP_SECONDS_MAX)
    assert (process.returncode, said) == (130, "interrupted\n")


def test_the_ctrl_c_handler_is_installed_before_most_imports():
    script = "import sys; before = set(sys.modules); import beforehand.cli; "
    script += "print(*sorted(set(sys.modules) - before))"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    quick = {"__future__", "beforehand", "beforehand.cli", "beforehand.lazy"}
    assert set(found.stdout.split()) <= quick


def early_endings(command: list[str], arguments: list[str]) -> Iterator[tuple[float, int, str]]:
    """Interrupt a command early. Yield the delay, the exit code and stderr."""
    for milliseconds in range(0, 500, 25):
        process = subprocess.Popen(
            [*command, *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        time.sleep(milliseconds / 1000)
        process.send_signal(signal.SIGINT)
        try:
            _, said = process.communicate(timeout=STOP_SECONDS_MAX)
        finally:
            process.kill()
        yield milliseconds, process.returncode, said


@pytest.mark.parametrize("arguments", [["--version"], ["fuzz", "--seeds", "1000000"], ["doctor"]])
def test_ctrl_c_at_any_instant_of_the_first_half_second_shows_no_traceback(arguments):
    command = [sys.executable, "-m", "beforehand"]
    for milliseconds, code, said in early_endings(command, arguments):
        if code in (1, -signal.SIGINT):  # Python ended it before a line of ours ran
            assert "beforehand/commands" not in said, said
        else:
            assert code in (0, 3, 130), (milliseconds, said)  # 3: something is missing here
            # What falls into a destructor Python tells of by itself.
            assert "Traceback" not in said.partition("Exception ignored")[0], (milliseconds, said)


def test_interrupt_messages_of_libraries_during_import_are_suppressed(capsys):
    shown = sys.excepthook
    signals = Signals()
    signals.install()
    try:
        with pytest.raises(KeyboardInterrupt):
            signals._raise(signal.SIGINT, None)
        sys.excepthook(KeyboardInterrupt, signals.interrupt, None)
        assert capsys.readouterr().err == ""
        sys.excepthook(ValueError, ValueError("ours"), None)
        assert "ours" in capsys.readouterr().err
    finally:
        signals.restore()
    assert sys.excepthook is shown


LOSES = """
import argparse, sys, time
from beforehand.commands.shell import dispatch

class Deaf:
    def __del__(self):  # what is raised here, Python drops
        print("ready", flush=True)
        time.sleep(600)

def lose(_):
    try:
        Deaf()
        time.sleep(600)
    finally:
        print("tidied up", flush=True)

def swallow(_):
    try:
        print("ready", flush=True)
        time.sleep(600)
    except BaseException:
        time.sleep(600)

run = {"lose": lose, "swallow": swallow}[sys.argv[1]]
dispatch._parse = lambda _: argparse.Namespace(run=run, quiet=False, debug=False, verbose=False)
sys.exit(dispatch.dispatch(None))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("how", ["lose", "swallow"])
def test_a_command_went_on_for_hours_whose_ctrl_c_fell_where_python_drops_it(how, number):
    process = subprocess.Popen(
        [sys.executable, "-c", LOSES, how],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    try:
        printed, said = process.communicate(timeout=STOP_SECONDS_MAX)
    finally:
        process.kill()
    assert (process.returncode, said) == (128 + number, "interrupted\n")
    assert (printed == "tidied up\n") == (how == "lose")  # the other one is out of patience


STUBBORN = """
import sys, time
from beforehand.commands.shell import interrupt
from beforehand.commands.shell.interrupt import interruptible

interrupt.PATIENCE_SECONDS = float(sys.argv[1])

with interruptible():
    try:
        print("ready", flush=True)
        time.sleep(600)
    except KeyboardInterrupt:
        time.sleep(600)
"""


@pytest.mark.parametrize("times", [1, 2])
def test_a_second_ctrl_c_forces_the_end_even_if_the_first_was_swallowed(times):
    # With two signals the process would outlive the test if the second did not end it.
    patience = 0.5 if times == 1 else LONG_SECONDS
    process = subprocess.Popen(
        [sys.executable, "-c", STUBBORN, str(patience)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    assert process.stderr.readline() == f"{STOPPING}\n"
    if times == 2:
        process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=STOP_SECONDS_MAX)
    assert process.returncode == 130
    assert said == ""


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes where Linux has them")
def test_ctrl_c_ends_the_workers_of_fuzz_too(tmp_path):
    with started(tmp_path, "fuzz", "--seeds", "1000000", "--workers", "2") as process:
        # The command, what tracks its resources, and two workers.
        wait_for(process, lambda: len(members(process.pid)) == 4)
        said = interrupt(process)
        assert (process.returncode, said) == (130, "interrupted\n")
        check_over(process)


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes where Linux has them")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_kill_of_fuzz_left_its_workers_behind(tmp_path, number):
    with started(tmp_path, "fuzz", "--seeds", "1000000", "--workers", "2") as process:
        wait_for(process, lambda: len(members(process.pid)) == 4)
        process.send_signal(number)  # to itself alone, as `kill` does
        _, said = process.communicate(timeout=STOP_SECONDS_MAX)
        if number == signal.SIGTERM:
            assert (process.returncode, said) == (143, "interrupted\n")
        check_over(process)
