"""`beforehand station`: run one station of a tree; mobile hosts connect to it in its cell."""

from __future__ import annotations

import argparse
import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from beforehand.commands.nodes.membership import run_until_signal
from beforehand.commands.shell.console import Commands, add_command, note
from beforehand.errors import EXIT_VALID
from beforehand.units import parse_duration

if TYPE_CHECKING:
    from beforehand.runtime.station import Station

EXAMPLE = "beforehand station port.toml --name north --key port.key"


def add_parser(commands: Commands) -> None:
    parser = add_command(commands, "station", "run the station of a cell of mobile hosts", EXAMPLE)
    parser.add_argument("config", type=Path, metavar="CONFIG", help="the file of all stations")
    parser.add_argument("--name", required=True, help="which of them this is")
    parser.add_argument("--key", type=Path, required=True, metavar="FILE", help="the group's")
    parser.add_argument("--every", default="10s", metavar="TIME", help="between status lines; 10s")
    parser.add_argument("--json", action="store_true", help="status lines as JSON, on stdout")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from beforehand.runtime.station import Station

    every_us = parse_duration(args.every, positive=True, where="--every")
    station = Station(args.config, name=args.name, key=args.key)

    async def serve(station: Station, stop: asyncio.Event) -> None:
        _print_status(station, "start", as_json=args.json)
        work = [asyncio.create_task(one) for one in (station.failed(), stop.wait())]
        try:
            while not any(task.done() for task in work):
                await asyncio.wait(
                    work, timeout=every_us / 1e6, return_when=asyncio.FIRST_COMPLETED
                )
                _print_status(station, "stop" if work[1].done() else "status", as_json=args.json)
        finally:
            for task in work:
                task.cancel()
            await asyncio.gather(*work, return_exceptions=True)

    run_until_signal(station, serve)
    return EXIT_VALID


def _print_status(station: Station, event: str, *, as_json: bool) -> None:
    import msgspec

    counters = station.counters
    if as_json:
        line = {
            "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "event": event,
            "name": station.name,
            "linked": station.linked,
            "counters": msgspec.to_builtins(counters),
        }
        print(json.dumps(line), flush=True)
        return
    linked = ", ".join(station.linked) or "no station"
    gauges = counters.gauges
    note(
        f"{event}: station {station.name}; linked: {linked}; guests {gauges['guests']:,}, "
        f"kept {gauges['kept']:,}, relayed {counters.messages.received:,}"
    )
