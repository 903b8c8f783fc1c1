"""A group changes to a new secret while its nodes run: with an overlap, and at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.runtime.fixtures.meshes import LOCAL, Recorder, run, started, until

from beforehand.runtime.crypto.keys import GroupKey, new_group
from beforehand.runtime.transport.connection import drain
from beforehand.runtime.transport.limits import Limits

LIMITS = Limits(
    backoff_min_seconds=0.02,
    backoff_max_seconds=0.1,
    heartbeat_seconds=0.2,  # a fourth of it is the time until a changed key file is read
    silence_seconds=20,
)
WEEK_US = 7 * 86_400_000_000


@pytest.fixture(autouse=True)
def drain_briefly(monkeypatch):
    monkeypatch.setattr(drain, "DRAIN_SECONDS", (0.02, 0.05))


class Files:
    """The key files of two members of one group."""

    def __init__(self, folder: Path) -> None:
        self.old = new_group("harbour")
        self.ann, self.bob = folder / "ann.key", folder / "bob.key"
        self.old.write(self.ann)
        self.old.write(self.bob)

    def node(self, name: str, *peers, **options) -> Recorder:
        path = self.ann if name == "ann" else self.bob
        key = GroupKey.read(path)
        return Recorder(name, *peers, key=key, key_file=path, limits=LIMITS, **options)


def linked(*nodes: Recorder) -> bool:
    return all(len(node.linked()) == len(nodes) - 1 for node in nodes)


def test_members_with_the_old_and_the_new_key_file_stay_linked_during_the_overlap(tmp_path):
    files = Files(tmp_path)

    async def scene() -> None:
        ann = files.node("ann")
        async with started(ann):
            bob = files.node("bob", ann.address)
            async with started(bob):
                await until(lambda: linked(ann, bob))
                new = files.old.rotate(WEEK_US)
                new.write(files.ann, replace=True)
                # Not silent: the peer with the old file learns when its secret ends.
                ends_us = new.older[0].ends_us
                await until(lambda: bob.mesh.rotation.show()[0].reported_ends_us == ends_us)
                assert bob.mesh.rotation.show()[0].ends_us is None
                newest, old = ann.mesh.rotation.show()
                assert (newest.id, newest.links, newest.ends_us) == (new.newest.id, 0, None)
                assert (old.id, old.links, old.ends_us) == (files.old.newest.id, 1, ends_us)
                assert linked(ann, bob)
        # Whichever of the two dials: old and new find each other.
        bob = files.node("bob")
        async with started(bob):
            ann = files.node("ann", bob.address)
            async with started(ann):
                await until(lambda: linked(ann, bob))
                assert ann.mesh.rotation.show()[1].links == 1
                new.write(files.bob, replace=True)
                await until(lambda: len(bob.mesh.rotation.show()) == 2)
                assert linked(ann, bob)

    run(scene())


def test_a_link_under_the_old_secret_is_cut_at_its_end(tmp_path):
    files = Files(tmp_path)

    async def scene() -> None:
        ann = files.node("ann")
        async with started(ann):
            bob = files.node("bob", ann.address)
            async with started(bob):
                await until(lambda: linked(ann, bob))
                files.old.rotate(500_000).write(files.ann, replace=True)
                await until(lambda: ann.counters.rotated == 1)
                # The late member is told, and not taken for a stranger.
                await until(lambda: bob.counters.rotated >= 2 and ann.counters.late_members)
                assert "ours has ended" in bob.mesh.disconnects()[-1].problem
                assert ann.counters.wrong_key == 0
                GroupKey.read(files.ann).write(files.bob, replace=True)
                await until(lambda: linked(ann, bob))

    run(scene())


def test_a_removed_member_is_cut_at_once_and_the_others_stay(tmp_path):
    """Rotate without an overlap, and hand the new key to all but one."""
    files = Files(tmp_path)

    async def scene() -> None:
        ann = files.node("ann")
        async with started(ann):
            bob, eve = (
                files.node("bob", ann.address),
                Recorder("eve", ann.address, key=files.old, limits=LIMITS),
            )
            async with started(bob, eve):
                await until(lambda: ann.linked() == {"bob", "eve"})
                new = files.old.rotate(is_quiet=True)
                new.write(files.bob, replace=True)
                new.write(files.ann, replace=True)
                await until(lambda: ann.linked() == {"bob"} and not eve.linked())
                await until(lambda: ann.counters.wrong_key >= 2)
                assert ann.counters.late_members == eve.counters.links - 1 == 0

    run(scene())


def test_a_key_file_that_cannot_be_used_is_reported_and_the_secrets_stay(tmp_path):
    files = Files(tmp_path)

    async def scene() -> None:
        ann = files.node("ann")
        async with started(ann):
            bob = files.node("bob", ann.address)
            async with started(bob):
                await until(lambda: linked(ann, bob))
                files.ann.write_text("half a file")
                await until(lambda: ann.counters.bad_key_file == 1)
                new_group("another").write(files.ann, replace=True)
                await until(lambda: ann.counters.bad_key_file == 2)
                assert "another" in ann.mesh.disconnects()[-1].problem
                files.ann.unlink()
                assert linked(ann, bob)
                assert ann.mesh.rotation.show()[0].id == files.old.newest.id

    run(scene())


def test_rotation_with_discovery_was_silent(tmp_path):
    """A node with the old and one with the new file find each other by their announcements."""
    files = Files(tmp_path)
    files.old.rotate(WEEK_US).write(files.ann, replace=True)
    options = {"discover": True, "interfaces": ["127.0.0.1"], "listen": LOCAL}

    async def scene() -> None:
        from tests.runtime.transport.test_discovery import multicast_works

        await multicast_works()
        ann, bob = files.node("ann", **options), files.node("bob", **options)
        async with started(ann, bob):
            await until(lambda: linked(ann, bob))
            await until(lambda: bob.mesh.rotation.show()[0].reported_ends_us)
            # The overlap ends early: the announcement changes, and that of bob counts as late.
            GroupKey.read(files.ann).rotate().write(files.ann, replace=True)
            await until(lambda: ann.counters.late_members and not ann.linked())

    run(scene())
