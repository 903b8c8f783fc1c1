"""Play random worlds with both engines of the contact world: every log must be the same.

`python benchmarks/fuzz_twin.py [--worlds 2000] [--start 1] [--size 0.2]`; prints one JSON line, and
exits with 1 if any world differs. Each world draws every option that the twin has.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path


def main() -> int:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from tests.sim.contacts.engine_worlds import compare

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=2000)
    parser.add_argument("--start", type=int, default=1)
    parser.add_argument("--size", type=float, default=0.2)
    args = parser.parse_args()
    started_s = time.process_time()
    rows, refused, different = 0, Counter[str](), {}
    for seed in range(args.start, args.start + args.worlds):
        found = compare(seed, size=args.size)
        rows += found.rows
        if found.refused:
            refused[found.refused] += 1
        if found.difference:
            different[seed] = found.difference
    about = {"worlds": args.worlds, "start": args.start, "size": args.size, "rows": rows}
    cpu_s = round(time.process_time() - started_s, 1)
    print(
        json.dumps(
            {
                "bench": "contacts_world/twin_against_cores",
                **about,
                "refused": refused,
                "different": different,
                "cpu_s": cpu_s,
            }
        )
    )
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
