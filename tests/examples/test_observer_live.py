"""The example of the observer: it runs, shows everything that was reported, and ends by itself."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

WATCH = Path(__file__).parents[2] / "examples" / "observer_live" / "watch.py"


@pytest.mark.slow
@pytest.mark.spark
def test_three_processes_are_watched_live():
    done = subprocess.run(
        [sys.executable, str(WATCH), "--seconds", "3"], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    *lines, reports, early, by_clock = done.stdout.splitlines()
    shown = [line for line in lines if re.search(r" (asks|answers|thanks) \d about ", line)]
    assert reports.startswith(f"{len(shown)} of {len(shown)} reports shown, ")
    assert shown  # how many there are depends on the machine, and on a busy one some are late
    assert re.fullmatch(r"too early, as shown: \d+", early)
    assert re.fullmatch(r"too early, if sorted by their clocks: \d+", by_clock)
