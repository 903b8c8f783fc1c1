"""The figures, the verdict and the log of a run that the twin plays page by page."""

import io
import math
from contextlib import suppress
from pathlib import Path

import msgspec
import numpy as np
import pyarrow.parquet as pq
import pytest

from beforehand.events import COLUMNS, About
from beforehand.protocols.epidemic.options import Options
from beforehand.sim.contacts.engines import play_measured
from beforehand.sim.contacts.run import Spec
from beforehand.sim.contacts.running import DelayStatistics
from beforehand.sim.contacts.summary import describe
from beforehand.sim.contacts.traffic import Traffic
from beforehand.sim.log_writer import ROWS_PER_GROUP, event_writer
from beforehand.verify.event_log import read_logs
from tests.sim.contacts.engine_worlds import draw_world, expiring_world


def written(trace, spec, engine):
    buffer = io.BytesIO()
    found = play_measured(
        trace,
        spec,
        engine,
        open_writer=lambda: event_writer(
            buffer, "r", promise="causal", names=trace.names, about=About(skew_us=3)
        ),
    )
    return found, buffer


def unbounded(trace, spec):
    layer = msgspec.structs.replace(spec.layer, capacity=None)
    return trace, msgspec.structs.replace(spec, layer=layer)


def assert_equal(one, other):
    for name, value in one.items():
        if isinstance(value, dict):
            for part, number in value.items():
                there = other[name][part]
                assert (number is None) == (there is None), name
                assert number is None or math.isclose(number, there, abs_tol=1e-6), name
        else:
            assert value == other[name], name


def test_streamed_figures_and_logs_are_those_of_the_cores():
    rows = waiting = 0
    for seed in range(3000, 3030):
        trace, spec = unbounded(*draw_world(seed, size=0.1))
        cores, whole = written(trace, spec, "cores")
        twin, streamed = written(trace, spec, "twin")
        assert (cores.engine, twin.engine) == ("cores", "twin")
        assert_equal(cores.summary, twin.summary)
        assert cores.violations == twin.violations
        assert cores.rows == twin.rows
        assert whole.getvalue() == streamed.getvalue()
        rows += twin.rows
        waiting += twin.summary["waiting"]
    assert rows > 5_000
    assert waiting > 0


def test_messages_that_expire_undelivered_are_counted():
    cores, twin = (written(*expiring_world(), engine)[0] for engine in ("cores", "twin"))
    assert_equal(cores.summary, twin.summary)
    assert twin.summary["expired"] > 10


def test_bounded_caches_give_the_figures_of_the_whole_log():
    """A message that is received again needs more than the running figures remember."""
    again = 0
    for seed in range(3030, 3042):
        trace, spec = draw_world(seed, size=0.1)
        layer = Options(announce_us=100_000, capacity=3, retry_us=spec.layer.retry_us)
        spec = msgspec.structs.replace(spec, layer=layer)
        cores, whole = written(trace, spec, "cores")
        twin, streamed = written(trace, spec, "twin")
        assert twin.engine == "twin"
        assert_equal(cores.summary, twin.summary)
        assert whole.getvalue() == streamed.getvalue()
        again += twin.summary["again"]
    assert again > 5


def some_rows(count):
    columns = {name: np.arange(count).astype(kind) for name, kind in COLUMNS.items()}
    return {**columns, "kind": np.full(count, 6, np.int8)}, np.empty(0, np.int32)


@pytest.mark.parametrize("size", [1, 1000, ROWS_PER_GROUP, ROWS_PER_GROUP + 1])
def test_a_log_in_parts_is_the_log_in_one(size):
    count = ROWS_PER_GROUP + 7
    columns, senders = some_rows(count)
    logs = []
    for part in (count, max(size, 1000)):
        buffer = io.BytesIO()
        with event_writer(buffer, "r", promise="none", names=("a",), about=About()) as writer:
            for start in range(0, count, part):
                rows = {name: column[start : start + part] for name, column in columns.items()}
                writer.add(rows, senders)
        logs.append(buffer.getvalue())
    assert logs[0] == logs[1]
    assert pq.read_metadata(io.BytesIO(logs[0])).num_row_groups == 2
    table = pq.read_table(io.BytesIO(logs[0]))
    assert table["step"].to_pylist() == list(range(count))


def test_a_written_log_names_its_events_and_can_be_verified(tmp_path):
    trace, spec = unbounded(*draw_world(3001, size=0.1))
    path = tmp_path / "run.parquet"
    play_measured(trace, spec, "twin", open_writer=writer_of(path, trace))
    (log,) = read_logs(path)
    assert log.about.events == pq.read_metadata(path).num_rows
    assert log.about.names == trace.names
    assert log.doubts == ()


def writer_of(path: Path, trace):
    return lambda: event_writer(path, "r", promise="causal", names=trace.names, about=About())


def test_a_run_that_fails_leaves_no_log(tmp_path):
    path = tmp_path / "run.parquet"
    columns, senders = some_rows(10)
    with suppress(KeyError), writer_of(path, draw_world(1)[0])() as writer:
        writer.add(columns, senders)
        assert len(list(tmp_path.iterdir())) == 1
        writer.add({}, senders)
    assert list(tmp_path.iterdir()) == []


def test_a_spread_of_parts_is_that_of_all_values():
    rng = np.random.default_rng(1)
    values = np.concatenate([rng.integers(0, 10**12, 1000), np.full(500, 7)])
    spread = DelayStatistics()
    assert spread.described() == describe(values[:0])
    for part in np.array_split(values, 9):
        spread.add(part)
    spread.add(values[:0])
    for name, value in describe(values).items():
        assert math.isclose(value, spread.described()[name], rel_tol=1e-12)


def test_a_run_without_broadcasts_has_figures_that_are_unknown():
    trace, _ = draw_world(5)
    spec = Spec("causal", traffic=Traffic(first_us=1 << 50))
    found = play_measured(trace, spec, "twin")
    assert found.summary["broadcasts"] == found.summary["receptions"] == 0
    assert found.summary["delivery_ratio"] is None
    assert found.summary["delay_us"] == dict.fromkeys(("min", "max", "avg", "stdev"))
