"""`beforehand fuzz`: run random fault-injection worlds, one per seed, to break the protocols."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from beforehand.commands.shell.console import (
    SEED_MAX,
    Commands,
    add_command,
    add_json,
    note,
    note_rest,
    print_json,
    print_table,
    progress,
    whole,
)
from beforehand.errors import EXIT_VALID, EXIT_VIOLATION, InputError, choose

if TYPE_CHECKING:
    from beforehand.check.fuzz.fuzz import Outcome

EXAMPLE = "beforehand fuzz --seeds 10000"
SEEDS, SEEDS_MAX, WORKERS_MAX = 1000, 10_000_000, 1024
FAILURES_SHOWN = 3


def add_parser(commands: Commands) -> None:
    parser = add_command(
        commands, "fuzz", "search for failures of the protocols in random runs", EXAMPLE
    )
    seed, count = whole(0, SEED_MAX), whole(1, SEEDS_MAX)
    parser.add_argument(
        "--seeds", type=count, metavar="N", help="number of seeds for every protocol; default: 1000"
    )
    parser.add_argument("--start", type=seed, metavar="SEED", help="first seed; default: 0")
    parser.add_argument("--protocol", help="one protocol alone; default: every family of protocols")
    parser.add_argument(
        "--replay", type=seed, metavar="SEED", help="run one seed and print its history"
    )
    parser.add_argument(
        "--workers",
        type=whole(1, WORKERS_MAX),
        metavar="N",
        help="processes; default: one per core",
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from beforehand.check.families import FAMILIES

    protocols = tuple(FAMILIES) if args.protocol is None else (_find(args.protocol),)
    if args.replay is not None:
        for name in ("seeds", "start", "workers"):
            if getattr(args, name) is not None:
                problem = "has no effect beside `--replay`, which runs one seed"
                raise InputError(problem, where=f"--{name}", hint="leave it out")
        return _replay(args.replay, protocols, as_json=args.json)
    return _swarm(args, protocols)


def _find(written: str) -> str:
    from beforehand.check.fuzz.fuzz import spelled
    from beforehand.check.fuzz.targets import TARGETS, find_target

    name = find_target(written)
    if name is None:
        hint = choose(written, map(spelled, TARGETS))
        raise InputError(f"unknown protocol `{written}`", hint=hint)
    return name


def _replay(seed: int, protocols: tuple[str, ...], *, as_json: bool) -> int:
    from beforehand.check.families import FAMILIES
    from beforehand.check.fuzz.fuzz import run_seed
    from beforehand.check.fuzz.targets import TARGETS

    outcomes = [
        run_seed(seed, FAMILIES[protocol], with_story=True)
        if protocol in FAMILIES
        else TARGETS[protocol](seed)
        for protocol in protocols
    ]
    if as_json:
        print_json([_as_dict(outcome) for outcome in outcomes])
    else:
        for outcome in outcomes:
            print(f"seed {seed}, {outcome.protocol}: {'FAILED' if outcome.problem else 'passed'}")
            print(outcome.described)
            _print_failure(outcome)
            if not outcome.problem and outcome.story:
                print(outcome.story)
    return EXIT_VIOLATION if any(outcome.problem for outcome in outcomes) else EXIT_VALID


def _swarm(args: argparse.Namespace, protocols: tuple[str, ...]) -> int:
    from beforehand.check.fuzz.fuzz import spelled
    from beforehand.check.fuzz.swarm import run_swarm

    start, seeds = args.start or 0, args.seeds or SEEDS
    with progress() as bar:
        task = bar.add_task("fuzzing", total=seeds * len(protocols))
        swarm = run_swarm(
            range(start, start + seeds),
            protocols,
            workers=args.workers,
            on_done=lambda protocol, count: bar.update(
                task, description=f"fuzzing {protocol}", advance=count
            ),
        )
    if args.json:
        print_json(
            {
                "seeds": seeds,
                "start": start,
                "protocols": list(protocols),
                "tallies": {name: vars(tally) for name, tally in swarm.tallies.items()},
                "failures": [_as_dict(outcome) for outcome in swarm.failures],
                "cpu_s": round(swarm.cpu_s, 1),
                "wall_s": round(swarm.wall_s, 1),
            }
        )
    else:
        rows = [
            (
                *(spelled(name), f"{t.runs:,}", f"{t.moves:,}"),
                *(f"{t.deliveries:,}", f"{t.waited:,}", f"{t.allowed:,}", str(t.failures)),
            )
            for name, t in swarm.tallies.items()
        ]
        headings = (
            "protocol",
            "runs",
            "moves",
            "deliveries",
            "that had to wait",
            "late, as allowed",
            "failures",
        )
        each = f" of each of {len(protocols)} protocols" if len(protocols) > 1 else ""
        print_table(f"{seeds:,} seeds{each} in {swarm.wall_s:.0f} s", headings, rows)
        for outcome in swarm.failures[:FAILURES_SHOWN]:
            _print_failure(outcome)
        note_rest(len(swarm.failures) - FAILURES_SHOWN, "failures")
    return EXIT_VIOLATION if swarm.failures else EXIT_VALID


def _print_failure(outcome: Outcome) -> None:
    if outcome.problem:
        if outcome.shrunk:
            note(f"{outcome.moves} moves came down to {outcome.shrunk}:")
        print(outcome.story)
        note(f"\nreplay: {outcome.replay}")


def _as_dict(outcome: Outcome) -> dict[str, object]:
    return {
        "seed": outcome.seed,
        "protocol": outcome.protocol,
        "problem": outcome.problem,
        "moves": outcome.moves,
        "shrunk": outcome.shrunk,
        "story": outcome.story,
        "replay": outcome.replay,
    }
