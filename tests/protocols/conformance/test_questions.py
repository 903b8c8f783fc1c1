"""Questions to a core: gauges, needs, tables, explain."""

from __future__ import annotations

import pickle

from tests.protocols.conformance.stage import played, watched
from tests.protocols.conformance.subjects import runs, subjects

DAY_US = 86_400_000_000


@subjects()
@runs(4)
def test_every_gauge_is_a_count(subject, seed):
    for stage in played(subject, seed):
        for node, core in watched(stage):
            gauges = core.gauges(stage.local_us(node))
            assert all(type(size) is int and size >= 0 for size in gauges.values()), gauges


@subjects()
@runs(3)
def test_a_question_changes_nothing(subject, seed):
    for stage in played(subject, seed):
        for node, core in watched(stage):
            before = pickle.dumps(core)
            _ = core.needs, core.tables, core.counters
            for question in ("gauges", "holds"):  # also with a clock that is far ahead
                if hasattr(core, question):
                    getattr(core, question)(stage.local_us(node) + DAY_US)
            for id in (*stage.oracle.pasts, ("stranger", -5)):
                core.explain(id)
            assert pickle.dumps(core) == before
