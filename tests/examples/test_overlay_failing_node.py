"""The example of an overlay runs, and the logs of its members are valid."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from beforehand.verify.verdict import verify_events

EXAMPLE = Path(__file__).parents[2] / "examples" / "overlay_failing_node.py"


def test_the_overlay_continues_without_a_killed_node_which_catches_up(tmp_path):
    command = [sys.executable, str(EXAMPLE), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 3
    (run,) = verify_events(tmp_path / "logs").runs
    assert (run.state, run.reason) == ("valid", "")
    assert (run.broadcasts, run.deliveries) == (4, 16)
