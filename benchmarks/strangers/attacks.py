"""Attacks of strangers and misbehaving members on a node, over hand-made links."""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from collections import Counter

import msgspec

from beforehand.check.fuzz.links import ANSWER_SECONDS, damage, throw
from beforehand.protocols.codecs import OPPORTUNISTIC
from beforehand.protocols.contract.base import Message
from beforehand.protocols.contract.proof import Proofs
from beforehand.protocols.epidemic.frames import Announce, Data, Frame, Request
from beforehand.runtime.crypto.handshake import (
    ANSWER_BYTES,
    COOKIE_BYTES,
    DialerHandshake,
    Opener,
    Sealer,
)
from beforehand.runtime.crypto.keys import GroupKey, MemberKey, new_member
from beforehand.runtime.crypto.trust import Trust
from beforehand.runtime.transport.address import Address
from beforehand.runtime.transport.connection.records import (
    GOODBYE,
    INTRODUCTION,
    KEEP,
    PING,
    PONG,
    pack_frames,
    unpack_goodbye,
)

GROUP = "harbour"
FLOOD_FRAMES = 200_000
RETURN_SECONDS = 0.003
"""The time after which a node that lost its link may reconnect."""


class Line:
    """A hand-made link to ann.

    The name starts with a capital letter, which sorts before `ann`, so that this side decides which
    of two links is kept.
    """

    def __init__(self, target: Address, key: GroupKey, name: str, member: MemberKey) -> None:
        self._target, self._key, self._name, self._member = target, key, name, member
        self.sent = bytearray()
        """All bytes sent, for replay attacks."""

    async def __aenter__(self) -> Line:
        place = (self._target.host, self._target.port)
        self.reader, self._writer = await asyncio.open_connection(*place)
        handshake = DialerHandshake(self._key, self._name, self._member)
        self._put(handshake.on_cookie(await self.reader.readexactly(COOKIE_BYTES)))
        self._sealer: Sealer
        self._opener: Opener
        answer = await self.reader.readexactly(ANSWER_BYTES)
        self._sealer, self._opener = handshake.on_answer(answer)
        self._put(self.sealed(bytes([INTRODUCTION]) + handshake.introduction()))
        self._put(self.sealed(bytes([KEEP])))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.transport.abort()
        await asyncio.sleep(0)

    def sealed(self, content: bytes) -> bytes:
        record = self._sealer.seal(content)
        return len(record).to_bytes(4, "little") + record

    def _put(self, data: bytes) -> None:
        self.sent += data
        self._writer.write(data)

    async def say(self, *frames: bytes) -> None:
        self._put(self.sealed(pack_frames(frames)))
        await self._writer.drain()

    async def write(self, data: bytes) -> None:
        self._put(data)
        await self._writer.drain()

    async def became(self) -> str:
        """Return `fine` if ann answers a ping after the frames sent, or else why she
        disconnected."""
        try:
            await self.write(self.sealed(bytes([PING])))
            async with asyncio.timeout(ANSWER_SECONDS):
                while True:
                    size = int.from_bytes(await self.reader.readexactly(4), "little")
                    content = self._opener.open(await self.reader.readexactly(size))
                    if content[0] == PONG:
                        return "fine"
                    if content[0] == GOODBYE:
                        return unpack_goodbye(content)
        except (ConnectionError, asyncio.IncompleteReadError):
            return "gone"
        except TimeoutError:
            return "open"

    async def hear_the_end(self) -> bool:
        """Return whether ann disconnects."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                while await self.reader.read(1 << 16):
                    pass
        except TimeoutError:
            return False
        except ConnectionError:
            pass
        return True


class Round:
    """All attacks, one after the other."""

    def __init__(self, target: Address, key: GroupKey, said: list[Message], seed: int) -> None:
        self.target, self.key, self.said = target, key, said
        self.rng = random.Random(seed)
        self.mallory = new_member()
        self.thrown: Counter[str] = Counter()
        self.became: Counter[str] = Counter()
        """The outcome of the link, for frames that no honest member would send."""
        self.open_ended: Counter[str] = Counter()
        """Attacks after which ann should have disconnected and did not."""

    def line(self, name: str = "Mallory") -> Line:
        return Line(self.target, self.key, name, self.mallory)

    async def play(self, *, connections: int, frames: int) -> None:
        """Run each attack once, and this many damaged connections and frames."""
        for scene in (
            self.wrong_key,
            self.replayed_connection,
            self.records_change_places,
            self.forged_messages,
            self.replayed_messages,
            self.flood,
            self.flood_of_news,
        ):
            await asyncio.sleep(RETURN_SECONDS)
            await scene()
        await self.damaged_connections(connections)
        await self.damaged_frames(frames)

    async def damaged_connections(self, count: int) -> None:
        seed = self.rng.randrange(1 << 30)
        zed = self.mallory
        throws = await throw(self.target, self.key, zed, count=count, seed=seed)
        self.thrown["connections"] += count
        self.open_ended["connections"] += throws.unanswered

    async def wrong_key(self) -> None:
        other = Line(self.target, self.key.rotate(), "Mallory", self.mallory)
        try:
            async with other:
                self.open_ended["wrong_key"] += 1
        except (asyncio.IncompleteReadError, ConnectionError):
            self.thrown["wrong_key"] += 1

    async def replayed_connection(self) -> None:
        async with self.line() as line:
            await line.say(OPPORTUNISTIC.encode(Announce(1, frozenset())))
            recorded = bytes(line.sent)
        reader, writer = await asyncio.open_connection(self.target.host, self.target.port)
        try:
            writer.write(recorded)
            async with asyncio.timeout(ANSWER_SECONDS):
                await reader.read()
            self.thrown["replayed_connection"] += 1
        except TimeoutError:
            self.open_ended["replayed_connection"] += 1
        except ConnectionError:
            self.thrown["replayed_connection"] += 1
        finally:
            writer.transport.abort()
            await asyncio.sleep(0)

    async def records_change_places(self) -> None:
        frame = pack_frames([OPPORTUNISTIC.encode(Request(0, frozenset()))])
        async with self.line() as line:
            first, second = line.sealed(frame), line.sealed(frame)
            await line.write(second + first)
            await self._expect_the_end("reordered", line)

    async def damaged_frames(self, count: int) -> None:
        """Send damaged frames one by one, so that ann processes each of them."""
        done = 0
        for _ in range(3 * count):
            async with self.line() as line:
                became = "fine"
                while became == "fine" and done < count:
                    await line.say(damage(self.rng, OPPORTUNISTIC.encode(self._any_frame())))
                    became = await line.became()
                    # A connection that reconnects too soon is ignored.
                    done += became in ("fine", "unwanted", "malformed")
                    self.became[became] += 1
            if done == count:
                break
            await asyncio.sleep(RETURN_SECONDS)
        self.thrown["frames"] += done
        self.open_ended["frames"] += count - done

    async def forged_messages(self) -> None:
        """Forge messages of bob: with another signature, with his over another payload, with
        none."""
        own = self._proofs("Mallory")
        for kind, forged in (
            ("wrong_signature", own.prove(Message(("bob", _deadline()), (), b"in his name"))),
            ("other_words", msgspec.structs.replace(self._spoken(), payload=b"other words")),
            ("other_id", msgspec.structs.replace(self._spoken(), id=("bob", _deadline()))),
            ("unsigned", Message(("bob", _deadline()), (), b"nobody signed this")),
            ("first_sight", Message((secrets.token_hex(4), _deadline()), (), b"who is this?")),
        ):
            await asyncio.sleep(RETURN_SECONDS)
            async with self.line() as line:
                await line.say(OPPORTUNISTIC.encode(Data((forged,))))
                self.became[await line.became()] += 1
            self.thrown[kind] += 1

    async def replayed_messages(self) -> None:
        async with self.line() as line:
            for _ in range(20):
                await line.say(OPPORTUNISTIC.encode(Data((self._spoken(),))))
            self.became[await line.became()] += 1
        self.thrown["replayed_messages"] += 20

    async def flood(self) -> None:
        """Send more frames than any member needs, as fast as possible."""
        frame = OPPORTUNISTIC.encode(Request(0, frozenset()))
        async with self.line() as line:
            try:
                for _ in range(FLOOD_FRAMES // 1000):
                    await line.say(*[frame] * 1000)
            except ConnectionError:
                pass
            await self._expect_the_end("flood", line)

    async def flood_of_news(self) -> None:
        """Announce messages that do not exist and are never sent."""
        async with self.line() as line:
            for number in range(1, 200):
                ids = frozenset((f"nobody{number}", _deadline() + k) for k in range(1000))
                try:
                    await line.say(OPPORTUNISTIC.encode(Announce(number, ids)))
                except ConnectionError:
                    break
        self.thrown["news"] += 1

    async def _expect_the_end(self, kind: str, line: Line) -> None:
        self.thrown[kind] += 1
        if not await line.hear_the_end():
            self.open_ended[kind] += 1

    def _spoken(self) -> Message:
        return self.rng.choice(self.said)

    def _proofs(self, name: str) -> Proofs:
        trust = Trust(name, self.mallory, {}, lambda *_: None)
        return Proofs(GROUP, trust.sign, trust.check)

    def _any_frame(self) -> Frame:
        message = self._spoken()
        ids = frozenset([message.id, ("bob", self.rng.getrandbits(40))])
        return self.rng.choice((Announce(1, ids), Request(1, ids), Data((message,), ids)))


def _deadline() -> int:
    return time.time_ns() // 1000 + 1_800_000_000
