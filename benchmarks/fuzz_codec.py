"""Feed damaged frames and noise to the codec of every family. Claim: for every string tried, a
codec either raises RemoteError or returns a frame that encodes to the same string.

    python benchmarks/fuzz_codec.py --strings 10000000 --seed 1
    python benchmarks/fuzz_codec.py --try vcube 01ff      one string alone, as a failure names it
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import platform
import sys
import time
from functools import partial

from beforehand.check.fuzz.codec import BLOCK, Tally, fuzz, fuzz_codecs, judge

FAILURES_SHOWN = 10


def main() -> int:
    args = parser().parse_args()
    if args.alone:
        return try_one(*args.alone)
    total, cpu_s = Tally(), 0.0
    started = time.perf_counter()
    with multiprocessing.Pool(args.workers) as pool:
        blocks = range(-(-args.strings // BLOCK))
        for tally, block_s in pool.imap_unordered(partial(one_block, args.seed), blocks):
            total.add(tally)
            cpu_s += block_s
    for family, string, problem in total.failures[:FAILURES_SHOWN]:
        print(f"{problem}\n  repeat: python benchmarks/fuzz_codec.py --try {family} {string}")
    print(
        json.dumps(
            {
                "bench": "fuzz/codec",
                "seed": args.seed,
                "strings": total.tried,
                "decoded": total.decoded,
                "refused": dict(total.refused.most_common()),
                "failures": len(total.failures),
                "cpu_s": round(cpu_s, 1),
                "wall_s": round(time.perf_counter() - started, 1),
                "python": platform.python_version(),
            }
        )
    )
    return 1 if total.failures else 0


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--strings", type=int, default=1_000_000, help="rounded up to blocks")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--workers", type=int, default=None)
    options.add_argument("--try", nargs=2, metavar=("FAMILY", "HEX"), dest="alone")
    return options


def one_block(seed: int, block: int) -> tuple[Tally, float]:
    """Fuzz one block; the blocks take the families in turns."""
    codecs = fuzz_codecs()
    started = time.process_time()
    tally = fuzz(codecs[block % len(codecs)], seed, block)
    return tally, time.process_time() - started


def try_one(family: str, string: str) -> int:
    tally = Tally()
    for codec in fuzz_codecs():
        if codec.family == family:
            judge(codec, bytes.fromhex(string), tally)
    print(tally)
    return 1 if tally.failures or not tally.tried else 0


if __name__ == "__main__":
    sys.exit(main())
