"""The constants of a run of the compiled contact world."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from beforehand.kernels.epidemic.sets import INVERSE_BITS
from beforehand.kernels.epidemic.state import (
    AHEAD,
    BY_DRAW,
    NEWEST_FIRST,
    OLDEST_FIRST,
    Fixed,
)
from beforehand.mobility.trace import Trace
from beforehand.protocols.epidemic.frames import FRAME_BYTES, ID_BYTES, IDS_MAX
from beforehand.sim.contacts.plan import live_at_once, make_plan
from beforehand.sim.contacts.run import Spec, clock_offsets
from beforehand.sim.contacts.traffic import Planned
from beforehand.sim.streams import stream_key

TRANSFERS = {"random": BY_DRAW, "oldest": OLDEST_FIRST, "newest": NEWEST_FIRST}


def make_fixed(trace: Trace, spec: Spec, traffic: Planned) -> Fixed:
    """Return the constants of a run."""
    layer, links = spec.layer, spec.links
    offset_us = np.array(clock_offsets(trace, spec), np.int64)
    # Live messages are consecutive: they touch one word more than they fill, and one in part.
    words = (live_at_once(traffic.t_us, spec.life_us) >> 6) + 2
    words = -(-words // 64) * 64
    return Fixed(
        *make_plan(trace, traffic),
        contact_down=np.ascontiguousarray(trace.contacts[:, 3]).copy(),
        last_down=_last_down(trace),
        sent_us=np.append(traffic.t_us, AHEAD),
        offset_us=offset_us,
        offset_low_us=int(offset_us.min(initial=AHEAD)),
        offset_high_us=int(offset_us.max(initial=0)),
        skew_us=spec.clocks.skew_us,
        latency_us=links.latency_us,
        bytes_per_s=links.bytes_per_s or 0,
        announce_us=layer.announce_us,
        lifetime_us=spec.lifetime_us or 0,
        is_causal=spec.protocol != "none",
        is_vector=spec.protocol == "vector",
        covers=spec.protocol != "vector" and not spec.literal_barriers,
        frame_bytes=layer.frame_bytes_max,
        frame_messages=layer.frame_messages_max or 1 << 40,
        ids_max=min(max(1, (layer.frame_bytes_max - FRAME_BYTES) // ID_BYTES), IDS_MAX),
        payload=traffic.payload_bytes.astype(np.int32),
        capacity=AHEAD if layer.capacity is None else layer.capacity,
        capacity_bytes=AHEAD if layer.capacity_bytes is None else layer.capacity_bytes,
        is_bounded=layer.is_bounded,
        draws_evicted=layer.is_bounded and layer.eviction == "random",
        transfer=TRANSFERS[layer.transfer],
        lists=layer.is_bounded or layer.transfer != "random",
        retry_us=layer.retry_us or 0,
        repeats=layer.is_bounded or layer.retry_us is not None or links.is_noisy,
        is_noisy=links.is_noisy,
        loss=float(links.loss),
        duplication=float(links.duplication),
        jitter_us=links.jitter_us,
        noise_until_us=links.noise_until_us,
        noise_key=np.uint64(stream_key(spec.seed, "frames")),
        gauge_us=spec.gauge_us or 0,
        key=np.uint64(stream_key(spec.seed, "transfer")),
        words=words,
        inverse=-(-(1 << INVERSE_BITS) // words),
    )


def _last_down(trace: Trace) -> NDArray[np.int64]:
    """Return when each node leaves for good."""
    down_us = np.zeros(trace.nodes_count, np.int64)
    np.maximum.at(down_us, trace.presence[:, 0], trace.presence[:, 2])
    return down_us
