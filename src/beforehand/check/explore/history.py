"""The parts of an epidemic core's state that record history, and on which no later step depends.

The explorer removes them from a state before it compares the state with known states:

- the ranks of cached messages, of which only the order is used, and a bound on their deadlines;
- the numbers of announcements and the time of the last progress, if nothing is retransmitted
  (`Options.retry_us` is None): no frame refers to such a number, and no timer reads that time;
- the content of the last round of announcements: `VersionVectors.set_new` overwrites it before any
  code reads it;
- when a waiting message was received, which only `explain` reports;
- the numbers of saved steps: the state on disk is step 0, and later steps are counted from there;
- that a peer has a message which this node holds too, if digests are off. A held message is
  announced once, in the step that stores it, and is never requested. An eviction removes this note
  as well. With `retry_us`, messages that the peer has not acknowledged may be announced again, so
  these notes stay;
- the order of links, if no link changes and nothing is evicted or expires. The order only decides
  which peer is asked for a message that another peer did not send. In such a net nothing is
  requested twice.
"""

from __future__ import annotations

from beforehand.check.explore.canonical_core import AnyOrder
from beforehand.protocols.contract.base import Message, MessageId
from beforehand.protocols.epidemic.epidemic import Epidemic
from beforehand.protocols.epidemic.flow_control import FlowControl
from beforehand.protocols.epidemic.frames import Announce
from beforehand.protocols.epidemic.sender import Direct


def forget_history(core: Epidemic, *, is_calm: bool) -> None:
    """Remove from a core everything that no later step depends on. is_calm: no link changes."""
    entries: dict[MessageId, tuple[int, Message]] = {}
    for rank, (id, (_, message)) in enumerate(core._cache.entries.items(), 1):
        entries[id] = (rank, message)
    # The registry of digests refers to this dict, so it must stay the same object.
    core._cache.entries.clear()
    core._cache.entries.update(entries)
    core._cache._rank = len(entries)
    core._cache._earliest_us = core._cache.earliest_us()
    core._cache.shares = None  # made again from the entries when the cache is full
    core._version_vectors._new_entries, core._version_vectors._rest = {}, frozenset()
    waiting = getattr(core.order, "_waiting", None)
    for entry in waiting.pending.values() if waiting is not None else ():
        entry.since_us = 0
    if core._options.retry_us is None:
        for link in core._links.values():
            link.progress_us = 0
    if isinstance(core._sender, FlowControl):
        _forget_saved_steps(core._sender)
    elif isinstance(core._sender, Direct):
        _forget_links(core, core._sender, is_calm=is_calm)


def _forget_links(core: Epidemic, sender: Direct, *, is_calm: bool) -> None:
    if core._options.retry_us is None:
        sender._number = 0
    for link in core._links.values() if not core._version_vectors.are_on else ():
        if link.synced:
            unacked = frozenset[MessageId]().union(*link.unacked.values())
            link.known_to_peer.difference_update(
                [id for id in core._cache.entries if id not in unacked]
            )
    if is_calm and not core._cache.is_bounded and not core.order.expires:
        # The parts of the core refer to this dict, so it must stay the same object for all of them.
        core._links = core._requests._links = core._skipping._links = AnyOrder(core._links)


def _forget_saved_steps(flow: FlowControl) -> None:
    saved = flow._saved if flow._is_durable else flow.step
    flow.step -= saved
    flow._saved = 0
    for id in flow.unsaved:
        flow.unsaved[id] -= saved
    for link in flow.flows.values():
        pushes = [(max(0, step - saved), size, frame) for step, size, frame in link.pushes]
        link.pushes.clear()
        link.pushes.extend(pushes)


def move_instants_back(core: Epidemic, us: int, now_us: int, *, may_clip: bool) -> None:
    """Move the instants that a core without lifetimes keeps into the past by `us`.

    may_clip: no clock is ever set. Then all instants of progress that are older than the retry time
        are equivalent, and become one.
    """
    retry_us = core._options.retry_us
    if retry_us is None:
        return
    for link in core._links.values():
        link.progress_us -= us
        if may_clip:
            link.progress_us = max(link.progress_us, now_us - retry_us)


def stays_without_effect(core: Epidemic, frame: object) -> bool:
    """Return whether a frame changes nothing at this core, now or after any other frames.

    True for an announcement of messages that are all held, if the cache is unbounded, the
    announcement need not be acknowledged, and digests do not depend on it. Messages in an unbounded
    cache stay there."""
    options = core._options
    if core.__class__ is not Epidemic or core._cache.is_bounded or core.order.expires:
        return False
    if options.retry_us is not None or core._version_vectors.are_on or options.announce_us:
        return False
    return isinstance(frame, Announce) and all(id in core._cache.entries for id in frame.ids)
