"""The HTTP server of a gateway: requests of clients, and what they may ask of the group.

docs/gateway.md describes the requests and answers.
"""

from __future__ import annotations

import asyncio
import binascii
from base64 import b64decode
from collections.abc import Awaitable, Callable
from contextlib import suppress
from importlib.resources import files
from typing import Any

import msgspec
from aiohttp import WSMsgType, web

from beforehand.errors import BeforehandError, InputError
from beforehand.protocols.contract.base import MessageId
from beforehand.runtime.config import wall_clock_us
from beforehand.runtime.gateway.access import Access
from beforehand.runtime.gateway.recent_deliveries import Entry, RecentDeliveries
from beforehand.runtime.group import Group

BODY_BYTES_MAX = 64 << 10
"""A payload has no more."""
FRAME_BYTES_MAX = 128 << 10
"""Of a WebSocket message, with a payload in base64."""
WAIT_SECONDS_MAX = 60.0
CLIENTS_MAX = 64
"""WebSockets at a time."""
QUEUE_MAX = 1000
"""Deliveries that wait for one WebSocket; a client that reads more slowly is disconnected."""
HELLO_SECONDS = 10.0
"""Time for the first message of a WebSocket, which has the token."""
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
PAGES = {"/": "chat.html", "/chat.js": "chat.js", "/chat.css": "chat.css"}
TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css"}
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_encode = msgspec.json.encode


class ClientBroadcast(msgspec.Struct, forbid_unknown_fields=True):
    """A message of a WebSocket client after the first."""

    text: str | None = None
    payload: str | None = None
    """In base64."""
    lifetime: str | None = None
    ref: str | int | None = None
    """Returned with the answer."""


class ClientHello(msgspec.Struct, forbid_unknown_fields=True):
    """The first message of a WebSocket client."""

    token: str
    after: int | None = None
    """The number of the last delivery that the client has; by default only new ones are sent."""


class Gateway:
    """One group on one local port."""

    def __init__(self, group: Group, token: str, *, host: str, port: int) -> None:
        self._group, self._host, self._port = group, host, port
        self._access = Access(token, host)
        self._history = RecentDeliveries()
        self._clients: set[web.WebSocketResponse] = set()
        app = web.Application(middlewares=[self._guard], client_max_size=BODY_BYTES_MAX)
        for path in PAGES:
            app.router.add_get(path, _show_page)
        app.router.add_get("/status", self._show_status)
        app.router.add_get("/messages", self._show_messages)
        app.router.add_post("/messages", self._broadcast)
        app.router.add_get("/explain", self._explain)
        app.router.add_get("/socket", self._serve_socket)
        self._runner = web.AppRunner(app, access_log=None)
        self.port = port

    async def start(self) -> None:
        """Listen; raise `InputError` if that is not possible."""
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._host, self._port).start()
        except OSError as error:
            await self._runner.cleanup()
            where = f"{self._host}:{self._port}"
            hint = "choose another port with `--port`"
            raise InputError(f"cannot listen: {error}", where=where, hint=hint) from error
        self.port = self._runner.addresses[0][1]

    async def read(self) -> None:
        """Take the deliveries of the group until it is closed."""
        async for message in self._group:
            self._history.add(message.id, message.payload, message.at_us)

    async def close(self) -> None:
        """Close all connections."""
        for client in list(self._clients):
            await client.close(code=1001, message=b"the gateway ends")
        await self._runner.cleanup()

    # ---- requests -------------------------------------------------------------------------------

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse requests of other sites, and those without the token."""
        access = self._access
        if not access.is_own_host(request.headers.get("Host", "")):
            return _problem(403, "this gateway has another name")
        if not access.is_own_origin(request.headers.get("Origin")):
            return _problem(403, "a page of another site may not use this gateway")
        is_open = request.path in PAGES or request.path == "/socket"
        if not is_open and not access.may_read(request.headers.get("Authorization", "")):
            return _problem(401, "send `Authorization: Bearer TOKEN`")
        try:
            return await handler(request)
        except BeforehandError as error:
            return _problem(400, error.problem)

    async def _show_status(self, request: web.Request) -> web.Response:
        group = self._group
        return _json(
            {
                "group": group.group,
                "name": group.name,
                "key": group.key,
                "addresses": list(map(str, group.addresses)),
                "peers": [{"name": peer.name, "key": peer.key} for peer in group.peers],
                "held": group.held,
                "pending": len(group.pending),
                "first": self._history.first,
                "last": self._history.last,
            }
        )

    async def _show_messages(self, request: web.Request) -> web.Response:
        after = _number(request, "after", 0)
        wait = min(_number(request, "wait", 0), WAIT_SECONDS_MAX)
        entries = await self._history.wait_after(after, wait)
        first, last = self._history.first, self._history.last
        return _json({"first": first, "last": last, "messages": entries})

    async def _broadcast(self, request: web.Request) -> web.Response:
        payload = await request.read()
        return _json(_shown(await self._broadcast_one(payload, request.query.get("lifetime"))))

    async def _broadcast_one(self, payload: bytes, lifetime: str | None) -> MessageId:
        """Broadcast a payload; all clients of this gateway get it as a delivery."""
        message = await self._group.broadcast(payload, lifetime=lifetime)
        self._history.add(message, payload, wall_clock_us())
        return message

    async def _explain(self, request: web.Request) -> web.Response:
        origin, seq = request.query.get("origin", ""), _number(request, "seq", 0)
        status = self._group.explain((origin, seq))
        missing = [_shown(cause) for cause in status.missing]
        return _json({"state": status.state, "missing": missing, "since_us": status.since_us})

    # ---- WebSockets -----------------------------------------------------------------------------

    async def _serve_socket(self, request: web.Request) -> web.StreamResponse:
        if len(self._clients) >= CLIENTS_MAX:
            return _problem(503, f"{CLIENTS_MAX} clients are connected")
        socket = web.WebSocketResponse(max_msg_size=FRAME_BYTES_MAX, heartbeat=20.0)
        await socket.prepare(request)
        self._clients.add(socket)
        try:
            await self._serve(socket)
        finally:
            self._clients.discard(socket)
        return socket

    async def _serve(self, socket: web.WebSocketResponse) -> None:
        hello = await self._take_hello(socket)
        if hello is None:
            await socket.close(code=4401, message=b"no token")
            return
        queue: asyncio.Queue[Entry | None] = asyncio.Queue(QUEUE_MAX + 1)

        def put(entry: Entry) -> None:
            queue.put_nowait(entry if queue.qsize() < QUEUE_MAX else None)

        after = self._history.last if hello.after is None else hello.after
        missed = self._history.after(after)
        stop = self._history.listen(put)
        sending = asyncio.create_task(self._send(socket, missed, queue))
        try:
            async for received in socket:
                if received.type is not WSMsgType.TEXT:
                    break
                await self._answer(socket, received.data)
        finally:
            stop()
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
            await socket.close()

    async def _take_hello(self, socket: web.WebSocketResponse) -> ClientHello | None:
        """Return the first message if it has the token."""
        try:
            hello = msgspec.json.decode(
                await socket.receive_str(timeout=HELLO_SECONDS), type=ClientHello
            )
        except (TypeError, TimeoutError, msgspec.MsgspecError, RuntimeError):
            return None
        return hello if self._access.knows_token(hello.token) else None

    async def _send(
        self,
        socket: web.WebSocketResponse,
        missed: list[Entry],
        queue: asyncio.Queue[Entry | None],
    ) -> None:
        with suppress(ConnectionError):
            start = {"type": "ready", "name": self._group.name, "last": self._history.last}
            await socket.send_str(_encode(start).decode())
            for entry in missed:
                await socket.send_str(_delivery(entry))
            while (entry_or_end := await queue.get()) is not None:
                await socket.send_str(_delivery(entry_or_end))
            await socket.close(code=1008, message=b"it reads too slowly")

    async def _answer(self, socket: web.WebSocketResponse, data: str) -> None:
        """Carry out a broadcast of a client, and answer with the id or the problem."""
        ref: str | int | None = None
        try:
            asked = msgspec.json.decode(data, type=ClientBroadcast)
            ref = asked.ref
            message = await self._broadcast_one(_payload(asked), asked.lifetime)
            answer = {"type": "sent", "ref": ref, **_shown(message)}
        except BeforehandError as error:
            answer = {"type": "refused", "ref": ref, "problem": error.problem}
        except (msgspec.MsgspecError, ValueError) as error:
            answer = {"type": "refused", "ref": ref, "problem": str(error)}
        with suppress(ConnectionError):
            await socket.send_str(_encode(answer).decode())


async def _show_page(request: web.Request) -> web.Response:
    name = PAGES[request.path]
    content = files("beforehand.runtime.gateway").joinpath("web", name).read_bytes()
    kind = TYPES[name.rpartition(".")[2]]
    return web.Response(body=content, content_type=kind, charset="utf-8", headers=HEADERS)


def _payload(asked: ClientBroadcast) -> bytes:
    """Return the payload of a client's message; raise `ValueError` unless there is one."""
    if (asked.text is None) == (asked.payload is None):
        raise ValueError("give either `text` or `payload`")
    if asked.text is not None:
        return asked.text.encode()
    try:
        return b64decode(asked.payload or "", validate=True)
    except binascii.Error as error:
        raise ValueError("`payload` is not base64") from error


def _number(request: web.Request, name: str, default: int) -> int:
    text = request.query.get(name, str(default))
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise InputError(f"`{name}` is not a number: `{text:.40}`")
    return int(text)


def _shown(message: MessageId) -> dict[str, Any]:
    return {"origin": message[0], "seq": message[1]}


def _delivery(entry: Entry) -> str:
    return _encode({"type": "message", **msgspec.to_builtins(entry)}).decode()


def _json(content: object, status: int = 200) -> web.Response:
    return web.Response(
        body=_encode(content), status=status, content_type="application/json", headers=HEADERS
    )


def _problem(status: int, problem: str) -> web.Response:
    return _json({"problem": problem}, status)
