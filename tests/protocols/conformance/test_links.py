"""Frames from peers that are not linked, by kind of link."""

from __future__ import annotations

import pickle

from tests.protocols.conformance.stage import give, is_idle, played, watched
from tests.protocols.conformance.subjects import FACTS, SUBJECTS, runs, subjects

from beforehand.protocols.contract.base import Message
from beforehand.protocols.epidemic.frames import Announce, Data, Request
from beforehand.protocols.observer.observer import Stamped
from beforehand.protocols.observer.timestamp import Stamp
from beforehand.protocols.vcube.frames import Packet, VCubeMessage


def test_every_kind_of_link_is_known():
    """A family with links of a new kind needs an entry in `FACTS`, and tests in this file."""
    assert {subject.kind for subject in SUBJECTS} == FACTS.keys()


@subjects(only=lambda subject: subject.kind == "contact")
@runs(4)
def test_a_frame_from_a_peer_that_is_not_in_contact_is_ignored(subject, seed):
    message = Message((8, 5), (), b"")
    frames = [Announce(1, frozenset({(8, 5)})), Request(1, frozenset({(0, 1)})), Data((message,))]
    for stage in played(subject, seed):
        for node, core in watched(stage):
            before = pickle.dumps(core)
            now_us = stage.local_us(node)
            assert all(is_idle(give(core, "on_message", now_us, 8, frame)) for frame in frames)
            assert pickle.dumps(core) == before


@subjects(only=lambda subject: subject.kind == "detector")
def test_a_frame_from_a_member_that_is_reported_down_is_taken(subject):
    for seed in range(10):
        core = subject.make_core(subject.case(seed), 0)
        give(core, "on_link", 0, 1, False)
        message = VCubeMessage((1, 1), (), b"")
        assert give(core, "on_message", 1, 1, Packet(0, (message,))).deliveries == [message]


@subjects(only=lambda subject: subject.kind == "feed")
def test_a_frame_of_a_feed_is_taken_from_any_sender(subject):
    for seed in range(10):
        case = subject.case(seed)
        core = subject.make_core(case, case.nodes - 1)
        message = Message((0, 1), (), b"")
        elements = case.options.guarantees.elements_full
        frame = Stamped(message, 0, Stamp(0, 0, (1,) * elements))
        assert give(core, "on_message", 0, "anybody", frame).receives == [message]
