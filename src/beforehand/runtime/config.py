"""The options of a node: one place for their defaults, their checks and their documentation."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Required, TypedDict

from beforehand.errors import InputError
from beforehand.protocols.contract.tables import RowStore
from beforehand.runtime.crypto.keys import GroupKey, flaw_of_name
from beforehand.runtime.node import Recorder
from beforehand.runtime.storage.store import Durability
from beforehand.runtime.transport.limits import Limits

QUEUE_BYTES_MAX = 4 << 20
"""Bytes queued on one link. At most about half is used; a single frame may exceed that half."""

Lifetime = str | timedelta | float
"""A duration with units such as `20m`, a timedelta, or a number of seconds."""
MakeRecorder = Callable[[RowStore, int], Recorder]
"""Creates a recorder, given the node's store and its number of starts."""


class MemberOptions(TypedDict, total=False):
    """The options of every member: `Group`, `BlockingGroup`, `Overlay` and `Host`.

    `name`, `store` and `key` are required.
    """

    name: Required[str]
    """The unique name of this member. It is bound to the key in the store."""
    store: Required[str | os.PathLike[str]]
    """The path of the SQLite file, which is created if there is none."""
    key: Required[str | os.PathLike[str]]
    """The path of the group's key file."""
    durable: Durability
    """`disk` (default) syncs each transaction (fsync). `os` syncs once a second, so a power loss
    may cost the last second."""
    inbox: bool
    """Hand over each message again after a restart until it is acknowledged (at-least-once)."""
    limits: Limits | None
    """Limits of the links. Of these, only `queue_bytes_max` applies to a host."""
    clock_us: Callable[[], int] | None
    """Returns the time in microseconds since the epoch; by default the system's clock."""
    log: str | os.PathLike[str] | None
    """A folder for the event log, which `beforehand verify` reads. It needs pyarrow."""
    make_recorder: MakeRecorder | None
    """Creates a recorder of all events, instead of the event log."""


class GroupOptions(MemberOptions, total=False):
    """The options of `Group` and `BlockingGroup`, besides those of every member.

    `lifetime` is required.
    """

    lifetime: Required[Lifetime]
    """The default lifetime of this member's messages: `20m`, a timedelta or seconds; at most 30
    days."""
    listen: str | Sequence[str]
    """One or more `host:port`; `:0` (default) means any free port on all interfaces."""
    peers: str | Sequence[str]
    """One or more `host:port` to dial."""
    discover: bool
    """Find peers on the local network by multicast DNS (default)."""
    capacity: int
    """Limit of stored messages. Beyond it the member with most bytes loses its oldest message.
    Default: 200,000."""
    capacity_bytes: int
    """Limit of the bytes that they take, with causes, proofs and pending ones. Default: 256 MiB."""


class NodeConfig:
    """The checked options that a station and a member share."""

    def __init__(
        self, group: str, *, name: str, key: str | os.PathLike[str], limits: Limits
    ) -> None:
        """Raise `InputError` if a name is not valid."""
        for what, word in (("group", group), ("member", name)):
            if flaw := flaw_of_name(word):
                raise InputError(f"no name for a {what}: {flaw}", hint="choose another name")
        self.group, self.name = group, name
        self.key = Path(key)
        self.limits = limits

    def read_key(self) -> GroupKey:
        """Return the key in the file; raise `InputError` if it is that of another group."""
        key = GroupKey.read(self.key)
        if key.name != self.group:
            problem = f"the key of the group `{key.name}`, not of `{self.group}`"
            hint = "give the key of this group, or the name of that one"
            raise InputError(problem, where=str(self.key), hint=hint)
        return key


class MemberConfig(NodeConfig):
    """The checked options of one member; see `MemberOptions` for their meaning."""

    def __init__(
        self,
        group: str,
        *,
        name: str,
        store: str | os.PathLike[str],
        key: str | os.PathLike[str],
        durable: Durability = "disk",
        inbox: bool = False,
        limits: Limits | None = None,
        clock_us: Callable[[], int] | None = None,
        log: str | os.PathLike[str] | None = None,
        make_recorder: MakeRecorder | None = None,
    ) -> None:
        """Check the options without opening anything; raise `InputError` if one is not valid."""
        limits = limits or Limits(queue_bytes_max=QUEUE_BYTES_MAX)
        super().__init__(group, name=name, key=key, limits=limits)
        if durable not in ("disk", "os"):
            raise InputError(f"no such durability: `{durable}`", hint="choose `disk` or `os`")
        self.store = Path(store)
        self.durable: Durability = durable
        self.inbox = inbox
        self.clock_us = clock_us or wall_clock_us
        self.log = None if log is None else Path(log)
        self.make_recorder = make_recorder


def wall_clock_us() -> int:
    return time.time_ns() // 1000
