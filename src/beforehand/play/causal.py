"""The details of a run that is laid out by causality: what the log lacks, and names of events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from beforehand.play.layout import STEP_US
from beforehand.play.messages import MessageIndex
from beforehand.play.pack import Pack
from beforehand.play.run import Ints, PageClock

LABEL_MAX = 60
FINDINGS_MAX = 200


@dataclass(frozen=True)
class Causal:
    """A run without a common clock."""

    kind: ClassVar[str] = "causal"
    source: str
    """From what the causality is known, in words."""
    noun: str
    """The name of a diamond of the diagram: a broadcast, or an event."""
    gaps: Ints
    """Rows of node, the places (in µs of the page) of the events before and after, and the number
    of events that are missing between them (-1: unknown)."""
    labels: Mapping[tuple[int, int], str]
    """The name of an event in the log, by origin and seq."""
    findings: tuple[str, ...] = ()
    """Each violation in words."""

    def encode(self, pack: Pack, clock: PageClock, messages: MessageIndex) -> dict[str, Any]:
        node, before_us, after_us, missing = self.gaps.T
        pack.add("gap.node", node)
        pack.add("gap.t", clock.ms(before_us))
        pack.add("gap.end", clock.ms(after_us))
        pack.add("gap.missing", missing)
        named = [[""] * len(messages.origin), []][not self.labels]
        if self.labels:
            ids = np.array([*self.labels], np.int64).reshape(-1, 2)
            for at, label in zip(messages.find(*ids.T), self.labels.values(), strict=True):
                if at >= 0:
                    named[at] = label[:LABEL_MAX]
        about = {"source": self.source, "noun": self.noun, "step_ms": STEP_US // 1000}
        return {**about, "labels": named, "findings": list(self.findings[:FINDINGS_MAX])}

    def cut(self, begin_us: int, end_us: int, chosen: Ints) -> Causal:
        kept = (self.gaps[:, 1] >= begin_us) & (self.gaps[:, 2] < end_us)
        return replace(self, gaps=self.gaps[kept & np.isin(self.gaps[:, 0], chosen)])
