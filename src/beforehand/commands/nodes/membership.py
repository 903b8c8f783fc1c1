"""Options and signal handling shared by the commands that join a group."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable, Collection, Coroutine
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from beforehand.errors import InputError
from beforehand.signals import SIGNALS
from beforehand.units import format_duration

if TYPE_CHECKING:
    from beforehand.runtime.group import Group

REPORTED = (
    *("wrong_key", "wrong_name", "turned_away", "another_version", "no_discovery"),
    *("late_members", "rotated", "bad_key_file", "not_announced"),
)
"""Disconnect kinds that waiting does not fix, so the command reports them."""
REPORTED_MAX = 1000
NAME_HINT = "; two members have one name: one of them needs another, with another store"
CLOCK_US_MAX = 60_000_000
"""The maximum allowed difference between the clocks of two members."""
AsyncContext = TypeVar("AsyncContext", bound=AbstractAsyncContextManager[Any])


def add_membership(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("group", metavar="GROUP", help="name of the group")
    parser.add_argument("--name", required=True, help="name of this member; the store keeps it")
    parser.add_argument("--key", type=Path, metavar="FILE", help="key file of the group; GROUP.key")
    parser.add_argument(
        "--store", type=Path, metavar="FILE", help="store of this member; GROUP-NAME.db"
    )
    parser.add_argument(
        "--lifetime", default="1d", metavar="TIME", help="lifetime of a message; 1d"
    )
    parser.add_argument(
        "--listen",
        action="append",
        metavar="HOST:PORT",
        help="default: any free port, all interfaces",
    )
    parser.add_argument(
        "--peer", action="append", default=[], metavar="HOST:PORT", help="a member to connect to"
    )
    parser.add_argument(
        "--no-discover", action="store_true", help="do not look for members on this network"
    )
    add_log(parser)
    parser.add_argument(
        "--durable", choices=("disk", "os"), default="disk", help="durability; default: disk"
    )


def add_log(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--log", type=Path, metavar="DIR", help="write the event log there, for `verify`"
    )


def make_group(args: argparse.Namespace, **options: Any) -> Group:
    from beforehand.runtime.group import Group

    return Group(
        args.group,
        name=args.name,
        key=args.key or Path(f"{args.group}.key"),
        store=args.store or Path(f"{args.group}-{args.name}.db"),
        lifetime=args.lifetime,
        listen=args.listen or ":0",
        peers=args.peer,
        discover=not args.no_discover,
        durable=args.durable,
        log=args.log,
        **options,
    )


def run_until_signal(
    group: AsyncContext, work: Callable[[AsyncContext, asyncio.Event], Coroutine[Any, Any, None]]
) -> None:
    """Run `work` inside the context until it is done or SIGINT or SIGTERM asks it to stop.

    A second signal cancels everything that still runs.
    """
    asyncio.run(_until_signal(group, work))


async def _until_signal(
    group: AsyncContext, work: Callable[[AsyncContext, asyncio.Event], Coroutine[Any, Any, None]]
) -> None:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    main = asyncio.current_task()

    def on_signal() -> None:
        if stop.is_set() and main is not None:
            main.cancel()
        stop.set()

    for number in SIGNALS:
        loop.add_signal_handler(number, on_signal)
    try:
        async with group:
            await work(group, stop)
    except asyncio.CancelledError as error:
        raise InputError(
            "stopped before the shutdown was complete", hint="saved data is safe on the disk"
        ) from error
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)


def linked_names(group: Group) -> str:
    names = [peer.name for peer in group.peers]
    return ", ".join(names) if names else "no member"


class LinkTroubles:
    """Reasons why peers cannot be connected; each is reported once per address."""

    def __init__(self) -> None:
        self._reported: set[tuple[str, str]] = set()

    def find_new(self, group: Group, given: Collection[str]) -> list[str]:
        """Return the new reasons. given: addresses from the command line.

        For other addresses, a peer that does not answer is not reported.
        """
        found = []
        for disconnect in group.disconnects:
            place = disconnect.address, disconnect.problem
            is_reported = disconnect.kind in REPORTED or (
                disconnect.kind == "unreachable" and place[0] in given
            )
            if is_reported and place not in self._reported and len(self._reported) < REPORTED_MAX:
                self._reported.add(place)
                hint = (
                    NAME_HINT if "wrong_name" in (disconnect.kind, disconnect.problem[-10:]) else ""
                )
                found.append(f"{disconnect.name or disconnect.address}: {disconnect.problem}{hint}")
        return found


class SecretNotices:
    """The ends of the group's secrets; each is reported once."""

    def __init__(self) -> None:
        self._reported: set[tuple[str, int]] = set()

    def find_new(self, group: Group) -> list[str]:
        """Return what is new about the secrets of this member."""
        found = []
        for secret in group.secrets:
            ends_us = secret.ends_us or secret.reported_ends_us
            if ends_us is None or (secret.id, ends_us) in self._reported:
                continue
            self._reported.add((secret.id, ends_us))
            ends = datetime.fromtimestamp(ends_us // 10**6, UTC).isoformat()
            if secret.ends_us is None:
                found.append(
                    f"the group has a new secret, and ours ({secret.id}) ends at {ends}: "
                    "get an invite and `beforehand group join --replace`"
                )
            else:
                found.append(f"the old secret {secret.id} ends at {ends}, links: {secret.links}")
        return found


def clock_trouble(group: Group) -> str:
    """Return a warning if the clock was set back by more than the allowed difference, else ""."""
    behind_us = group.clock_behind_us
    if behind_us <= CLOCK_US_MAX:
        return ""
    behind = format_duration(behind_us)
    return f"the clock was set back by {behind}: messages of shorter lifetime count as expired"


def shown_id(message: tuple[int | str, int]) -> str:
    origin, seq = message
    return f"{origin}:{seq}"
