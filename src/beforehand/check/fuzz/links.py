"""Garbage against a live socket: damaged greetings of strangers, damaged records of a member.

Each throw is one connection, which a sound node ends for one reason, and counts. What is damaged is
drawn from a seed: the greeting, the sealed bytes, or what a member seals.
"""

from __future__ import annotations

import asyncio
import random

import msgspec

from beforehand.runtime.crypto.handshake import HELLO_BYTES, Handshake
from beforehand.runtime.crypto.keys import GroupKey, MemberKey
from beforehand.runtime.transport.address import Address
from beforehand.runtime.transport.records import pack_frames

ANSWER_SECONDS = 10.0


class Throws(msgspec.Struct):
    """How many of what was thrown."""

    greetings: int = 0
    sealed: int = 0
    records: int = 0
    unanswered: int = 0
    """Connections that the node neither answered nor ended in time: none, if it is sound."""


def damage(rng: random.Random, data: bytes) -> bytes:
    """The same with something changed, cut, doubled or put in; never the same."""
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
    """count connections, one after the other; `member` introduces itself as `Zed`.

    A capital letter comes before all small ones, so that it is the thrower who decides which
    connection is kept, and the node's name must not begin with one.
    """
    rng, throws = random.Random(seed), Throws()
    for _ in range(count):
        reader, writer = await asyncio.open_connection(target.host, target.port)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                handshake = Handshake(key, "Zed", member, is_dialer=True)
                await _throw_one(rng, throws, handshake, reader, writer)
        except TimeoutError:
            throws.unanswered += 1
        except (OSError, asyncio.IncompleteReadError):
            pass  # it hung up, as it should; to say that we have ended is an OSError then
        finally:
            writer.transport.abort()
            await asyncio.sleep(0)
    return throws


async def _throw_one(
    rng: random.Random,
    throws: Throws,
    handshake: Handshake,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    draw = rng.random()
    if draw < 0.4:
        throws.greetings += 1
        writer.write(damage(rng, handshake.hello))
        writer.write_eof()
        await reader.read()
        return
    writer.write(handshake.hello)
    sealer, _ = handshake.on_hello(await reader.readexactly(HELLO_BYTES))
    said = [b"\1" + handshake.introduction(), b"\2", pack_frames([b"frame", b"another"]), b"\4"]
    wrong = rng.randrange(len(said))
    for content in said[:wrong]:
        _write(writer, sealer.seal(content))
    if draw < 0.7:
        throws.sealed += 1
        _write(writer, damage(rng, sealer.seal(said[wrong])))
    else:
        throws.records += 1
        _write(writer, sealer.seal(damage(rng, said[wrong])))
    writer.write_eof()  # what still makes sense is followed by nothing
    await reader.read()


def _write(writer: asyncio.StreamWriter, sealed: bytes) -> None:
    writer.write(len(sealed).to_bytes(4, "little") + sealed)
