"""Queued bytes and frames come out unchanged and in order, within the bounds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from beforehand.runtime.transport.connection.buffers import ReadBuffer, SendQueue
from beforehand.runtime.transport.connection.records import BATCH_BYTES

CAPACITY = 16


@given(st.lists(st.tuples(st.binary(max_size=40), st.integers(0, 40), st.integers(0, 40))))
def test_a_buffer_returns_its_input_and_stays_small(steps):
    buffer, model = ReadBuffer(CAPACITY), b""
    for data, taken, wanted in steps:
        while data:
            space = buffer.space()
            assert len(space) > 0
            some = data[: len(space)]
            space[: len(some)] = some
            buffer.filled(len(some))
            model, data = model + some, data[len(some) :]
        assert buffer.peek(taken) == model[:taken]
        assert buffer.take(taken) == model[:taken]
        model = model[taken:]
        assert len(buffer) == len(model)
        buffer.reserve(wanted)
        assert len(buffer.space()) >= wanted - len(model)
        buffer.relax()
        if not model:
            assert len(buffer._view) == CAPACITY
    assert buffer.peek(len(model) + 1) == model


@given(
    st.lists(
        st.lists(st.sampled_from([1, 200, 60_000, BATCH_BYTES, 200_000]), min_size=1, max_size=9),
        max_size=6,
    )
)
def test_a_queue_keeps_the_order_and_fills_batches(calls):
    queue, sent = SendQueue(), []
    for call, sizes in enumerate(calls):
        frames = [bytes([call % 256]) * size for size in sizes]
        sent += frames
        queue.put(frames, sizes)
    assert queue.bytes == sum(4 + len(frame) for frame in sent)
    batches = []
    while queue:
        batches.append(queue.next_batch())
    assert [frame for batch in batches for frame in batch] == sent
    assert queue.bytes == 0
    for batch in batches:
        assert len(batch) == 1 or sum(4 + len(frame) for frame in batch) <= BATCH_BYTES
