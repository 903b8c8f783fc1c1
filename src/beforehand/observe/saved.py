"""The state of a partition as bytes: a short head, and all the rest."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from beforehand.errors import LocalError
from beforehand.kernels.observer.reorder import key_width, queue_width
from beforehand.kernels.observer.reorder_many import CLOCKS
from beforehand.observe.rows import read_rows, write_rows
from beforehand.observe.stamps import KEY, Reordering
from beforehand.observe.state import State

Number = int | str
HEAD_BYTES = 16


class Head(NamedTuple):
    """The counts of a saved state, which are read without the rest."""

    observers: int
    held: int


class _Blob(msgspec.Struct, array_like=True):
    settings: tuple[Number, ...]
    keys: bytes
    front: bytes
    clock: bytes
    seen_us: bytes
    owner: bytes
    queue: bytes
    waiting: bytes
    unsettled: bytes
    since_us: int
    acts: bool


def settings_of(order: Reordering, partitions: int) -> tuple[Number, ...]:
    """Return all that a state depends on, and that must not change."""
    rule = (int(number) for number in order.rule)
    return (*rule, order.tick_us, order.clock, order.elements_min, partitions)


def encode_state(state: State, order: Reordering, partitions: int) -> bytes:
    waiting, unsettled = (
        b"" if table is None else write_rows(table) for table in (state.waiting, state.unsettled)
    )
    blob = _Blob(
        settings=settings_of(order, partitions),
        keys=write_rows(pa.table({KEY: state.keys})),
        front=state.front.tobytes(),
        clock=state.clock.tobytes(),
        seen_us=state.seen_us.tobytes(),
        owner=state.owner.tobytes(),
        queue=state.queue.tobytes(),
        waiting=waiting,
        unsettled=unsettled,
        since_us=state.since_us,
        acts=state.acts,
    )
    head = np.array([len(state.keys), state.held], "<i8")
    return head.tobytes() + msgspec.msgpack.encode(blob)


def read_head(data: bytes) -> Head:
    return Head(*np.frombuffer(data[:HEAD_BYTES], "<i8").tolist())


def decode_state(data: bytes, order: Reordering, partitions: int) -> State:
    """Return the state; raise LocalError if it was written with other settings."""
    blob = msgspec.msgpack.decode(data[HEAD_BYTES:], type=_Blob)
    settings = settings_of(order, partitions)
    if blob.settings != settings:
        raise LocalError(
            f"the observers were started with {blob.settings}, not with {settings}",
            hint="a stream keeps its dial, clock and partitions; others need a new checkpoint",
        )
    keys: Any = read_rows(blob.keys)[KEY].combine_chunks()
    waiting, unsettled = (
        read_rows(table) if table else None for table in (blob.waiting, blob.unsettled)
    )
    return State(
        keys=pa.concat_arrays(keys.chunks) if isinstance(keys, pa.ChunkedArray) else keys,
        front=_integers(blob.front, key_width(order.rule)),
        clock=_integers(blob.clock, CLOCKS),
        seen_us=_integers(blob.seen_us),
        owner=_integers(blob.owner),
        queue=_integers(blob.queue, queue_width(order.rule)),
        waiting=waiting,
        unsettled=unsettled,
        since_us=blob.since_us,
        acts=blob.acts,
    )


def _integers(data: bytes, *width: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.frombuffer(data, np.int64).reshape(-1, *width)


def holding(data: bytes) -> list[str | None]:
    """Return the names of the observers that hold rows."""
    blob = msgspec.msgpack.decode(data[HEAD_BYTES:], type=_Blob)
    keys = read_rows(blob.keys)[KEY].to_pylist()
    found = {keys[owner] for owner in _integers(blob.owner).tolist()}
    if blob.unsettled:
        found |= set(read_rows(blob.unsettled)[KEY].to_pylist())
    return sorted(found, key=str)
