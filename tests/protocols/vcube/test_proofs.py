"""VCube with proofs: a node delivers, keeps and forwards only messages that their origin signed."""

from __future__ import annotations

import hashlib

import msgspec
import pytest

from beforehand.errors import RemoteError
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.contract.proof import Proofs
from beforehand.protocols.vcube.frames import Answer, Packet, VCubeMessage
from beforehand.protocols.vcube.node import VCube

SECOND = 1_000_000


def proofs_of(node):
    """A signature is a hash with the name of its signer."""

    def sign(data, who=node):
        return hashlib.sha256(b"%d" % who + data).digest()

    return Proofs("ring", sign, lambda origin, data, proof: sign(data, origin) == proof)


def cube(node, **options):
    options = {"keep_us": 3600 * SECOND, "proofs": proofs_of(node), **options}
    return VCube(node, 4, **options)


def spoken(node=0):
    """Return the message that a node sends to its first child."""
    core, out = cube(node), Outbox()
    core.on_broadcast(0, b"hello", out)
    return out.sends[0]


def test_proven_messages_are_delivered_and_forwarded_with_their_proofs():
    child, packet = spoken()
    core, out = cube(child), Outbox()
    core.on_message(1, 0, packet, out)
    assert [message.payload for message in out.deliveries] == [b"hello"]
    assert out.deliveries[0].proof == packet.messages[0].proof != b""
    assert all(frame.messages == packet.messages for _, frame in out.sends)


@pytest.mark.parametrize(
    "change",
    [{"payload": b"bye"}, {"proof": b""}, {"proof": b"x" * 32}, {"id": (0, 2)}, {"id": (1, 1)}],
)
def test_tampered_messages_are_refused_and_change_nothing(change):
    _, packet = spoken()
    forged = Packet(packet.height, (msgspec.structs.replace(packet.messages[0], **change),))
    core, out = cube(3), Outbox()
    with pytest.raises(RemoteError, match="not what its origin broadcast"):
        core.on_message(1, 0, forged, out)
    assert out == Outbox()
    assert (core.refused, core.gauges(1)["kept"], core.gauges(1)["pending"]) == (1, 0, 0)


def test_a_forged_copy_of_a_known_message_is_refused_too():
    child, packet = spoken()
    core, out = cube(child), Outbox()
    core.on_message(1, 0, packet, out)
    out.clear()
    core.on_message(2, 0, packet, out)  # the same again is a duplicate
    assert core.duplicates == 1
    forged = VCubeMessage((0, 1), (), b"bye")
    with pytest.raises(RemoteError, match="not what its origin broadcast"):
        core.on_message(3, 0, Packet(packet.height, (forged,)), out)


def test_frames_without_messages_need_no_proof():
    core, out = cube(1), Outbox()
    core.on_message(1, 0, Answer(()), out)
    assert core.refused == 0


def test_a_group_without_proofs_accepts_any_message():
    core, out = VCube(0, 4), Outbox()
    core.on_broadcast(0, b"hello", out)
    assert out.deliveries[0].proof == b""
