"""Choose the events of a log of another system that a diagram shows, by its causality alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import PurePath

from beforehand.diagram.story import NODES_MAX, PROOF, STEPS_MAX, VIOLATION, Arrow, Step, Story
from beforehand.errors import InputError, visible
from beforehand.logs.model import BROADCAST, DELIVER, RECEIVE, SEND, Run
from beforehand.verify.foreign.findings import Finding, Order
from beforehand.verify.foreign.judge import LogVerdict

WORDS_MAX = 40


def story_of_log(run: Run, verdict: LogVerdict, around: str | None = None) -> Story:
    """Return the diagram of a run of another system.

    around: the id of a message or of an event. By default the first violation, else the message
    that took longest.
    """
    if not run.events:
        raise InputError("there are no events in the log", where=visible(run.name))
    return _Chooser(run, verdict).story(around)


class _Chooser:
    """The events of a run by number, and the causes of each one."""

    def __init__(self, run: Run, verdict: LogVerdict) -> None:
        self.run, self.verdict = run, verdict
        order = Order(run, run.events)
        ordered = order.sequences if run.is_sequential else [[event] for event in run.events]
        self.events = [event for sequence in ordered for event in sequence]
        self.number = {id(event): at for at, event in enumerate(self.events)}
        self.previous: dict[int, int] = {}
        for sequence in ordered:
            numbers = [self.number[id(event)] for event in sequence]
            self.previous |= dict(zip(numbers[1:], numbers, strict=False))
        self.causes: dict[int, list[int]] = {}
        """The causes of each event at other nodes."""
        for cause, effect in self._edges():
            self.causes.setdefault(effect, []).append(cause)

    def _edges(self) -> Iterator[tuple[int, int]]:
        if self.run.causality == "clocks":
            yield from self._clock_edges()
        if self.run.causality == "parents":
            ids = {event.id: at for at, event in enumerate(self.events) if event.id}
            for at, event in enumerate(self.events):
                yield from ((ids[parent], at) for parent in event.parents if parent in ids)
        put: dict[str, list[int]] = {}
        for at, event in enumerate(self.events):
            if event.kind in (BROADCAST, SEND) and event.message:
                put.setdefault(event.message, []).append(at)
        got: set[tuple[str, str]] = set()
        for at, event in enumerate(self.events):
            if event.kind not in (DELIVER, RECEIVE):
                continue
            pair = event.node, event.message
            # Of a message that was sent several times, the log does not say which one arrived.
            if pair not in got and len(put.get(event.message, ())) == 1:
                got.add(pair)
                yield put[event.message][0], at

    def _clock_edges(self) -> Iterator[tuple[int, int]]:
        """Yield for each event the last events that its clock learned of, without their causes."""
        keys = {(event.node, event.position): at for at, event in enumerate(self.events)}
        for at, event in enumerate(self.events):
            before = self.events[self.previous[at]].clock if at in self.previous else None
            clock = event.clock or {}
            grown = {h: k for h, k in clock.items() if k > (before or {}).get(h, 0)}
            found = {h: keys[h, k] for h, k in grown.items() if h != event.node and (h, k) in keys}
            for host, cause in found.items():
                others = (self.events[c].clock or {} for h, c in found.items() if h != host)
                if not any(other.get(host, 0) >= grown[host] for other in others):
                    yield cause, at

    # ---- choosing ----

    def story(self, around: str | None) -> Story:
        findings = self.verdict.findings
        marks: dict[int, str] = {}
        if around is None and findings:
            summary = findings[0].summary
            core = self._proof(findings[0])
            marks = dict.fromkeys(core, PROOF) | {core[-1]: VIOLATION}
        else:
            core, summary = self._around(around)
        chosen, past = self._grow(core)
        return self._story(summary, chosen, marks, past)

    def _proof(self, finding: Finding) -> list[int]:
        core = [self.number[id(event)] for event in finding.chain() if id(event) in self.number]
        assert core, "a finding has events"
        return core

    def _around(self, around: str | None) -> tuple[list[int], str]:
        if around is not None:
            events = enumerate(self.events)
            core = [at for at, event in events if around in (event.message, event.id) and around]
            if not core:
                raise InputError(
                    f"no message and no event has the id `{visible(around)}`",
                    where="--around",
                    hint="take an id as the log has it; `beforehand logs FILE` shows some",
                )
            return core, f"`{visible(around)}` and its causal past"
        last, summary = self._slowest(), "the message that took longest"
        if last is None:
            with_cause = [at for at in range(len(self.events)) if self.causes.get(at)]
            last = with_cause[-1] if with_cause else len(self.events) - 1
            summary = "the last event that has a cause at another node"
        return [*self.causes.get(last, ()), last], f"{summary}, and its causal past"

    def _slowest(self) -> int | None:
        """Return the event that came longest after its cause, by physical time."""
        best, longest = None, 0
        for effect, causes in self.causes.items():
            for cause in causes:
                one, two = self.events[cause].time_ns, self.events[effect].time_ns
                if one is not None and two is not None and two - one > longest:
                    best, longest = effect, two - one
        return best

    def _grow(self, core: Sequence[int]) -> tuple[list[int], int]:
        """Return the core with the nearest events of its causal past, and the size of that past."""
        chosen = dict.fromkeys(_ends(core))
        nodes = {self.events[at].node for at in chosen}
        seen, level = set(core), list(core)
        while level:
            following: dict[int, None] = {}
            for at in level:
                near = [*self.causes.get(at, ())]
                near += [self.previous[at]] if at in self.previous else []
                following |= dict.fromkeys(cause for cause in near if cause not in seen)
            seen |= following.keys()
            for at in following:
                has_room = len(nodes | {self.events[at].node}) <= NODES_MAX
                if len(chosen) < STEPS_MAX and has_room:
                    chosen[at] = None
                    nodes.add(self.events[at].node)
            level = list(following)
        return list(chosen), len(seen)

    # ---- describing ----

    def _story(self, summary: str, chosen: list[int], marks: dict[int, str], past: int) -> Story:
        rows = self._sorted(chosen)
        at = {row: number for number, row in enumerate(rows)}
        steps = tuple(self._step(row, marks.get(row, "")) for row in rows)
        arrows = [
            Arrow(at[cause], at[row])
            for row in rows
            for cause in self.causes.get(row, ())
            if cause in at
        ]
        all_nodes = {event.node for event in self.events}
        nodes = tuple(dict.fromkeys(step.node for step in steps))
        left_out = [
            f"{len(rows):,} of {len(self.events):,} events at {len(nodes):,} of "
            f"{len(all_nodes):,} nodes of run {visible(self.run.name)}; the others are left out"
        ]
        if past > len(rows):
            left_out.append(f"the causal past has {past:,} events: only the nearest are shown")
        left_out.append(f"the arrows are those that the log proves: {self._source()}")
        return Story(
            visible(self.run.name),
            visible(summary),
            nodes,
            steps,
            tuple(arrows),
            notes=tuple(left_out),
        )

    def _source(self) -> str:
        words = {"clocks": "vector clocks", "parents": "ids of causes", "messages": "messages"}
        return words.get(self.run.causality, "none, as it has no source of causality")

    def _step(self, row: int, mark: str) -> Step:
        event = self.events[row]
        words = event.message or event.text or event.id
        return Step(
            node=visible(event.node),
            kind=visible(event.kind),
            message=visible(words)[:WORDS_MAX],
            note=visible(f"{PurePath(event.file).name}:{event.line}"),
            mark=mark,
        )

    def _sorted(self, chosen: Sequence[int]) -> list[int]:
        """Return events in an order that follows causality; a cycle is cut at its first event."""
        left = dict.fromkeys(sorted(chosen, key=self._key))
        lines: dict[str, list[int]] = {}
        for at in sorted(chosen) if self.run.is_sequential else ():
            lines.setdefault(self.events[at].node, []).append(at)
        before = {b: a for line in lines.values() for a, b in pairwise(line)}
        rows: list[int] = []
        while left:
            ready = (
                at
                for at in left
                if before.get(at) not in left
                and not any(c in left for c in self.causes.get(at, ()))
            )
            free = (at for at in left if before.get(at) not in left)
            row = next(ready, None)
            row = next(free) if row is None else row
            rows.append(row)
            del left[row]
        return rows

    def _key(self, at: int) -> tuple[int, str, int]:
        event = self.events[at]
        return (event.time_ns or 0, event.file, event.line)


def _ends(core: Sequence[int]) -> list[int]:
    """Return the first and last events of a long proof."""
    if len(core) <= STEPS_MAX:
        return list(core)
    return [*core[: STEPS_MAX // 2], *core[-STEPS_MAX // 2 :]]
