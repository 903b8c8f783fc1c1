"""The ids of broadcasts, and when their origin delivers them."""

from __future__ import annotations

from tests.protocols.conformance.stage import played, seqs_grow
from tests.protocols.conformance.subjects import runs, subjects

DELIVERS_OWN_LATER = ("was", "was_flood", "ck")
"""In these, a host delivers its own message once its station has put it in order."""


@subjects(
    only=lambda subject: subject.kind != "feed" and subject.family.name not in DELIVERS_OWN_LATER
)
@runs(4)
def test_a_broadcast_returns_the_id_of_a_delivery_of_its_own_step(subject, seed):
    *_, stage = played(subject, seed)
    assert all(message in deliveries for message, deliveries in stage.spoken)


@subjects(only=lambda subject: subject.kind != "feed")
@runs(4)
def test_the_ids_of_one_origin_grow_strictly(subject, seed):
    *_, stage = played(subject, seed)
    assert seqs_grow(stage)
