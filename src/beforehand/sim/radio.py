"""A shared radio channel: carrier sense, collisions at the receiver, hidden terminals.

A frame is broadcast once, to all neighbours that are in range when it starts. It is never
retransmitted. The world keeps a list of neighbours per node (`sim.grid_index`), and the cost of a
frame is proportional to that list. `kernels.cells.air` is the compiled equivalent. docs/radio.md
describes the model and its limits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Literal, NamedTuple

import msgspec

from beforehand.errors import InputError, InputErrors, LocalError
from beforehand.kernels.queue.heap import TICKET_BITS, TICKETS_MAX
from beforehand.sim.contacts.links import FOREVER_US
from beforehand.sim.streams import mix, stream_key

STREAM = "radio/backoff"
NEVER_US = -1
NO_NODE = -1
EVERYBODY = -1
"""As the target of a frame: all nodes in range."""

MACS = ("dcf", "csma", "none")
"""The MACs in the numbering of `kernels.cells.air`."""


class Radio(msgspec.Struct, frozen=True):
    """The parameters that all nodes of a channel share."""

    modulation: Literal["simple", "dsss", "ofdm"] = "simple"
    bits_per_s: int = 1_000_000
    mac: Literal["dcf", "csma", "none"] = "dcf"
    capture: bool = False
    """Whether a frame in reception survives another that starts later; else both are lost."""
    cw: int = 31
    """A backoff is uniform in 0 to `cw` slots."""
    slot_us: int = 20
    difs_us: int = 50
    sense_us: int = 4
    """The delay of carrier sense. Frames that start closer together than this collide."""
    answers_draw: bool = False
    """In `dcf`, whether a node that requests the medium within DIFS of the end of a frame draws a
    backoff, as on a busy medium. Else all nodes that answer a frame at once start together."""
    queue_max: int | None = None
    """A frame that finds this many waiting at its node is discarded. None: no limit."""
    full_duplex: bool = False
    """Whether a node also receives while it transmits (`fullDuplex` of INET's AckingMac)."""
    unicast_hold_us: int = 0
    """How long a frame with a target that did not receive it holds up the next frame of its node,
    from its start (`ackTimeout` of INET's AckingMac). Only with the MAC `none`."""

    def airtime_us(self, size_bytes: int) -> int:
        """Return how long a frame is on the air. size_bytes: with all headers down to the MAC's."""
        bits = 8 * size_bytes
        if self.modulation == "simple":
            return -(-(96 + bits) * 1_000_000 // self.bits_per_s)
        if self.modulation == "dsss":
            return 192 + -(-bits * 1_000_000 // self.bits_per_s)
        symbols = -(-(22 + bits) * 1_000_000 // (4 * self.bits_per_s))
        return 20 + 4 * symbols + 6

    def check(self) -> None:
        """Refuse parameters that no radio can have."""
        problems = [
            InputError(f"`{name}` is below {least}: {value}", where="the radio")
            for name, value, least in (
                ("bits_per_s", self.bits_per_s, 1),
                ("cw", self.cw, 0),
                ("slot_us", self.slot_us, 1),
                ("difs_us", self.difs_us, 0),
                ("sense_us", self.sense_us, 0),
                ("unicast_hold_us", self.unicast_hold_us, 0),
                ("queue_max", 1 if self.queue_max is None else self.queue_max, 1),
            )
            if value < least
        ]
        if self.unicast_hold_us and self.mac != "none":
            hint = "the MAC that waits for such an answer has no carrier sense"
            problem = f"`unicast_hold_us` needs the MAC `none`: {self.mac}"
            problems.append(InputError(problem, where="the radio", hint=hint))
        if problems:
            raise InputErrors(problems)


class Signal(NamedTuple):
    """The start of a frame, or its end with the outcome at each neighbour."""

    t_us: int
    is_end: bool
    node: int
    frame: int
    received: tuple[int, ...] = ()
    collided: tuple[int, ...] = ()
    """Neighbours that heard another frame at the same time."""
    deaf: tuple[int, ...] = ()
    """Neighbours that were transmitting themselves during a part of the frame."""


class Air:
    """The channel. Its caller, a world, interleaves the events of the channel with its own.

    Before any event of the world at `now_us`, the world calls `step` until `due_us` is later.
    `transmit` requests a frame at `now_us`. `neighbours[node]` is read when a frame of the node
    starts. The caller may change it at any time, and keeps it sorted and symmetric.
    """

    def __init__(self, radio: Radio, neighbours: Sequence[Sequence[int]], seed: int) -> None:
        radio.check()
        nodes = len(neighbours)
        self.radio = radio
        self.neighbours = neighbours
        self.now_us = 0
        self.frames = 0
        self.thrown = 0
        """How many of the frames found a full queue."""
        self._key = stream_key(seed, STREAM)
        self._calendar: list[
            int
        ] = []  # a heap of time and ticket: node (end), nodes + node (start)
        self._armed_us = [NEVER_US] * nodes  # time of the node's only start in the heap
        self._due_us = [NEVER_US] * nodes  # when it really starts; later if it was deferred
        self._queue: list[deque[tuple[int, int, int]]] = [deque() for _ in range(nodes)]
        self._slots = [0] * nodes  # of backoff, left when the countdown began
        self._count_us = [0] * nodes  # when it began, or will if the medium stays idle
        self._sent = [0] * nodes
        self._draws = [0] * nodes  # since the node's last frame
        self._is_sending = [False] * nodes
        self._start_us = [NEVER_US] * nodes  # of its last frame
        self._end_us = [NEVER_US] * nodes
        self._frame = [NO_NODE] * nodes
        self._target = [EVERYBODY] * nodes
        self._held_us = [0] * nodes  # until when its last frame holds up the next one
        self._audience: list[Sequence[int]] = [()] * nodes
        self._signals = [0] * nodes  # signals on the air, without its own
        self._busy_us = [NEVER_US] * nodes  # when the first of them started
        self._locked = [NO_NODE] * nodes  # the sender of the frame that it is receiving

    @property
    def due_us(self) -> int:
        """The time of the next event; `FOREVER_US` if there is none."""
        return self._calendar[0] >> TICKET_BITS if self._calendar else FOREVER_US

    def transmit(self, now_us: int, node: int, size_bytes: int, target: int = EVERYBODY) -> int:
        """Queue a frame and return its number. It starts when it is first in the queue and the MAC
        permits. If the queue is full, it never starts, and `thrown` counts it. target: the node
        that a unicast frame is for; all in range hear it."""
        if now_us < self.now_us or self.due_us < now_us:
            raise LocalError(
                f"node {node} transmits at {now_us} us, the channel is at {self.now_us} us",
                hint="call `step` until `due_us` is not before the request, and ask in order",
            )
        frame, self.frames = self.frames, self.frames + 1
        queue = self._queue[node]
        if len(queue) == self.radio.queue_max:
            self.thrown += 1
            return frame
        queue.append((frame, self.radio.airtime_us(size_bytes), target))
        if len(queue) == 1 and not self._is_sending[node]:
            self._ask(now_us, node)
        return frame

    def step(self) -> Signal | None:
        """Execute the next event and return it; None if it was a start that has been deferred."""
        event = heappop(self._calendar)
        now_us, ticket = event >> TICKET_BITS, event & (TICKETS_MAX - 1)
        self.now_us = now_us
        node = ticket - len(self.neighbours)
        if node < 0:
            return self._end(now_us, ticket)
        self._armed_us[node] = NEVER_US
        due_us = self._due_us[node]
        if due_us > now_us:
            self._arm(due_us, node)
        if due_us != now_us:
            return None
        if self.radio.mac == "csma" and self._senses(now_us, node):
            self._due_us[node] = NEVER_US
            self._draw(node)
            return None
        return self._start(now_us, node)

    def _ask(self, now_us: int, node: int) -> None:
        """Request the medium for a node whose queue was empty until now."""
        mac = self.radio.mac
        if mac == "none" or (mac == "csma" and not self._senses(now_us, node)):
            self._plan(max(now_us, self._held_us[node]), node)
        elif mac == "csma":
            self._draw(node)
        elif self._signals[node]:
            if not self._slots[node] and self._senses(now_us, node):
                self._draw(node)
        else:
            self._freeze(now_us, node)
            is_early = self.radio.answers_draw and now_us < self._count_us[node]
            if not self._slots[node] and is_early:
                self._draw(node)
            elif not self._slots[node]:
                self._count_us[node] = now_us + self.radio.difs_us
            self._plan(self._count_us[node] + self._slots[node] * self.radio.slot_us, node)

    def _senses(self, now_us: int, node: int) -> bool:
        return self._signals[node] > 0 and self._busy_us[node] + self.radio.sense_us < now_us

    def _draw(self, node: int) -> None:
        draw = mix(mix(mix(self._key, node), self._sent[node]), self._draws[node])
        self._draws[node] += 1
        self._slots[node] = int((draw >> 11) * 2.0**-53 * (self.radio.cw + 1))

    def _plan(self, due_us: int, node: int) -> None:
        self._due_us[node] = due_us
        if self._armed_us[node] == NEVER_US:
            self._arm(due_us, node)

    def _arm(self, due_us: int, node: int) -> None:
        # There is one start per node in the heap: a start is only ever deferred, never brought
        # forward.
        self._armed_us[node] = due_us
        heappush(self._calendar, due_us << TICKET_BITS | (len(self.neighbours) + node))

    def _freeze(self, now_us: int, node: int) -> None:
        """Count the whole backoff slots that have passed."""
        gone = (now_us - self._count_us[node]) // self.radio.slot_us
        if gone > 0:
            gone = min(gone, self._slots[node])
            self._slots[node] -= gone
            self._count_us[node] += gone * self.radio.slot_us

    def _start(self, now_us: int, node: int) -> Signal:
        frame, airtime_us, self._target[node] = self._queue[node].popleft()
        self._due_us[node] = NEVER_US
        self._is_sending[node] = True
        if not self.radio.full_duplex:
            self._locked[node] = NO_NODE
        self._start_us[node] = now_us
        self._end_us[node] = now_us + airtime_us
        self._sent[node] += 1
        self._draws[node] = 0
        if self.radio.mac != "none":
            self._draw(node)
        self._frame[node] = frame
        heappush(self._calendar, now_us + airtime_us << TICKET_BITS | node)
        self._audience[node] = audience = tuple(self.neighbours[node])
        for peer in audience:
            self._begin_signal(now_us, peer, node)
        return Signal(now_us, False, node, frame)

    def _begin_signal(self, now_us: int, node: int, sender: int) -> None:
        self._signals[node] += 1
        if self._signals[node] > 1:
            locked = self._locked[node]
            if locked != NO_NODE:
                is_together = now_us <= self._busy_us[node] + self.radio.sense_us
                if is_together or not self.radio.capture:
                    self._locked[node] = NO_NODE
            return
        self._busy_us[node] = now_us
        if self._is_sending[node] and not self.radio.full_duplex:
            return
        self._locked[node] = sender
        if self.radio.mac == "dcf" and not self._is_sending[node]:
            self._freeze(now_us, node)
            if self._due_us[node] > now_us + self.radio.sense_us:
                self._due_us[node] = NEVER_US

    def _end(self, now_us: int, node: int) -> Signal:
        self._is_sending[node] = False
        received: list[int] = []
        collided: list[int] = []
        deaf: list[int] = []
        for peer in self._audience[node]:
            self._signals[peer] -= 1
            if self._locked[peer] == node:
                self._locked[peer] = NO_NODE
                received.append(peer)
            elif self._end_us[peer] > self._start_us[node] and not self.radio.full_duplex:
                deaf.append(peer)
            else:
                collided.append(peer)
            if not self._signals[peer] and not self._is_sending[peer]:
                self._rest(now_us, peer)
        if self._target[node] != EVERYBODY and self._target[node] not in received:
            self._held_us[node] = self._start_us[node] + self.radio.unicast_hold_us
        if self.radio.mac == "none":
            if self._queue[node]:
                self._plan(max(now_us, self._held_us[node]), node)
        elif not self._signals[node]:
            self._rest(now_us, node)
        return Signal(
            *(now_us, True, node, self._frame[node]), tuple(received), tuple(collided), tuple(deaf)
        )

    def _rest(self, now_us: int, node: int) -> None:
        """Note that the medium is idle from now on, as this node senses it."""
        if self.radio.mac == "none" or self._due_us[node] != NEVER_US:
            return
        self._count_us[node] = now_us + self.radio.difs_us
        if self._queue[node]:
            self._plan(self._count_us[node] + self._slots[node] * self.radio.slot_us, node)
