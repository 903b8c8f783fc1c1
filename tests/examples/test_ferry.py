"""The example of the ferry runs, and the logs of islands and ferry are valid."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from beforehand.verify.verdict import verify_events

EXAMPLE = Path(__file__).parents[2] / "examples" / "ferry.py"


def sail(folder, **environment):
    done = subprocess.run(
        [sys.executable, EXAMPLE, folder],
        capture_output=True,
        text=True,
        timeout=150,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    where, *told = done.stdout.splitlines()
    assert len(told) == 3, done.stdout
    (run,) = verify_events(folder / "logs").runs
    assert (run.state, run.reason) == ("valid", "")
    assert (run.broadcasts, run.deliveries) == (2, 6)
    return where.rpartition(" ")[2]


def test_a_ferry_carries_broadcasts_between_islands_that_are_never_linked(tmp_path):
    if sail(tmp_path) == "loopback":
        pytest.skip("no namespaces here: it was shown on loopback, with a carrier that is stopped")


def test_without_network_namespaces_the_example_runs_on_loopback(tmp_path):
    assert sail(tmp_path, PATH="") == "loopback"
