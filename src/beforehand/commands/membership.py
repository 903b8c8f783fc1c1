"""What the commands share that are members of a group: options, signals, who is there."""

from __future__ import annotations

import argparse
import asyncio
import signal
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from beforehand.errors import InputError
from beforehand.units import format_duration

if TYPE_CHECKING:
    from beforehand.runtime.group import Group

CLOCK_US_MAX = 60_000_000
"""So much the clocks of two members may differ."""
AsyncContext = TypeVar("AsyncContext", bound=AbstractAsyncContextManager[Any])


def add_membership(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("group", metavar="GROUP", help="its name")
    parser.add_argument("--name", required=True, help="yours in the group; it stays with the store")
    parser.add_argument("--key", type=Path, metavar="FILE", help="the group's; GROUP.key")
    parser.add_argument("--store", type=Path, metavar="FILE", help="yours; GROUP-NAME.db")
    parser.add_argument("--lifetime", default="1d", metavar="TIME", help="of a message; 1d")
    parser.add_argument(
        "--listen", action="append", metavar="HOST:PORT", help="default: any free port, everywhere"
    )
    parser.add_argument(
        "--peer", action="append", default=[], metavar="HOST:PORT", help="somebody to connect to"
    )
    parser.add_argument(
        "--no-discover", action="store_true", help="do not look for members on this network"
    )
    add_log(parser)
    parser.add_argument(
        "--durable", choices=("disk", "os"), default="disk", help="when it is saved; disk"
    )


def add_log(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--log", type=Path, metavar="DIR", help="write events for `verify` there")


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
    """In the group, or whatever it is: until it is done, or SIGINT or SIGTERM asks to stop. A
    second signal stops whatever is still going on."""
    asyncio.run(_until_signal(group, work))


async def _until_signal(
    group: AsyncContext, work: Callable[[AsyncContext, asyncio.Event], Coroutine[Any, Any, None]]
) -> None:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    main = asyncio.current_task()

    def hear() -> None:
        if stop.is_set() and main is not None:
            main.cancel()
        stop.set()

    numbers = (signal.SIGINT, signal.SIGTERM)
    for number in numbers:
        loop.add_signal_handler(number, hear)
    try:
        async with group:
            await work(group, stop)
    except asyncio.CancelledError as error:
        raise InputError("stopped in a hurry", hint="what is on the disk is safe") from error
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


def who_is_there(group: Group) -> str:
    names = [peer.name for peer in group.peers]
    return ", ".join(names) if names else "nobody"


def clock_trouble(group: Group) -> str:
    """Empty, unless the clock was set back by more than members' clocks may differ."""
    behind_us = group.clock_behind_us
    if behind_us <= CLOCK_US_MAX:
        return ""
    behind = format_duration(behind_us)
    return f"the clock is {behind} behind what it was: what lives no longer counts as expired"


def shown_id(message: tuple[int | str, int]) -> str:
    origin, seq = message
    return f"{origin}:{seq}"
