"""`beforehand gateway`: take part in a group by HTTP and WebSocket, from any language."""

from __future__ import annotations

import argparse
import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

from beforehand.commands.nodes.membership import add_membership, make_group, run_until_signal
from beforehand.commands.shell.console import Commands, add_command, note
from beforehand.commands.shell.terminal import until_first
from beforehand.errors import EXIT_VALID, InputError

if TYPE_CHECKING:
    from beforehand.runtime.group import Group

EXAMPLE = "beforehand gateway harbour --name ann --port 7480"
LOOPBACK = "127.0.0.1"
PORT = 7480


def add_parser(commands: Commands) -> None:
    summary = "take part in a group by HTTP and WebSocket, with a chat page"
    parser = add_command(commands, "gateway", summary, EXAMPLE)
    add_membership(parser)
    parser.add_argument(
        "--host", default=LOOPBACK, help="local address to listen at; default: 127.0.0.1"
    )
    parser.add_argument(
        "--port", type=int, default=PORT, help="port to listen at; 0 for any free one; 7480"
    )
    parser.add_argument(
        "--token-file", type=Path, metavar="FILE", help="read the token there; default: a new one"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    try:
        from beforehand.runtime.gateway.server import Gateway
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("aiohttp"):
            raise
        hint = "`pip install beforehand[gateway]`"
        raise InputError("the gateway needs `aiohttp`", hint=hint) from error
    from beforehand.runtime.gateway.access import new_token

    token = new_token() if args.token_file is None else _read_token(args.token_file)

    async def serve(group: Group, stop: asyncio.Event) -> None:
        gateway = Gateway(group, token, host=args.host, port=args.port)
        await gateway.start()
        try:
            host = f"[{args.host}]" if ":" in args.host else args.host
            address = f"http://{host}:{gateway.port}/"
            print(address if args.token_file else f"{address}#token={token}", flush=True)
            if args.host != LOOPBACK:
                note(
                    "connections are not encrypted: other machines on their way can read the token"
                )
            await until_first(gateway.read(), stop.wait())
        finally:
            await gateway.close()

    run_until_signal(make_group(args), serve)
    return EXIT_VALID


def _read_token(path: Path) -> str:
    """Return the token in a file that only its owner can read."""
    try:
        with path.open() as opened:
            mode = os.fstat(opened.fileno()).st_mode
            token = opened.read(4096).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the token: {error}", where=str(path)) from error
    if os.name == "posix" and mode & 0o077:
        raise InputError("others can read this token", where=str(path), hint=f"chmod 600 {path}")
    if len(token) < 16 or not token.isascii() or not token.isprintable():
        hint = "16 printable ASCII characters at least, on one line"
        raise InputError("no token", where=str(path), hint=hint)
    return token
