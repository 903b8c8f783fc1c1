"""Throw garbage at a live socket: damaged handshakes of strangers, damaged records of a member.

Each throw is one connection. A correct node ends it for one reason, and counts that reason. The
seed decides what is damaged: the handshake, the sealed bytes, or the content that a member seals.
"""

from __future__ import annotations

import asyncio
import random

import msgspec

from beforehand.runtime.crypto.handshake import ANSWER_BYTES, COOKIE_BYTES, DialerHandshake
from beforehand.runtime.crypto.keys import GroupKey, MemberKey
from beforehand.runtime.transport.address import Address
from beforehand.runtime.transport.connection.records import pack_frames

ANSWER_SECONDS = 10.0


class Throws(msgspec.Struct):
    """Counts of the throws by kind."""

    hellos: int = 0
    sealed: int = 0
    records: int = 0
    unanswered: int = 0
    """Connections that the node neither answered nor ended in time: 0 if the node is correct."""


def damage(rng: random.Random, data: bytes) -> bytes:
    """Return a different string: a part of the data is changed, cut, repeated or inserted."""
    at = rng.randrange(len(data) + 1)
    kind = rng.randrange(5)
    if kind == 0 and data:
        at %= len(data)
        return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
    if kind == 1 and at < len(data):
        return data[:at]
    if kind == 2:
        return data[:at] + rng.randbytes(rng.randint(1, 20)) + data[at:]
    if kind == 3 and data:
        return data + data[at % len(data) :]
    return rng.randbytes(rng.randint(len(data) + 1, len(data) + 40))


async def throw(
    target: Address, key: GroupKey, member: MemberKey, *, count: int, seed: int
) -> Throws:
    """Open `count` damaged connections, one after the other. `member` introduces itself as `Zed`.

    If two members have two connections, the member with the smaller name decides which is kept.
    Capital letters sort before small ones, so `Zed` decides. The node's name must not begin with a
    capital letter.
    """
    rng, throws = random.Random(seed), Throws()
    for _ in range(count):
        reader, writer = await asyncio.open_connection(target.host, target.port)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                handshake = DialerHandshake(key, "Zed", member)
                await _throw_one(rng, throws, handshake, reader, writer)
        except TimeoutError:
            throws.unanswered += 1
        except (OSError, asyncio.IncompleteReadError):
            pass  # the node hung up, as it should; our write_eof then fails with an OSError
        finally:
            writer.transport.abort()
            await asyncio.sleep(0)
    return throws


async def _throw_one(
    rng: random.Random,
    throws: Throws,
    handshake: DialerHandshake,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    draw = rng.random()
    hello = handshake.on_cookie(await reader.readexactly(COOKIE_BYTES))
    if draw < 0.4:
        throws.hellos += 1
        writer.write(damage(rng, hello))
        writer.write_eof()
        await reader.read()
        return
    writer.write(hello)
    sealer, _ = handshake.on_answer(await reader.readexactly(ANSWER_BYTES))
    contents = [b"\1" + handshake.introduction(), b"\2", pack_frames([b"frame", b"another"]), b"\4"]
    wrong = rng.randrange(len(contents))
    for content in contents[:wrong]:
        _write(writer, sealer.seal(content))
    if draw < 0.7:
        throws.sealed += 1
        _write(writer, damage(rng, sealer.seal(contents[wrong])))
    else:
        throws.records += 1
        _write(writer, sealer.seal(damage(rng, contents[wrong])))
    writer.write_eof()  # no more records: a node that accepted them all sees the end of the stream
    await reader.read()


def _write(writer: asyncio.StreamWriter, sealed: bytes) -> None:
    writer.write(len(sealed).to_bytes(4, "little") + sealed)
