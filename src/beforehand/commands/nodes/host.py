"""`beforehand host`: a mobile host in a terminal that broadcasts input lines and prints
messages."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from beforehand.commands.nodes.membership import add_log, run_until_signal
from beforehand.commands.shell.console import Commands, add_command, note
from beforehand.commands.shell.terminal import printable, start_reading, until_first
from beforehand.errors import EXIT_VALID, InputError, LocalError

if TYPE_CHECKING:
    from beforehand.runtime.host import Host
    from beforehand.runtime.radio.cell_settings import Stations

EXAMPLE = "beforehand host port.toml --name ann --at north --key port.key"
MOVE = "/move"
LOOK_SECONDS = 0.2
NAMESAKES = 3
"""Up to this many datagrams under our name may be delayed ones of an earlier incarnation."""


def add_parser(commands: Commands) -> None:
    parser = add_command(
        commands,
        "host",
        "run a mobile host: broadcast input lines, print messages",
        EXAMPLE,
    )
    parser.add_argument("config", type=Path, metavar="CONFIG", help="the file of all stations")
    parser.add_argument("--name", required=True, help="name of this host; the store keeps it")
    parser.add_argument(
        "--at", required=True, metavar="STATION", help="station in whose cell the host starts"
    )
    parser.add_argument(
        "--interface", default="", metavar="IP", help="own IP address on that network segment"
    )
    parser.add_argument(
        "--key", type=Path, required=True, metavar="FILE", help="key file of the group"
    )
    parser.add_argument(
        "--store", type=Path, metavar="FILE", help="store of this host; GROUP-NAME.db"
    )
    add_log(parser)
    parser.add_argument(
        "--durable", choices=("disk", "os"), default="disk", help="durability; default: disk"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from beforehand.runtime.host import Host
    from beforehand.runtime.radio.cell_settings import read_stations

    stations = read_stations(args.config)
    stations.check(args.at)
    host = Host(
        stations.group,
        name=args.name,
        store=args.store or Path(f"{stations.group}-{args.name}.db"),
        key=args.key,
        cell=str(stations.segments[args.at].cell),
        interface=args.interface,
        durable=args.durable,
        log=args.log,
    )
    terminal = Terminal(stations)
    run_until_signal(host, terminal.run)
    return EXIT_VALID


class Terminal:
    """The terminal loop: broadcast input lines and print messages until a signal arrives."""

    def __init__(self, stations: Stations) -> None:
        self._stations = stations

    async def run(self, host: Host, stop: asyncio.Event) -> None:
        self._host, self._stop = host, stop
        note(f"{host.name} is in {host.group}; `{MOVE} STATION [IP]` changes the cell")
        start_reading(self._take)
        await until_first(self._show(), self._look(), stop.wait())
        counts = host.counters.messages
        note(
            f"broadcast {counts.broadcast:,}, delivered {counts.delivered:,}; "
            f"no station has confirmed {host.unacked:,}, {counts.dropped:,} were dropped"
        )

    async def _show(self) -> None:
        async for message in self._host:
            print(f"{message.origin}: {printable(message.payload)}", flush=True)

    async def _look(self) -> None:
        """Report cell changes, restarts of the station, and other hosts with the same name."""
        before: str | None = None
        restarted, is_alone = 0, True
        while True:
            counters = self._host.counters.air
            if counters.restarted > restarted:
                restarted = counters.restarted
                note("* the station was restarted: messages that it kept for this host are lost")
            if is_alone and counters.namesakes > NAMESAKES:
                is_alone = False
                note(
                    f"* another host in this cell uses the name {self._host.name}: the station "
                    f"ignores one of the two"
                )
            now = self._host.station if self._host.is_connected else None
            if now != before:
                note("* in no cell" if now is None else f"* in the cell of {now}")
                before = now
            await asyncio.sleep(LOOK_SECONDS)

    async def _take(self, lines: list[bytes], _is_last: bool) -> None:
        for line in lines:
            await self._take_one(line)

    async def _take_one(self, line: bytes) -> None:
        try:
            if line.startswith(MOVE.encode()):
                await self._move(line.decode(errors="replace").split()[1:])
            elif line:
                await self._host.broadcast(line)
        except (InputError, LocalError) as error:
            note(error.render())
        except Exception:
            self._stop.set()  # the host has failed; leaving it raises the error
            raise

    async def _move(self, words: list[str]) -> None:
        if not 1 <= len(words) <= 2:
            raise InputError(f"no station named: write `{MOVE} STATION [IP]`")
        self._stations.check(words[0])
        await self._host.move(str(self._stations.segments[words[0]].cell), *words[1:])
