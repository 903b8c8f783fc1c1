"""A gateway lets clients with its token take part by HTTP and WebSocket, and no other program."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from beforehand.runtime.gateway.access import Access
from tests.runtime.fixtures.memory_mesh import run, take, until
from tests.runtime.fixtures.tcp_members import tcp_member

aiohttp = pytest.importorskip("aiohttp")
server = pytest.importorskip("beforehand.runtime.gateway.server")

TOKEN = "a-token-of-the-test"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@asynccontextmanager
async def gateway(folder):
    """Yield a client of ann's gateway, and bob, another member."""
    async with AsyncExitStack() as stack:
        ann = await stack.enter_async_context(tcp_member(folder, "ann"))
        bob = await stack.enter_async_context(tcp_member(folder, "bob", ann))
        await until(lambda: ann.peers and bob.peers)
        opened = server.Gateway(ann, TOKEN, host="127.0.0.1", port=0)
        await opened.start()
        reading = asyncio.create_task(opened.read())
        try:
            base = f"http://127.0.0.1:{opened.port}"
            async with aiohttp.ClientSession(base, headers=BEARER) as client:
                yield client, bob
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            await opened.close()


async def found(client, path, **options):
    async with client.get(path, **options) as answer:
        assert answer.status == 200, await answer.text()
        return await answer.json()


def test_a_client_broadcasts_and_reads_by_http(tmp_path):
    async def play():
        async with gateway(tmp_path) as (client, bob):
            async with client.post("/messages?lifetime=5m", data=b"fog at pier 4") as answer:
                sent = await answer.json()
            assert await take(bob, 1) == [b"fog at pier 4"]
            explained = await found(client, "/explain", params=sent)
            assert explained["state"] == "delivered"
            waiting = asyncio.create_task(found(client, "/messages?after=1&wait=60"))
            await bob.broadcast(b"\xff\x00")
            (entry,) = (await waiting)["messages"]
            assert (entry["number"], entry["origin"], entry["text"]) == (2, "bob", None)
            assert entry["payload"] == b64encode(b"\xff\x00").decode()
            both = (await found(client, "/messages"))["messages"]
            assert [entry["origin"] for entry in both] == ["ann", "bob"]
            assert both[0] | sent == both[0]
            status = await found(client, "/status")
            assert (status["group"], status["name"], status["last"]) == ("harbour", "ann", 2)
            assert [peer["name"] for peer in status["peers"]] == ["bob"]

    run(play)


def test_a_client_broadcasts_and_reads_by_websocket(tmp_path):
    async def play():
        async with gateway(tmp_path) as (client, bob):
            await bob.broadcast(b"before")
            await until_delivered(client, 1)
            async with client.ws_connect("/socket") as socket:
                await socket.send_json({"token": TOKEN, "after": 0})
                assert (await socket.receive_json())["type"] == "ready"
                assert (await socket.receive_json())["text"] == "before"
                await socket.send_json({"text": "hello", "ref": 7})
                answers = [await socket.receive_json(), await socket.receive_json()]
                kinds = {answer["type"]: answer for answer in answers}
                assert kinds["message"]["text"] == "hello"
                assert kinds["sent"]["ref"] == 7
                assert await take(bob, 1) == [b"hello"]
                for wrong in ({}, {"text": "a", "payload": "YQ=="}, {"payload": "?"}, {"x": 1}):
                    await socket.send_json(wrong)
                    assert (await socket.receive_json())["type"] == "refused"
                await socket.send_json({"text": "x", "lifetime": "31d", "ref": "a"})
                refused = await socket.receive_json()
                assert (refused["type"], refused["ref"]) == ("refused", "a")
                assert "too long a lifetime" in refused["problem"]

    run(play)


async def until_delivered(client, number):
    while (await found(client, "/status"))["last"] < number:
        await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": ""}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": f"Basic {TOKEN}"}, 401),
        ({"Host": "attacker.example"}, 403),
        ({"Host": "attacker.example:80", "Origin": "http://attacker.example:80"}, 403),
        ({"Origin": "http://attacker.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost:1"}, 200),
    ],
)
def test_a_request_without_the_token_or_of_another_site_is_refused(tmp_path, headers, status):
    async def play():
        async with gateway(tmp_path) as (client, bob):
            for method, path in (("GET", "/status"), ("POST", "/messages")):
                async with client.request(method, path, headers=headers) as answer:
                    assert answer.status == status
            if status != 200:
                await bob.broadcast(b"one")
                await until_delivered(client, 1)  # and not 2: nothing was broadcast

    run(play)


def test_a_socket_without_the_token_gets_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(server, "HELLO_SECONDS", 0.05)

    async def play():
        async with gateway(tmp_path) as (client, bob):
            for first in ("{}", '{"token":"wrong"}', "no json", None):
                async with client.ws_connect("/socket") as socket:
                    if first is not None:
                        await socket.send_str(first)
                    await bob.broadcast(b"secret")
                    received = await socket.receive()
                    assert received.type is aiohttp.WSMsgType.CLOSE
                    assert received.data == 4401
            with pytest.raises(aiohttp.WSServerHandshakeError):
                await client.ws_connect("/socket", headers={"Origin": "http://attacker.example"})

    run(play)


def test_a_payload_that_is_too_long_and_a_wrong_number_are_refused(tmp_path):
    async def play():
        async with gateway(tmp_path) as (client, _):
            async with client.post("/messages", data=bytes(65_537)) as answer:
                assert answer.status == 413
            for path in ("/messages?after=x", "/messages?wait=-1", "/explain?seq=1e9"):
                async with client.get(path) as answer:
                    assert answer.status == 400
                    assert "is not a number" in (await answer.json())["problem"]

    run(play)


def test_the_page_is_shown_without_a_token_and_loads_nothing_from_elsewhere(tmp_path):
    async def play():
        async with gateway(tmp_path) as (client, _):
            for path in server.PAGES:
                async with client.get(path, headers={"Authorization": ""}) as answer:
                    assert answer.status == 200
                    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
                    assert "http://" not in await answer.text()

    run(play)


def test_only_own_names_count_as_the_host():
    access = Access("token", "192.0.2.7")
    for host in ("127.0.0.1", "localhost:80", "LOCALHOST", "[::1]:7480", "[::1]", "192.0.2.7:1"):
        assert access.is_own_host(host), host
    for host in ("", "127.0.0.1.example", "example:7480", "localhost.example", "1"):
        assert not access.is_own_host(host), host
