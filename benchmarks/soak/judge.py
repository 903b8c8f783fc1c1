"""Judge a seed by the records of the applications and by the event logs of their nodes.

The two sources are independent. The application records what it was told and what it received, in
order. `beforehand verify` judges the node's event log. The guarantees are:

- the verdict on the merged logs is *valid*;
- a broadcast that returned is in the log, and every node delivers it, unless it could expire in
  time;
- without an inbox, an application receives what its node delivered, in that order, each once. A
  kill may lose the last messages that it had not read; a clean stop loses none;
- with an inbox, it receives everything. Redelivery happens only after a restart, in the original
  order, and never for a message whose acknowledgement was confirmed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from beforehand.errors import BeforehandError
from beforehand.verify.verdict import verify_events
from soak.draw import NodeScript
from soak.member import LOGS

PROBLEMS_MAX = 20

Id = tuple[str, int]


@dataclass
class Life:
    """One incarnation of a node, as recorded by its application and its log."""

    number: int
    got: list[Id] = field(default_factory=list)
    said: list[Id] = field(default_factory=list)
    acking: set[Id] = field(default_factory=set)
    acked: set[Id] = field(default_factory=set)
    has_ended: bool = False
    """Whether it stopped cleanly; False if it was killed."""
    delivered: list[Id] = field(default_factory=list)
    """The deliveries of other nodes' messages, from the event log."""


@dataclass
class Judged:
    """The counts of one seed, and its problems."""

    broadcasts: int = 0
    deliveries: int = 0
    violations: int = 0
    duplicates: int = 0
    lost: int = 0
    cut_off: int = 0
    """Deliveries that a kill prevented the application from reading; allowed without an inbox."""
    again: int = 0
    """Redeliveries by an inbox after a restart; allowed."""
    expired: int = 0
    verdict: str = "unknown"
    problems: list[str] = field(default_factory=list)

    def blame(self, problem: str) -> None:
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append(problem)


def judge(nodes: Sequence[NodeScript], folder: Path) -> Judged:
    """Judge a completed seed in that folder, for all nodes with an application."""
    judged = Judged()
    _judge_logs(folder, judged)
    rows = _read_logs(folder)
    words: dict[Id, str] = {}
    spoken = {
        id for node in nodes for kind, id, _ in rows.get(node.name, []) if kind == "broadcast"
    }
    judged.broadcasts = len(spoken)
    lives = {node.name: _read_lives(node, folder, words, judged) for node in nodes}
    for node in nodes:
        own = rows.get(node.name, [])
        _add_deliveries(node, lives[node.name], own, judged)
        _judge_speeches(node, lives[node.name], spoken, judged)
        _judge_completeness(node, own, spoken, judged)
        (_judge_inbox if node.inbox else _judge_reading)(node, lives[node.name], judged)
    return judged


def _judge_logs(folder: Path, judged: Judged) -> None:
    try:
        verdict = verify_events(folder / LOGS)
    except BeforehandError as error:
        judged.blame(f"verify: {error.problem}")
        return
    judged.verdict = verdict.state
    judged.violations = sum(sum(run.counts.values()) for run in verdict.runs)
    judged.deliveries = sum(run.deliveries for run in verdict.runs)
    for run in verdict.runs:
        if run.state != "valid":
            judged.blame(f"verify: {run.state}: {run.reason} {run.counts}")
    for story in verdict.stories():
        judged.blame(story)


def _read_logs(folder: Path) -> dict[str, list[tuple[str, Id, int]]]:
    """Return (kind, message, value) in order for each node. Files may repeat; steps are unique."""
    found: dict[str, dict[int, tuple[str, Id, int]]] = {}
    for file in sorted((folder / LOGS).glob("*.node.parquet")):
        columns = pq.read_table(file).to_pydict()
        names = ("node", "step", "kind", "origin", "seq", "value")
        for node, step, kind, *id, value in zip(*(columns[name] for name in names), strict=True):
            found.setdefault(node, {})[step] = (kind, (id[0], id[1]), value)
    return {node: [rows[step] for step in sorted(rows)] for node, rows in found.items()}


def _read_lives(
    node: NodeScript, folder: Path, words: dict[Id, str], judged: Judged
) -> dict[int, Life]:
    lives: dict[int, Life] = {}
    life = Life(0)
    for kind, *fact in _read_records(folder / f"{node.name}.jsonl"):
        if kind == "start":
            life = lives[fact[0]] = Life(fact[0])
        elif kind == "end":
            life.has_ended = True
        elif kind in ("got", "said"):
            id = (fact[0], fact[1])
            getattr(life, kind).append(id)
            if words.setdefault(id, fact[2]) != fact[2]:
                judged.blame(f"{node.name}: {id} is `{words[id]}` and `{fact[2]}`")
        elif kind in ("acking", "acked"):
            getattr(life, kind).add((fact[0], fact[1]))
    return lives


def _read_records(path: Path) -> Iterator[list[Any]]:
    if path.exists():
        for line in path.read_bytes().splitlines():
            yield json.loads(line)


def _add_deliveries(
    node: NodeScript, lives: dict[int, Life], rows: list[tuple[str, Id, int]], judged: Judged
) -> None:
    life = Life(0)
    for kind, id, value in rows:
        if kind == "start":
            life = lives.get(value, Life(value))
            if value not in lives:
                judged.blame(f"{node.name}: its log has a start {value}, its program has none")
        elif kind == "deliver" and id[0] != node.name:
            life.delivered.append(id)


def _judge_speeches(
    node: NodeScript, lives: dict[int, Life], spoken: set[Id], judged: Judged
) -> None:
    """Check that every broadcast confirmed to an application is in the log."""
    for life in lives.values():
        for id in life.said:
            if id not in spoken:
                judged.lost += 1
                judged.blame(f"{node.name}: was told that {id} is said, and it was not")


def _judge_completeness(
    node: NodeScript, rows: list[tuple[str, Id, int]], spoken: set[Id], judged: Judged
) -> None:
    delivered = {id for kind, id, _ in rows if kind in ("deliver", "broadcast")}
    last_seq = max((seq for _, seq in spoken), default=0)
    for id in spoken - delivered:
        # Lifetimes are either 20 minutes or 1 s, and a sequence number is a deadline.
        if id[1] < last_seq - 600_000_000:
            judged.expired += 1
        else:
            judged.lost += 1
            judged.blame(f"{node.name}: never delivered {id}")


def _judge_reading(node: NodeScript, lives: dict[int, Life], judged: Judged) -> None:
    """Check at-most-once delivery without an inbox."""
    seen: set[Id] = set()
    carried: list[list[Id]] = [[]]
    for life in _in_order(lives):
        judged.duplicates += _count_again(node, life, seen, judged)
        seen.update(life.got)
        ways = [[*carry, *life.delivered] for carry in carried]
        fitting = [way for way in ways if way[: len(life.got)] == life.got]
        if not fitting:
            judged.lost += 1
            problem = f"got {_first_difference(ways[-1], life.got)} in life {life.number}"
            judged.blame(f"{node.name}: {problem}, which is not what its node delivered")
            fitting = [[*life.got]]
        left = fitting[-1][len(life.got) :]
        if life.has_ended:
            carried = [left]
            continue
        judged.cut_off += len(left)
        # If this incarnation was killed before it read anything, the older messages are still
        # there.
        carried = [[], *(carry for carry in carried if carry and not life.got)]
    if carried[-1]:
        judged.lost += len(carried[-1])
        judged.blame(f"{node.name}: its program never got {carried[-1][:3]}")


def _judge_inbox(node: NodeScript, lives: dict[int, Life], judged: Judged) -> None:
    """Check at-least-once delivery with an inbox."""
    order = {
        id: at for at, id in enumerate(id for life in _in_order(lives) for id in life.delivered)
    }
    acked: set[Id] = set()
    got: Counter[Id] = Counter()
    for life in _in_order(lives):
        judged.duplicates += _count_again(node, life, acked, judged)
        places = [order.get(id, -1) for id in life.got]
        if places != sorted(places):
            judged.violations += 1
            judged.blame(f"{node.name}: its program got life {life.number} in another order")
        if -1 in places:
            judged.violations += 1
            judged.blame(f"{node.name}: its program got what its node never delivered")
        got.update(life.got)
        acked |= life.acked | (life.acking if life.has_ended else set())
    judged.again += sum(got.values()) - len(got)
    if missing := order.keys() - got.keys():
        judged.lost += len(missing)
        judged.blame(f"{node.name}: its program never got {sorted(missing)[:3]}")


def _count_again(node: NodeScript, life: Life, before: set[Id], judged: Judged) -> int:
    """Count duplicates within one incarnation, and redeliveries that are not allowed."""
    twice = [id for id, times in Counter(life.got).items() if times > 1]
    again = [id for id in dict.fromkeys(life.got) if id in before]
    for id in (*twice, *again):
        judged.blame(f"{node.name}: its program got {id} twice, in life {life.number}")
    return len(twice) + len(again)


def _in_order(lives: dict[int, Life]) -> list[Life]:
    return [lives[number] for number in sorted(lives)]


def _first_difference(expected: list[Id], found: list[Id]) -> Id | None:
    for at, id in enumerate(found):
        if at >= len(expected) or expected[at] != id:
            return id
    return None
