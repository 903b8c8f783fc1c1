"""One node of a VCube: causal broadcast over many trees, with nodes that fail and recover.

Every origin has its own tree, so no node is the bottleneck. `protocols.vcube.dissemination` is the
protocol of the paper; `protocols.vcube.retention` keeps messages for peers that need them later.

Beyond the paper, nodes may be down or missing. The node maintains an invariant for every message
that it keeps and every cluster that it serves for that message: it sent the message to the first
live node of the cluster, as far as it knows which nodes are alive. `on_link` restores the
invariant whenever the failure detector reports a change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from beforehand.errors import LocalError, RemoteError
from beforehand.protocols.contract.base import (
    Broadcaster,
    Counters,
    MessageId,
    MessageStatus,
    NodeId,
    Timer,
)
from beforehand.protocols.contract.needs import Link, Needs
from beforehand.protocols.contract.proof import Proofs
from beforehand.protocols.contract.tables import Rows, Table
from beforehand.protocols.orders.order import refuse_lifetime
from beforehand.protocols.vcube.frames import (
    MTU_BYTES,
    Answer,
    Ask,
    Known,
    Packet,
    VCubeFrame,
    VCubeMessage,
    VCubeOutbox,
)
from beforehand.protocols.vcube.retention import ASK, SPANS_MAX, Retention
from beforehand.protocols.vcube.state import TABLES

SEQ_MAX = 1 << 62


class VCube(Retention):
    """One node of a VCube group.

    root: all messages travel over the single tree of this node (section 5.5).

    keep_us: retention time of a message after its delivery, for children that fail and for nodes
    that recover. It must cover a dissemination and the detection of failures during it. 0 is the
    paper's model, in which nodes do not fail. The node skips messages that it lacks and no peer
    keeps, and counts them as missed.

    durable: the node saves the state that it must not lose, and may restart. After a restart it
    takes all peers for up, like a new node. It resends the kept messages to each peer that the
    failure detector reports up.

    proofs: the node signs its messages. It refuses frames with unproven messages of any origin.
    """

    needs = Needs({"detector": Link(reliable=True)})

    def __init__(
        self,
        node: int,
        nodes: int,
        *,
        aggregates: bool = True,
        root: int | None = None,
        keep_us: int = 0,
        mtu_bytes: int = MTU_BYTES,
        durable: bool = False,
        proofs: Proofs | None = None,
    ) -> None:
        if not 0 <= node < nodes or (root is not None and not 0 <= root < nodes):
            raise LocalError(f"node {node}, root {root}: numbers go from 0 to {nodes - 1}")
        if durable and keep_us < 1:
            raise LocalError(
                "a durable node that keeps nothing", hint="give it a `keep_us` of at least 1"
            )
        super().__init__(
            node,
            nodes,
            aggregates=aggregates,
            root=root,
            keep_us=keep_us,
            mtu_bytes=mtu_bytes,
            durable=durable,
            proofs=proofs,
        )

    @property
    def tables(self) -> tuple[Table, ...]:
        return TABLES if self._durable else ()

    # ---- inputs ---------------------------------------------------------------------------------

    def on_broadcast(
        self, now_us: int, payload: bytes, out: VCubeOutbox, lifetime_us: int | None = None
    ) -> MessageId:
        """Deliver a new message, send it down its tree, and return its id."""
        refuse_lifetime(self.node, lifetime_us)
        if self._state.is_forgetful:
            raise LocalError(
                "peers know messages of this node that it does not remember",
                where=f"node {self.node}",
                hint="restore its saved state, or restart under another name",
            )
        me = self._self
        seq = self._clock[me] + 1
        message = VCubeMessage((me, seq), self._past(), payload)
        if self._proofs is not None:
            # The signer may fail. No state changes before it has signed, because the next message
            # must then name the same causes.
            message = self._proofs.prove(message)
        if self._keep_us:
            self._pass_time(now_us, out)
        self._new_causes.clear()
        # Own messages count as received at once (Algorithm 2, lines 6 and 7).
        self._clock[me] = seq
        self._state.sent_count += 1
        out.deliveries.append(message)
        if self._keep_us:
            self._on_own_broadcast(message, out)
        head = self._head(me)
        if head == me:
            self._keep(now_us, message, iter(()), self.dimension, out)
            self._serve(message, 0, self.dimension, out)
        else:
            # Height 0 until the message comes back down the tree.
            self._keep(now_us, message, iter(()), 0, out)
            out.sends.append((head, Packet(self.dimension, (message,))))
        if self._pending:
            self._wake(message.id, out)
        return message.id

    def on_message(self, now_us: int, source: NodeId, frame: VCubeFrame, out: VCubeOutbox) -> None:
        """Handle a frame of a member, whether or not the failure detector reports it up."""
        clock, keep_us, nodes = self._clock, self._keep_us, self._nodes
        # Refuse frames that no correct peer sends before any state changes.
        if type(source) is not int or not 0 <= source < nodes:
            self._refuse(source, f"not a member: {source}")
        # Where nodes fail, a node that lost its state may receive unknown messages of its own.
        sent = SEQ_MAX if keep_us else clock[self._self]
        if problem := frame.problem(nodes, self.dimension, self._self, sent):
            self._refuse(source, problem)
        if self._proofs is not None:
            self._refuse_unproven(source, frame, self._proofs)
        if keep_us:
            self._pass_time(now_us, out)
            self._take_packet(source, frame, out)
        if isinstance(frame, Packet):
            height = frame.height
            for message in frame.messages:
                origin, seq = message.id
                if seq <= clock[origin]:
                    self._again(now_us, message, height, out)
                else:
                    if keep_us and height < self._served(origin):
                        self._state.has_gained = True
                    self._arrive(now_us, message, height, out)
        elif not keep_us:
            self._refuse(source, "a question, but this group keeps nothing")
        if keep_us:
            self._watch(now_us, out)

    def on_link(self, now_us: int, peer: NodeId, up: bool, out: VCubeOutbox) -> None:
        """Handle a report of the failure detector that `peer` went down or came up.

        If a crash or a link failure lost frames for the peer, the detector must report the peer
        down before it reports it up. Frames sent in between are lost.
        """
        if not isinstance(peer, int) or peer == self.node or not 0 <= peer < self._nodes:
            raise LocalError(f"not a peer: {peer}", where=f"node {self.node}")
        if self._live[peer] == up and peer not in self._state.unreported:
            if not up and self._keep_us:
                # Reported down again: the peer may have lost the last `Ask`.
                self._ask_no_more(peer, out)
                self._watch(now_us, out)
            return
        self._state.unreported.discard(peer)
        before = self._child
        self._live[peer] = up
        self._look_around()
        if self._keep_us:
            self._pass_time(now_us, out)
            self._serve_again(peer, before, out)
            if up:
                self._ask(peer, out)
            else:
                self._ask_no_more(peer, out)
            self._watch(now_us, out)

    def on_timer(self, now_us: int, timer: Timer, out: VCubeOutbox) -> None:
        """Handle the `ASK` timer: a peer did not answer, or a message has waited too long."""
        if timer == ASK and self._state.is_watching:
            self._pass_time(now_us, out)
            self._look_after(now_us, out)

    def restore(self, now_us: int, rows: Rows, out: VCubeOutbox) -> None:
        """Resume with the clock and the kept messages of the previous incarnation."""
        if self._keep_us:
            self._pass_time(now_us, out)
            self._restore(now_us, rows)
            self._state.before_count = sum(self._clock)
            self._state.held_before_count = len(self._pending)
            self._watch(now_us, out)

    # ---- questions ------------------------------------------------------------------------------

    def explain(self, message: MessageId) -> MessageStatus:
        origin, seq = message
        if not isinstance(origin, int) or not 0 <= origin < self._nodes or seq < 1:
            return MessageStatus("unknown")
        copy = self._pending.get((origin, seq))
        if copy is not None:
            past = copy.message.past if seq == 1 else ((origin, seq - 1), *copy.message.past)
            missing = tuple(id for id in past if self._clock[id[0]] < id[1])
            return MessageStatus("waiting", missing, copy.since_us)
        spans = self._state.missed.get(origin, ())
        if seq > self._clock[origin] or (len(spans) == SPANS_MAX and seq < spans[0][0]):
            return MessageStatus("unknown")
        is_missed = any(first <= seq <= last for first, last in spans)
        return MessageStatus("missed" if is_missed else "delivered")

    def pending(self) -> list[MessageId]:
        """Return the ids of the messages received but not delivered, in order of arrival."""
        return list(self._pending)

    @property
    def counters(self) -> Counters:
        """Return the counters, derived from the clock where it holds the numbers already."""
        sent = self._state.sent_count
        delivered = sum(self._clock) - self._state.before_count - self._state.missed_count
        pending = len(self._pending) + self._state.dropped_count - self._state.held_before_count
        return Counters(
            broadcast=sent,
            received=delivered - sent + pending,
            delivered=delivered,
            duplicate=self.duplicates,
            missed=self._state.missed_count,
            refused=self.refused,
        )

    def gauges(self, now_us: int) -> dict[str, int]:
        return {
            "pending": len(self._pending),
            "postponed": sum(copy.postponed > 0 for copy in self._pending.values()),
            "early": len(self._early),
            "waiting": sum(map(len, self._waiting.values())),
            "awaiting": sum(map(len, self._awaiting.values())),
            "news": len(self._new_causes),
            "kept": len(self._kept),
            "asking": len(self._state.to_ask) + (self._state.asked >= 0),
            "gaps": sum(map(len, self._state.missed.values())),
        }

    # ---- frames ---------------------------------------------------------------------------------

    def _refuse(self, source: NodeId, problem: str) -> NoReturn:
        self.refused += 1
        raise RemoteError(problem, where=f"node {self.node}, frame from {source}")

    def _refuse_unproven(self, source: NodeId, frame: VCubeFrame, proofs: Proofs) -> None:
        if isinstance(frame, Known):  # with proofs, a member sends the signed message instead
            self._refuse(source, f"no proof of message {(self._self, frame.seq)}")
        for message in frame.messages if isinstance(frame, Packet) else ():
            copy = self._kept.get(message.id)
            is_known = copy is not None and copy.message == message
            if not is_known and not proofs.is_proven(message):
                self._refuse(source, f"not what its origin broadcast: {message.id}")

    def _take_packet(self, source: NodeId, frame: VCubeFrame, out: VCubeOutbox) -> None:
        assert isinstance(source, int)
        if isinstance(frame, Packet):
            me, sent = self._self, self._clock[self._self]
            named = [m.id for m in frame.messages]
            # With proofs, only messages signed by this node count: a lying origin can sign a
            # message that names any cause.
            if self._proofs is None:
                named += [entry for m in frame.messages for entry in m.past]
            if any(origin == me and seq > sent for origin, seq in named):
                self._find_out(out)
        elif isinstance(frame, Ask):
            self._on_ask(source, frame, out)
        elif isinstance(frame, Answer):
            self._on_answer(source, frame, out)
        else:
            self._on_known(source, frame, out)

    def _serve_again(self, peer: int, before: list[int], out: VCubeOutbox) -> None:
        """Resend the kept messages to each cluster whose first live node changed or came back."""
        batches: dict[int, list[VCubeMessage]] = {}
        for copy in self._kept.values():
            served = copy.height
            origin = copy.message.id[0]
            takes_all = origin in self._takes_all or self._head(origin) == self._self
            if takes_all and served < self.dimension:
                self._raise(copy, self.dimension, out)
            for level in range(copy.postponed + 1, copy.height + 1):
                child = self._child[level]
                if level > served or child != before[level] or child == peer:
                    batches.setdefault(level, []).append(copy.message)
        self._send(batches, out)


if TYPE_CHECKING:
    _: Broadcaster[VCubeFrame] = VCube(0, 1)
