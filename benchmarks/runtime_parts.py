"""Where the CPU of a node goes, for `bench_runtime.py --parts`: seconds and calls, part by part.

A part that is called from within another counts for itself alone. To look takes time too, about a
microsecond a call, so that a run that is looked at is slower than one that is not.
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
from beforehand.runtime.transport.link import Link

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
"""Of `group_commit`: SQLite's log, its way into the file, and the disk. `sockets` are asyncio's
part of reading and writing; all that is not named here is the event loop, the program and the
rest."""


class Watch:
    """What was spent in each part since `begin`."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._calls: Counter[str] = Counter()
        self._inner: defaultdict[int, list[float]] = defaultdict(lambda: [0.0])
        """By thread: of the parts that are under way, what those within them have taken."""
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
