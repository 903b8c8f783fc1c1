"""Two and more meshes on loopback: links come up, carry frames, go down and come back."""

from __future__ import annotations

import asyncio

from tests.runtime.meshes import Recorder, run, started, until


def test_two_members_are_linked_and_frames_arrive_in_order_and_unchanged():
    async def scene() -> None:
        ann = Recorder("ann")
        async with started(ann):
            bob = Recorder("bob", ann.address)
            async with started(bob):
                await until(lambda: ann.linked() == {"bob"} and bob.linked() == {"ann"})
                sent = [bytes([n % 251]) * (n % 700 + 1) for n in range(2000)]
                sent.append(b"x" * (1 << 20))
                bob.mesh.send("ann", sent)
                ann.mesh.send("bob", [b"hello"])
                ann.mesh.send("carol", [b"nobody"])
                await until(lambda: len(ann.frames) == len(sent) and bob.frames)
                assert [frame for _, frame in ann.frames] == sent
                assert bob.frames == [("ann", b"hello")]
            await until(lambda: not ann.linked())
            assert ann.events == [("bob", True), ("bob", False)]
            assert ann.bound == {"bob": bob.member.public}

    run(scene())
    assert asyncio
