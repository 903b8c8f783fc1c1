"""Profile the CPU of a node for `bench_runtime.py --parts`: seconds and calls by part.

The time of a nested part is not counted for the part around it. Profiling costs about 1 µs per
call, so a profiled run is slower than others.
"""

from __future__ import annotations

import asyncio.selector_events
import functools
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

from beforehand.protocols.contract.codec import Codec
from beforehand.protocols.contract.driver import BroadcasterDriver, Driver
from beforehand.runtime.crypto import merkle
from beforehand.runtime.crypto.handshake import Opener, Sealer
from beforehand.runtime.crypto.trust import Trust
from beforehand.runtime.storage.store import DiskStore
from beforehand.runtime.transport.connection.link import Link

TRANSPORT: Any = vars(asyncio.selector_events)["_SelectorSocketTransport"]
PARTS: dict[str, tuple[tuple[Any, str], ...]] = {
    "signatures": ((Trust, "sign"), (Trust, "sign_all"), (Trust, "check_all")),
    "hashes of messages": ((merkle, "leaf_of"),),
    "codec": ((Codec, "encode"), (Codec, "decode")),
    "seals": ((Sealer, "seal"), (Opener, "open")),
    "rows": ((DiskStore, "stage"),),
    "commits": ((DiskStore, "commit"),),
    "core": (
        *((Driver, "on_message"), (Driver, "on_timer")),
        *((BroadcasterDriver, "on_broadcast"), (BroadcasterDriver, "on_broadcasts")),
    ),
    "sockets": (
        (TRANSPORT, "write"),
        (TRANSPORT, "_read_ready"),
    ),
    "links": ((Link, "buffer_updated"), (Link, "_flush")),
}
"""The methods of each part. Of `group_commit`: SQLite's log, its checkpoint into the file, and the
disk. `sockets` is asyncio's share of reading and writing. Anything else is the event loop, the
application and the rest."""


class Watch:
    """The time and the calls of each part since `begin`."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._calls: Counter[str] = Counter()
        self._inner: defaultdict[int, list[float]] = defaultdict(lambda: [0.0])
        """For each thread, a stack of the running parts with the time spent in parts nested in
        them."""
        for part, methods in PARTS.items():
            for owner, name in methods:
                setattr(owner, name, self._watched(part, name, getattr(owner, name)))

    def begin(self) -> None:
        self._seconds.clear()
        self._calls.clear()

    def told(self) -> dict[str, dict[str, float]]:
        return {"seconds": dict(self._seconds), "calls": dict(self._calls)}

    def _watched(self, part: str, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        seconds, calls, clock = self._seconds, self._calls, time.thread_time

        @functools.wraps(method)
        def watched(*args: Any, **options: Any) -> Any:
            inner = self._inner[threading.get_ident()]
            inner.append(0.0)
            began = clock()
            try:
                result = method(*args, **options)
            finally:
                spent = clock() - began
                seconds[part] += spent - inner.pop()
                inner[-1] += spent
            calls[f"{name} {type(result).__name__}" if name == "decode" else name] += 1
            return result

        return watched
