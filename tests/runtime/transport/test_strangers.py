"""Attack a live node with a few strangers of each kind.

`benchmarks/strangers_runtime.py` runs any number of them. `test_attacks.py` tests each
attack alone.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "strangers_runtime.py"


def test_a_live_node_delivers_what_was_signed_and_counts_the_rest(tmp_path):
    options = ("--connections", "20", "--frames", "20", "--warm", "10")
    done = subprocess.run(
        [sys.executable, SCRIPT, *options], capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr + done.stdout
    told = json.loads(done.stdout)
    assert (told["unsigned"], told["twice"], told["lost"]) == (0, 0, 0)
    assert told["delivered"] == told["said"] > 0
    refused = told["refusals"]
    for kind in ("wrong_key", "altered", "flood", "unwanted"):
        assert refused[f"links.{kind}"] > 0, refused
    # Damaged frames that can still be read hold forged messages too.
    assert min(refused["trust.wrong_key"], refused["trust.forged"]) >= 2, refused
    assert refused["messages.refused"] >= 8, refused
    assert told["left_open"] == {}
