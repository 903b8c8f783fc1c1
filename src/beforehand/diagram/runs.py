"""Choose the events of a run of ours that a diagram shows, around a violation or a message."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from beforehand.diagram.story import (
    NODES_MAX,
    PROOF,
    STEPS_MAX,
    VIOLATION,
    Arrow,
    Step,
    Story,
    brief,
)
from beforehand.errors import InputError, visible
from beforehand.events import (
    BROADCAST,
    CRASH,
    DELIVER,
    DROP,
    EXPIRE,
    KINDS,
    RECEIVE,
    RECOVER,
)
from beforehand.kernels.verify.causality import LATE, TWICE
from beforehand.play.messages import index_messages
from beforehand.play.run import Ints, Run
from beforehand.units import format_duration

CAUSES_MAX, HOPS_MAX = 4, 4
NAMED = re.compile(r"(?P<name>.+?)(?: #(?P<rank>\d+)|:(?P<seq>-?\d+))")


def story_of_run(run: Run, around: str | None = None) -> Story:
    """Return the diagram of a run.

    around: a message, as `name #2` or `name:seq`. By default the first violation, else the message
    that waited longest for its causes.
    """
    return _Chooser(run).story(around)


class _Chooser:
    """The rows of a run by message, and the rows chosen so far, most important first."""

    def __init__(self, run: Run) -> None:
        self.run, self.events = run, run.events
        self.index = index_messages(run)
        self.message = self.index.find(run.events.origin, run.events.seq)
        self.order = np.argsort(self.message, kind="stable")
        self.ordered = self.message[self.order]
        self.marks: dict[int, str] = {}
        self.chosen: dict[int, None] = {}
        self.nodes: dict[int, None] = {}
        self.notes: list[str] = []
        self.is_full = False

    def story(self, around: str | None) -> Story:
        wrong = self.run.violations
        if around is None and len(wrong.t_us):
            summary = self._choose_violation(0)
        else:
            focus = self._longest_wait() if around is None else self._find(around)
            at = np.flatnonzero(self.index.find(wrong.origin, wrong.seq) == focus)
            summary = self._choose_violation(int(at[0])) if len(at) else self._choose_message(focus)
        self._add_faults()
        return self._story(summary)

    # ---- finding messages and rows ----

    def _find(self, text: str) -> int:
        names = self.run.names
        match = NAMED.fullmatch(text.strip())
        if match and match["name"] in names:
            origin = names.index(match["name"])
            mine = np.flatnonzero(self.index.origin == origin)
            if match["rank"] is not None and 1 <= int(match["rank"]) <= len(mine):
                return int(mine[int(match["rank"]) - 1])
            at = [m for m in mine.tolist() if match["seq"] == str(self.index.seq[m])]
            if at:
                return int(at[0])
        raise InputError(
            f"no message is named `{visible(text)}`",
            where="--around",
            hint="write the node and the number of its message, `L6-5 #12`, or `L6-5:SEQ`",
        )

    def _rows(self, message: int, kind: int, node: int | None = None) -> list[int]:
        low, high = np.searchsorted(self.ordered, [message, message + 1])
        rows = self.order[low:high]
        rows = rows[self.events.kind[rows] == kind]
        found: list[int] = (rows if node is None else rows[self.events.node[rows] == node]).tolist()
        return found

    def _longest_wait(self) -> int:
        """Return the message with the longest time between a reception and its delivery."""
        kind, t_us = self.events.kind, self.events.t_us
        pair = self.events.node * max(1, len(self.index.origin)) + self.message
        received, delivered = np.flatnonzero(kind == RECEIVE), np.flatnonzero(kind == DELIVER)
        if not len(self.index.origin):
            raise InputError("the log has no messages", where=self.run.name)
        if not len(received) or not len(delivered):
            return self._last_message(delivered)
        pairs, first = np.unique(pair[received], return_index=True)
        at = np.minimum(np.searchsorted(pairs, pair[delivered]), len(pairs) - 1)
        waits = t_us[delivered] - t_us[received[first[at]]]
        waits = np.where(pairs[at] == pair[delivered], waits, 0)
        if waits.max() <= 0:
            return self._last_message(delivered)
        return int(self.message[delivered[waits.argmax()]])

    def _last_message(self, delivered: Ints) -> int:
        self.notes.append("no message waited for a cause: this is the last one that was delivered")
        return int(self.message[delivered[-1]]) if len(delivered) else len(self.index.origin) - 1

    # ---- choosing ----

    def _add(self, rows: Iterable[int]) -> bool:
        """Add rows together, or none of them where the diagram is full; return whether it did."""
        new = [row for row in dict.fromkeys(rows) if row not in self.chosen]
        nodes = {**self.nodes, **dict.fromkeys(self.events.node[new].tolist())}
        if len(self.chosen) + len(new) > STEPS_MAX or len(nodes) > NODES_MAX:
            self.is_full = True
            return False
        self.chosen |= dict.fromkeys(new)
        self.nodes = nodes
        return True

    def _arrival(self, node: int, message: int, *, hops: int = HOPS_MAX) -> list[int]:
        """Return the rows by which a message came to a node: broadcast, hops, reception, delivery.

        The rows of the node come first, then those of the peer that sent it, and so on.
        """
        rows: list[int] = []
        until = len(self.events)
        for _ in range(hops):
            received = self._rows(message, RECEIVE, node)[:1]
            delivered = self._rows(message, DELIVER, node)[:1]
            rows += [*received, *(row for row in delivered if row < until)]
            until = min(received, default=until)
            sender = int(self.events.sender[received[0]]) if received else -1
            if sender < 0 or self._rows(message, BROADCAST, sender):
                break
            node = sender
        return [*rows, *self._rows(message, BROADCAST)]

    def _choose_violation(self, at: int) -> str:
        wrong = self.run.violations
        chain = wrong.chain[at] if at < len(wrong.chain) else np.zeros((0, 5), np.int64)
        proof = list(self._proof_rows(chain))
        self.marks |= dict.fromkeys(proof, PROOF)
        last = proof[0] if wrong.kind[at] not in (LATE, TWICE) and proof else (proof or [-1])[-1]
        self.marks[last] = VIOLATION
        if not self._add(proof):
            self._add([*proof[: STEPS_MAX // 2 - 1], *proof[-2:]])
            self.notes.append(f"the proof has {len(proof):,} events: its middle is left out")
        for row in proof:
            if self.events.kind[row] == DELIVER and row in self.chosen:
                self._add(self._arrival(int(self.events.node[row]), int(self.message[row])))
        node = self._name(int(wrong.node[at]))
        late = int(self.index.find(wrong.origin[at : at + 1], wrong.seq[at : at + 1])[0])
        return f"{node} delivered {self._title(late)} {self._why(at, chain)}"

    def _why(self, at: int, chain: Ints) -> str:
        kind = int(self.run.violations.kind[at])
        if kind == TWICE:
            return "a second time"
        if kind != LATE:
            return "before it was broadcast" if len(chain) > 1 else "which no node had broadcast"
        after = int(self.index.find(chain[-2:-1, 2], chain[-2:-1, 3])[0]) if len(chain) > 1 else -1
        return f"after {self._title(after)}, which causally follows it"

    def _proof_rows(self, chain: Ints) -> Iterator[int]:
        """Yield the rows of the log that a proof names."""
        used: set[int] = set()
        messages = self.index.find(chain[:, 2], chain[:, 3])
        for (t_us, node, _, _, sent), message in zip(chain.tolist(), messages, strict=True):
            kind = BROADCAST if sent else DELIVER
            rows = [row for row in self._rows(int(message), kind, node) if row not in used]
            row = next((row for row in rows if self.events.t_us[row] == t_us), None)
            if row is not None:
                used.add(row)
                yield row

    def _choose_message(self, message: int) -> str:
        waited = self._longest_at(message)
        self._add(self._rows(message, BROADCAST))
        summary = f"how {self._title(message)} spread"
        causes = self._causes(message)
        if waited is not None:
            received, delivered = waited
            node = int(self.events.node[delivered])
            wait = format_duration(int(self.events.t_us[delivered] - self.events.t_us[received]))
            summary = (
                f"{self._name(node)} received {self._title(message)}, and delivered it {wait} later"
            )
            self._add([received, delivered])
            self._add(self._arrival(node, message))
            missing = self._missing(node, message, received, delivered)
            if missing and self.run.pasts is not None:
                summary += f", after its cause {self._title(missing[0])}"
            for cause in missing[:CAUSES_MAX]:
                self._add(self._arrival(node, cause))
            causes = list(dict.fromkeys([*missing[:CAUSES_MAX], *causes]))
        for cause in causes[:CAUSES_MAX]:
            for origin in self.index.origin[message : message + 1].tolist():
                self._add([*self._arrival(origin, cause, hops=2), *self._rows(cause, BROADCAST)])
        for kind in (EXPIRE, DROP, DELIVER):
            for row in self._rows(message, kind):
                self._add([row, *self._arrival(int(self.events.node[row]), message, hops=1)])
        return summary

    def _longest_at(self, message: int) -> tuple[int, int] | None:
        """Return the reception and the delivery at the node where a message waited longest."""
        first = {int(self.events.node[row]): row for row in self._rows(message, RECEIVE)[::-1]}
        pairs = [
            (first[node], row)
            for row in self._rows(message, DELIVER)
            if (node := int(self.events.node[row])) in first
        ]
        t_us = self.events.t_us
        longest = max(pairs, key=lambda pair: int(t_us[pair[1]] - t_us[pair[0]]), default=None)
        return longest if longest and t_us[longest[1]] > t_us[longest[0]] else None

    def _causes(self, message: int) -> list[int]:
        """Return the causes that a message names, if the log keeps them."""
        if self.run.pasts is None:
            return []
        origin, seq = self.index.origin[message], self.index.seq[message]
        rows = self.run.pasts[(self.run.pasts[:, 0] == origin) & (self.run.pasts[:, 1] == seq)]
        found = self.index.find(rows[:, 2], rows[:, 3])
        return [int(cause) for cause in found if cause >= 0]

    def _missing(self, node: int, message: int, received: int, delivered: int) -> list[int]:
        """Return the causes of a message that a node delivered while the message waited.

        Those that the node received last come first: the others waited for them.
        """
        kind, at = self.events.kind, slice(received, delivered)
        rows = received + np.flatnonzero((kind[at] == DELIVER) & (self.events.node[at] == node))
        meanwhile = {int(self.message[row]) for row in rows.tolist()}
        found: dict[int, None] = {}
        stack = [message]
        while stack:
            new = [c for c in self._causes(stack.pop()) if c in meanwhile and c not in found]
            found |= dict.fromkeys(new)
            stack += new
        if self.run.pasts is None:
            found = dict.fromkeys([int(self.message[row]) for row in rows[-2:].tolist()])
        return sorted(found, key=lambda m: (self._rows(m, RECEIVE, node) or [-1])[0], reverse=True)

    def _add_faults(self) -> None:
        """Add losses of the chosen messages, and crashes, at the chosen nodes."""
        rows = sorted(self.chosen)
        messages = {int(self.message[row]) for row in rows}
        kind, node = self.events.kind, self.events.node
        at_node = np.isin(node, list(self.nodes))
        is_loss = np.isin(kind, (EXPIRE, DROP)) & np.isin(self.message, list(messages))
        is_crash = np.isin(kind, (CRASH, RECOVER))
        if rows:
            is_crash[: rows[0]] = is_crash[rows[-1] + 1 :] = False
        for row in np.flatnonzero((is_loss | is_crash) & at_node).tolist():
            self._add([row])

    # ---- describing ----

    def _name(self, node: int) -> str:
        return brief(
            visible(self.run.names[node]) if 0 <= node < len(self.run.names) else str(node)
        )

    def _title(self, message: int) -> str:
        if message < 0:
            return "a message"
        origin = int(self.index.origin[message])
        name = self._name(origin)
        if message >= self.index.broadcast_count:
            return f"{name}:{self.index.seq[message]}"
        return f"{name} #{int((self.index.origin[: message + 1] == origin).sum())}"

    def _story(self, summary: str) -> Story:
        rows = [row for row in sorted(self.chosen) if not self._is_instant(row)]
        at = {row: number for number, row in enumerate(rows)}
        names = [visible(name) for name in self.run.names]
        steps = tuple(
            Step(
                node=names[int(self.events.node[row])],
                kind=KINDS[int(self.events.kind[row])],
                message="" if self.message[row] < 0 else self._title(int(self.message[row])),
                note=_clock(int(self.events.t_us[row])),
                mark=self.marks.get(row, ""),
            )
            for row in rows
        )
        order = dict.fromkeys(step.node for step in steps)
        return Story(
            title=visible(self.run.title),
            summary=summary,
            nodes=tuple(order),
            steps=steps,
            arrows=tuple(self._arrows(rows, at)),
            waits=tuple(self._waits(rows, at)),
            notes=(*self.notes, *self._left_out(rows)),
        )

    def _is_instant(self, row: int) -> bool:
        """Return whether a row is one step with another at the same time.

        That is a reception with its delivery, and the delivery of a node's own message.
        """
        message, node = int(self.message[row]), int(self.events.node[row])
        if self.events.kind[row] == DELIVER and not self.marks.get(row):
            sent = self._rows(message, BROADCAST, node)
            return bool(sent) and self.events.t_us[sent[0]] == self.events.t_us[row]
        if self.events.kind[row] != RECEIVE:
            return False
        later = self._rows(message, DELIVER, node)[:1]
        return any(
            row < other
            and other in self.chosen
            and self.events.t_us[other] == self.events.t_us[row]
            for other in later
        )

    def _arrows(self, rows: list[int], at: dict[int, int]) -> Iterator[Arrow]:
        arrived: set[tuple[int, int]] = set()
        for row in rows:
            pair = int(self.events.node[row]), int(self.message[row])
            if self.events.kind[row] not in (RECEIVE, DELIVER) or pair in arrived:
                continue
            arrived.add(pair)
            sent = [other for other in self._rows(pair[1], BROADCAST) if other in at]
            if sent and self.events.node[sent[0]] == pair[0] and sent[0] < row:
                continue  # its own message
            received = self._rows(pair[1], RECEIVE, pair[0])[:1]
            sender = int(self.events.sender[received[0]]) if received else -1
            had = [*self._rows(pair[1], RECEIVE, sender), *self._rows(pair[1], DELIVER, sender)]
            hops = [other for other in had if other in at and other < row] if sender >= 0 else []
            if sender >= 0 and sent and self.events.node[sent[0]] == sender:
                hops = sent
            if hops:
                yield Arrow(at[min(hops)], at[row])
            elif sent:
                yield Arrow(at[sent[0]], at[row], is_hop=False)

    def _waits(self, rows: list[int], at: dict[int, int]) -> Iterator[tuple[int, int]]:
        for row in rows:
            if self.events.kind[row] == RECEIVE:
                node, message = int(self.events.node[row]), int(self.message[row])
                for delivered in self._rows(message, DELIVER, node)[:1]:
                    if delivered in at and delivered > row:
                        yield at[row], at[delivered]

    def _left_out(self, rows: list[int]) -> Iterator[str]:
        nodes = len({*self.events.node.tolist()})
        yield (
            f"{len(self.chosen):,} of {len(self.events):,} events at {len(self.nodes):,} of "
            f"{nodes:,} nodes of run {visible(self.run.name)}; the others are left out"
        )
        if self.is_full:
            yield f"the diagram is full: it has at most {STEPS_MAX} events at {NODES_MAX} nodes"
        if self.run.pasts is None:
            yield "the log does not keep the causes that messages name"
        if not self.run.has_senders:
            yield "the log does not name senders: an arrow goes from the broadcast to the delivery"


def _clock(t_us: Any) -> str:
    seconds, ms = divmod(t_us // 1000, 1000)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{ms:03}"
