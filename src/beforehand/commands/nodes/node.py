"""`beforehand node`: relay a group's messages without an application, e.g. on a bus or a boat."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from beforehand.commands.nodes.membership import (
    LinkTroubles,
    SecretNotices,
    add_membership,
    clock_trouble,
    linked_names,
    make_group,
    run_until_signal,
)
from beforehand.commands.shell.console import Commands, add_command, note
from beforehand.errors import EXIT_VALID
from beforehand.units import parse_duration

if TYPE_CHECKING:
    from beforehand.runtime.group import Group

EXAMPLE = "beforehand node harbour --name bus-7 --listen :7400 --log log --json"


def add_parser(commands: Commands) -> None:
    parser = add_command(
        commands, "node", "relay the messages of a group, without an application", EXAMPLE
    )
    add_membership(parser)
    parser.add_argument(
        "--capacity",
        type=int,
        metavar="N",
        help="messages to hold; those of the largest member go first",
    )
    parser.add_argument("--every", default="10s", metavar="TIME", help="between status lines; 10s")
    parser.add_argument("--json", action="store_true", help="status lines as JSON, on stdout")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    every_us = parse_duration(args.every, positive=True, where="--every")
    options: dict[str, Any] = {}
    if args.capacity is not None:
        options["capacity"] = args.capacity
    status = Status(every_us / 1e6, as_json=args.json, peers=args.peer)
    run_until_signal(make_group(args, **options), status.run)
    return EXIT_VALID


class Status:
    """The node's loop: discard deliveries, and print a status line periodically."""

    def __init__(self, every_seconds: float, *, as_json: bool, peers: Sequence[str]) -> None:
        """peers: the addresses given on the command line."""
        self._every_seconds, self._peers = every_seconds, peers
        self._troubles, self._secrets = LinkTroubles(), SecretNotices()
        self._as_json = as_json

    async def run(self, group: Group, stop: asyncio.Event) -> None:
        self._print_status(group, "start")
        reading = asyncio.create_task(self._read(group))
        stopping = asyncio.create_task(stop.wait())
        try:
            while not (reading.done() or stopping.done()):
                await asyncio.wait(
                    [reading, stopping],
                    timeout=self._every_seconds,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if not reading.done():
                    self._print_status(group, "stop" if stopping.done() else "status")
            if reading.done():
                reading.result()  # raises the exception that ended it
        finally:
            for task in (reading, stopping):
                task.cancel()
            await asyncio.gather(reading, stopping, return_exceptions=True)

    async def _read(self, group: Group) -> None:
        async for _ in group:
            pass

    def _print_status(self, group: Group, event: str) -> None:
        import msgspec

        if self._as_json:
            line = {
                "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
                "event": event,
                "group": group.group,
                "name": group.name,
                "addresses": list(map(str, group.addresses)),
                "peers": [peer.name for peer in group.peers],
                "held": group.held,
                "pending": len(group.pending),
                "clock_behind_us": group.clock_behind_us,
                "secrets": msgspec.to_builtins(group.secrets),
                "counters": msgspec.to_builtins(group.counters),
            }
            print(json.dumps(line), flush=True)
            return
        counts = group.counters.messages
        where = ", ".join(map(str, group.addresses))
        note(
            f"{event}: {group.name} in {group.group} at {where}; here: {linked_names(group)}; "
            f"holds {group.held:,}, received {counts.received:,}, refused {counts.refused:,}, "
            f"pending {len(group.pending):,}"
        )
        troubles = [clock_trouble(group), *self._secrets.find_new(group)]
        for trouble in filter(None, [*troubles, *self._troubles.find_new(group, self._peers)]):
            note(trouble)
