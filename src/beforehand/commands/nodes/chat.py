"""`beforehand chat`: a chat on a local network, without a server."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from beforehand.commands.nodes.membership import (
    LinkTroubles,
    SecretNotices,
    add_membership,
    clock_trouble,
    linked_names,
    make_group,
    run_until_signal,
    shown_id,
)
from beforehand.commands.shell.console import Commands, add_command, note
from beforehand.commands.shell.terminal import printable, start_reading, until_first
from beforehand.errors import EXIT_VALID, InputError, LocalError
from beforehand.units import format_duration

if TYPE_CHECKING:
    from beforehand.runtime.group import Group

EXAMPLE = "beforehand group new harbour\n  beforehand chat harbour --name ann"
LOOK_SECONDS = 0.5
"""The interval at which the chat checks for new peers, lost peers and waiting messages."""
WAITS_US = 2_000_000
"""The chat reports a message that has waited longer than this."""
STAY_SECONDS = 2.0
"""How long the chat stays after the end of a piped input, so that its last messages are sent."""
HELP = "`/who` lists the linked members, `/waits` the pending messages, `/quit` ends the chat"


def add_parser(commands: Commands) -> None:
    parser = add_command(commands, "chat", "chat with the members of a group", EXAMPLE)
    add_membership(parser)
    parser.add_argument(
        "--stay", action="store_true", help="after the end of the input, until a signal"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    run_until_signal(make_group(args), Chat(stay=args.stay, peers=args.peer).run)
    return EXIT_VALID


class Chat:
    """The chat: broadcast lines of input, print delivered messages."""

    def __init__(self, *, stay: bool, peers: Sequence[str]) -> None:
        """peers: the addresses given on the command line."""
        self._stay, self._peers = stay, peers
        self._troubles, self._secrets = LinkTroubles(), SecretNotices()
        self._is_terminal = sys.stdin.isatty()
        self._broadcasts = self._shown = 0
        self._here: set[str] = set()
        self._has_clock_trouble = False
        self._reported: set[object] = set()

    async def run(self, group: Group, stop: asyncio.Event) -> None:
        self._group, self._stop = group, stop
        where = ", ".join(map(str, group.addresses))
        note(f"{group.name} is in {group.group}, at {where}; Ctrl-D leaves")
        if self._is_terminal:
            note(HELP)
        start_reading(self._broadcast_lines)
        try:
            await until_first(self._show(), self._look(), stop.wait())
        finally:
            note(f"broadcast {self._broadcasts:,}, shown {self._shown:,}; {self._waiting()}")

    def _waiting(self) -> str:
        with suppress(Exception):  # if the group has failed, that error is reported instead
            return f"{len(self._group.pending):,} wait for others"
        return "and then it failed"

    # ---- in -------------------------------------------------------------------------------------

    async def _broadcast_lines(self, lines: Iterable[bytes], is_last: bool) -> None:
        try:
            typed = [line.rstrip(b"\r") for line in lines]
            if self._is_terminal:
                typed = [line for line in typed if not self._obey(line)]
            await asyncio.gather(*(self._broadcast_line(line) for line in typed if line))
        except Exception:
            self._stop.set()  # the group has failed; leaving it raises the error
            raise
        if is_last and not self._stay:
            if not self._is_terminal:
                await asyncio.sleep(STAY_SECONDS)
            self._stop.set()

    async def _broadcast_line(self, line: bytes) -> None:
        try:
            await self._group.broadcast(line)
            self._broadcasts += 1
        except (InputError, LocalError) as error:
            note(f"not broadcast: {error.problem}")

    def _obey(self, line: bytes) -> bool:
        word = line.strip()
        if word == b"/who":
            note(f"here: {linked_names(self._group)}")
        elif word == b"/waits":
            self._report_waiting(all_of_them=True)
        elif word == b"/quit":
            self._stop.set()
        elif word.startswith(b"/"):
            note(HELP)
        else:
            return False
        return True

    # ---- out ------------------------------------------------------------------------------------

    async def _show(self) -> None:
        async for message in self._group:
            print(f"{message.origin}: {printable(message.payload)}", flush=True)
            self._shown += 1

    async def _look(self) -> None:
        while True:
            here = {peer.name for peer in self._group.peers}
            for name in sorted(here - self._here):
                note(f"* {name} is here")
            for name in sorted(self._here - here):
                note(f"* {name} is out of reach")
            self._here = here
            news = self._secrets.find_new(self._group)
            for line in [*news, *self._troubles.find_new(self._group, self._peers)]:
                note(f"* {line}")
            self._report_waiting()
            if bool(trouble := clock_trouble(self._group)) != self._has_clock_trouble:
                self._has_clock_trouble = bool(trouble)
                note(f"* {trouble or 'the clock has caught up'}")
            await asyncio.sleep(LOOK_SECONDS)

    def _report_waiting(self, *, all_of_them: bool = False) -> None:
        """Report the messages that cannot be delivered yet, and which messages each waits for."""
        from beforehand.runtime.config import wall_clock_us

        now_us = wall_clock_us()
        pending = self._group.pending
        if all_of_them and not pending:
            note("nothing waits")
        for waiting in pending:
            age_us = max(0, now_us - waiting.since_us)
            if all_of_them or (age_us >= WAITS_US and waiting.id not in self._reported):
                missing = ", ".join(map(shown_id, waiting.missing))
                age = format_duration(age_us)
                note(f"* a message of {waiting.id[0]} waits for {missing}, {age} now")
                self._reported.add(waiting.id)
        self._reported.intersection_update(waiting.id for waiting in pending)
