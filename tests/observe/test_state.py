"""The state of an observer, without Spark."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from beforehand.errors import LocalError
from beforehand.observe.rows import join
from beforehand.observe.saved import decode_state, encode_state, holding, read_head
from beforehand.observe.stamps import (
    ARRIVED_US,
    ENDS,
    KEY,
    LEAVES,
    PROCESS,
    TIE,
    TIME_US,
    ClockSource,
    Reordering,
)
from beforehand.observe.state import BatchMoment, State, new_state, take
from beforehand.protocols.observer.observer import Dial, cbd, dapw
from beforehand.protocols.observer.timestamp import Guarantees
from beforehand.sim.drift import Drift, deliver, rule_of, simulate
from tests.observe.drifting import SYSTEM, TICK_US, drifting_rows

SMALL = Guarantees(4, epsilon=3, delta=4, events_per_tick=100)
FULL_WAIT = 7  # δ + ε of SMALL, where c is 0


def order_of(dial: Dial, clock: ClockSource = "arrival", system: Guarantees = SYSTEM) -> Reordering:
    return Reordering(rule_of(dial, system), TICK_US, clock)


def marked(rows: pa.Table, *, ends: bool = False) -> pa.Table:
    """Return the rows with the columns that Spark adds to its input."""
    columns = rows.column_names
    tie = "id" if "id" in columns else "process"  # anything that belongs to the row will do
    names = rows["observer"] if "observer" in columns else pa.array([""] * len(rows))
    marks = {PROCESS: rows["process"], TIE: rows[tie], ENDS: pa.array([ends] * len(rows))}
    marks[KEY] = names
    if "arrived" in columns:
        marks[ARRIVED_US] = rows["arrived"]
    if "stamp" not in columns:
        marks[TIME_US] = rows["time"]
    for name, column in marks.items():
        rows = rows.append_column(name, column)
    return rows


def events(*arrivals: tuple[Any, ...], ends: bool = False) -> pa.Table:
    """Return a table of rows (name, process, r, c, tick of arrival); no stamp without r."""
    names, processes, rs, cs, ticks = zip(*arrivals, strict=True)
    pairs = zip(rs, cs, strict=True)
    stamps = [None if r is None else {"r": r, "c": c, "kn": [0]} for r, c in pairs]
    kind = pa.struct({"r": pa.int64(), "c": pa.int64(), "kn": pa.list_(pa.int64())})
    arrived = [None if tick is None else tick * TICK_US for tick in ticks]
    columns = {
        "name": pa.array(names),
        "process": pa.array(processes, pa.int64()),
        "stamp": pa.array(stamps, kind),
        "arrived": pa.array(arrived, pa.int64()),
    }
    return marked(pa.table(columns), ends=ends)


def take_rows(
    state: State, rows: pa.Table, order: Reordering, now_us: int = 0
) -> tuple[State, pa.Table]:
    return take(state, rows, order, BatchMoment(now_us))


def run_out(state: State, order: Reordering, like: pa.Table) -> tuple[State, pa.Table]:
    """Deliver all that is held, as at the end of a table with rows like these."""
    return take(state, like.slice(0, 0), order, BatchMoment(is_last=True))


def through_bytes(state: State, order: Reordering) -> State:
    return decode_state(encode_state(state, order, 1), order, 1)


def play(order: Reordering, *batches: pa.Table) -> tuple[State, pa.Table]:
    """Play batches; the state goes through bytes after each, as in Spark."""
    state, outs = new_state(order), []
    for batch in batches:
        state, out = take_rows(state, batch, order)
        state = through_bytes(state, order)
        outs.append(out)
    state, out = run_out(state, order, batches[0])
    return state, join([*outs, out])


def names(table: pa.Table) -> list[str]:
    return table["name"].to_pylist()


def ticks(table: pa.Table) -> list[int]:
    return (table["delivered_us"].to_numpy() // TICK_US).tolist()


@pytest.mark.parametrize("dial", [cbd(60), dapw(40), cbd(80, 2), cbd(0), cbd(100)])
def test_an_observer_delivers_what_the_simulated_one_delivers(dial):
    spec = Drift(messages=3000, seed=5)
    expected = deliver(simulate(spec), spec, dial)
    order = Reordering(rule_of(dial, spec.guarantees), TICK_US, "arrival")
    _, out = play(order, marked(drifting_rows(5, 3000)))
    assert out["id"].to_pylist() == expected.label.tolist()
    assert out["suspect"].to_pylist() == expected.is_overtaken.tolist()
    assert ticks(out) == expected.tick.tolist()
    assert out["delivered_seq"].to_pylist() == list(range(len(out)))


@pytest.mark.parametrize("dial", [cbd(60), dapw(0), cbd(30, 2)])
@pytest.mark.parametrize("size", [1, 7, 100])
def test_cutting_the_rows_into_batches_changes_nothing(dial, size):
    rows = marked(drifting_rows(3, 300, distinct=False))
    order = order_of(dial)
    _, whole = play(order, rows)
    rng = np.random.default_rng(1)
    batches = [rows.slice(start, size) for start in range(0, len(rows), size)]
    # Spark hands over the rows of a batch in any order.
    _, parts = play(order, *(b.take(rng.permutation(len(b))) for b in batches))
    assert parts.equals(whole)
    assert len(whole) == len(rows)


def test_the_latest_rows_wait_for_others_of_the_same_time():
    order = order_of(cbd(0), system=SMALL)
    first = events(("a", 0, 1, 0, 1), ("c", 2, 9, 0, 9))
    state, out = take_rows(new_state(order), first, order)
    assert (names(out), state.held) == (["a"], 1)
    state, out = take_rows(state, events(("b", 1, 8, 0, 9), ("d", 3, 9, 0, 10)), order)
    assert (names(out), state.held) == (["b", "c"], 1)


def test_the_state_of_other_settings_is_refused():
    order = order_of(cbd(60))
    data = encode_state(new_state(order), order, 2)
    for other, partitions in ((order_of(cbd(61)), 2), (order_of(cbd(60), "event"), 2), (order, 3)):
        with pytest.raises(LocalError, match="were started with"):
            decode_state(data, other, partitions)


def test_extra_columns_are_unchanged():
    instant = datetime.datetime(2026, 1, 1, 1, 2, 3, 456789, tzinfo=datetime.UTC)
    others = {
        "big": pa.array([2**60 + 1, None, 3], pa.int64()),
        "when": pa.array([instant, None, instant], pa.timestamp("us", "UTC")),
        "price": pa.array([Decimal("1.10"), Decimal("2.20"), None], pa.decimal128(9, 2)),
        "raw": pa.array([b"\x00\xff", b"", None]),
        "deep": pa.array([{"tags": ["x", None]}, None, {"tags": []}]),
        "map": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int32())),
    }
    rows = events(("c", 0, 3, 0, 4), ("b", 1, 2, 0, 5), ("a", 2, 1, 0, 6))
    for name, column in others.items():
        rows = rows.append_column(name, column)
    _, out = play(order_of(cbd(100), system=SMALL), rows.slice(0, 1), rows.slice(1))
    assert names(out) == ["a", "b", "c"]
    expected = rows.select(list(others)).take([2, 1, 0])
    assert out.select(list(others)).equals(expected.combine_chunks())


def test_a_late_message_is_delivered_at_once_and_marked():
    rows = events(("x", 0, 50, 0, 51), ("late", 1, 40, 0, 52), ("y", 2, 53, 0, 54))
    _, out = play(order_of(cbd(100), system=SMALL), rows)
    assert names(out) == ["late", "x", "y"]
    assert out["late"].to_pylist() == [True, False, False]
    assert ticks(out) == [52, 57, 60]
    assert out["waited_us"].to_pylist() == [0, 6000, 6000]


def test_a_message_that_arrives_after_its_place_in_the_order_is_suspect():
    rows = events(("x", 0, 50, 0, 51), ("gone", 1, 40, 0, 58), ("y", 2, 57, 0, 59))
    _, out = play(order_of(cbd(100), system=SMALL), rows)
    assert names(out) == ["x", "gone", "y"]
    assert out["suspect"].to_pylist() == [False, True, False]


def test_a_message_counts_as_moved_if_a_later_arrival_overtook_it():
    rows = events(("c", 0, 5, 0, 5), ("d", 1, 6, 0, 6), ("b", 2, 4, 0, 7), ("e", 3, 8, 0, 9))
    order = order_of(cbd(100), system=SMALL)
    _, out = play(order, rows)
    assert names(out) == ["b", "c", "d", "e"]
    assert out["moved"].to_pylist() == [False, True, True, False]
    assert play(order, rows.slice(0, 2), rows.slice(2))[1].equals(out)


def test_a_row_without_a_stamp_is_taken_as_sent_on_receipt():
    rows = events(("a", 0, 10, 0, 11), ("?", 1, None, 0, 12), ("b", 2, 13, 0, 14))
    for clock in ("arrival", "event"):
        _, out = play(order_of(cbd(100), clock, SMALL), rows)
        assert sorted(names(out)) == ["?", "a", "b"]
        assert dict(zip(names(out), out["reset"].to_pylist(), strict=True)) == {
            "a": False,
            "?": True,
            "b": False,
        }
    _, alone = play(order_of(cbd(100), "event", SMALL), rows.slice(1, 1))
    assert names(alone) == ["?"]


@pytest.mark.parametrize("r", [2**62, -(2**63), 10**6])
def test_an_impossible_clock_value_is_not_waited_for(r):
    rows = events(("a", 0, 10, 0, 11), ("mad", 1, r, 0, 12), ("b", 2, 13, 0, 14))
    _, out = play(order_of(cbd(100), system=SMALL), rows)
    assert names(out) == ["a", "mad", "b"]
    assert out["reset"].to_pylist() == [False, True, False]
    assert ticks(out) == [17, 19, 20]


def test_a_row_without_an_arrival_time_is_not_lost():
    rows = events(("a", 0, 10, 0, 11), ("b", 1, 12, 0, None), ("c", 2, 13, 0, 14))
    _, out = play(order_of(cbd(100), system=SMALL), rows)
    assert sorted(names(out)) == ["a", "b", "c"]
    _, out = play(order_of(cbd(100), system=SMALL), rows.slice(1, 1), rows.slice(1, 1))
    assert names(out) == ["b", "b"]


def test_an_idle_process_does_not_stall_the_others():
    order = order_of(cbd(100), "event", SMALL)
    first = events(("idle", 0, 1, 0, None), ("a", 1, 2, 0, None))
    second = events(*((f"b{r}", 1, r, 0, None) for r in range(3, 30)))
    state, _ = take_rows(new_state(order), first, order)
    state, out = take_rows(state, second, order)
    # The clock shows 29, so all up to 29 - δ - ε is out.
    assert names(out) == ["idle", "a", *(f"b{r}" for r in range(3, 23))]
    assert state.held == 7


@pytest.mark.parametrize("size", [10, 333])
def test_in_event_time_the_full_wait_gives_one_order_for_any_batches(size):
    rows = marked(drifting_rows(4, 2000).drop_columns(["arrived"]))
    order = order_of(cbd(100), "event")
    _, whole = play(order, rows)
    _, parts = play(order, *(rows.slice(start, size) for start in range(0, len(rows), size)))
    assert parts["id"].equals(whole["id"])
    assert not pc.any(parts["late"]).as_py()
    assert not pc.any(parts["suspect"]).as_py()


def test_an_end_row_flushes_held_messages_and_is_no_message():
    order = order_of(cbd(100), system=SMALL)
    rows = events(("a", 0, 10, 0, 11), ("b", 1, 9, 0, 12))
    state, out = take_rows(new_state(order), rows, order)
    assert (names(out), state.held) == ([], 2)
    end = events(("end", None, None, None, None), ends=True)
    state, out = take_rows(state, end, order)
    assert (names(out), state.held) == (["b", "a"], 0)
    state, out = take_rows(state, events(("c", 0, 30, 0, 31), ("d", 0, 40, 0, 41)), order)
    assert (names(out), state.held) == ([], 2)


def test_in_processing_time_rows_arrive_with_their_batch_and_leave_when_due():
    order = order_of(cbd(100), "wall", SMALL)
    rows = events(("b", 0, 12, 0, None), ("a", 1, 11, 0, None))
    state, out = take_rows(new_state(order), rows, order, now_us=12_500)
    assert names(out) == []
    state, out = take_rows(state, rows.slice(0, 0), order, now_us=17_900)
    assert names(out) == []
    state, out = take_rows(state, rows.slice(0, 0), order, now_us=18_900)
    assert names(out) == ["a"]
    state, out = take_rows(state, rows.slice(0, 0), order, now_us=25_000)
    assert (names(out), state.held) == (["b"], 0)
    assert out["waited_us"].to_pylist() == [7000]


def test_rows_that_are_overdue_when_the_batch_comes_go_in_order_of_their_stamps():
    order = order_of(cbd(100), "wall", SMALL)
    rows = events(("c", 0, 3, 0, None), ("a", 2, 1, 0, None), ("b", 1, 2, 0, None))
    _, out = take_rows(new_state(order), rows, order, now_us=900_000)
    assert names(out) == ["a", "b", "c"]


def test_an_idle_observer_wakes_and_flushes_all_messages():
    for clock, tick in (("event", None), ("arrival", 2)):
        order = order_of(cbd(100), clock, SMALL)
        rows = events(("a", 0, 1, 0, tick))
        nothing = rows.slice(0, 0)
        state, _ = take(new_state(order), rows, order, BatchMoment(5_000_000))
        for moment in (BatchMoment(99_000_000), BatchMoment(6_999_999, 2_000_000)):
            state, out = take(state, nothing, order, moment)
            assert (names(out), state.held) == ([], 1)
        state, out = take(state, nothing, order, BatchMoment(7_000_000, 2_000_000))
        assert (names(out), ticks(out), state.held) == (["a"], [8], 0)


def test_the_physical_clock_alone_is_a_column_of_times():
    rows = pa.table({"name": ["b", "a"], "process": [0, 1], "time": [12_900, 11_100]})
    order = order_of(Dial(100, elements=0, uses_c=False), "event", SMALL)
    _, out = play(order, marked(rows))
    assert (names(out), ticks(out)) == (["a", "b"], [18, 19])


def test_elements_that_were_not_sent_compare_as_equal():
    rows = events(("b", 1, 5, 0, 6), ("a", 0, 5, 0, 7))
    for elements in (0, 1, 4):
        _, out = play(order_of(cbd(100, elements), system=SMALL), rows)
        assert names(out) == ["a", "b"]
        assert not pc.any(out["reset"]).as_py()


def test_batches_may_disagree_on_what_may_be_null():
    rows = events(("b", 1, 5, 0, 6), ("a", 0, 5, 0, 6), ("c", 2, 6, 0, 7))
    kind = pa.struct([pa.field("tags", pa.list_(pa.field("element", pa.int64(), nullable=False)))])
    loose = rows.append_column("deep", pa.array([{"tags": [i]} for i in range(3)]))
    strict = rows.append_column(pa.field("deep", kind, nullable=False), loose["deep"].cast(kind))
    _, out = play(order_of(cbd(100), system=SMALL), strict.slice(0, 1), loose.slice(1))
    assert (names(out), out["deep"].to_pylist()[1]) == (["a", "b", "c"], {"tags": [0]})


def test_a_missing_arrival_marked_a_sound_row_as_reset():
    rows = [("a", 0, 5, 0, 5), ("x", 1, 6, 0, None), ("b", 0, 8, 0, 8), ("y", 1, 9, 0, None)]
    order = order_of(cbd(100), system=SMALL)
    _, whole = play(order, events(*rows))
    assert names(whole) == ["a", "x", "b", "y"]
    assert not pc.any(whole["reset"]).as_py()
    _, parts = play(order, events(*rows[:2]), events(*rows[2:3]), events(rows[3]))
    assert parts.equals(whole)
    _, alone = play(order, events(rows[3], rows[1]))
    assert names(alone) == ["x", "y"]
    assert not pc.any(alone["reset"]).as_py()
    # Without a stamp, too, nothing is known of the row.
    _, nothing = play(order, events(*rows, ("z", 1, None, 0, None)))
    assert [row["name"] for row in nothing.to_pylist() if row["reset"]] == ["z"]


def test_an_end_midway_differed_between_table_and_stream():
    order = order_of(cbd(100), system=SMALL)
    rows = events(*((f"{r}", r % 2, r, 0, r + 1) for r in range(2, 40)))
    ends = events(*(("end", None, None, None, tick) for tick in (11, 30)), ends=True)
    rows = rows.append_column(LEAVES, pa.array([False] * len(rows)))
    ends = ends.append_column(LEAVES, pa.array([True, True]))
    whole = join([rows.slice(0, 10), ends, rows.slice(10)])

    def lives(*batches: pa.Table) -> pa.Table:
        state, outs = new_state(order), []
        for batch in batches:
            state, out = take_rows(state, batch, order)
            state = through_bytes(state, order)
            outs.append(out)
        return join([*outs, run_out(state, order, batches[0])[1]])

    table = lives(whole)
    counts = [9, 19, 10]
    assert table["delivered_seq"].to_pylist() == [seq for n in counts for seq in range(n)]
    assert not pc.any(table["late"]).as_py()
    streamed = lives(
        rows.slice(0, 9), ends.slice(0, 1), rows.slice(9, 19), ends.slice(1), rows.slice(28)
    )
    assert streamed.equals(table)
    assert lives(
        rows.slice(0, 7),
        join([ends.slice(0, 1), rows.slice(7, 5)]),
        rows.slice(12, 10),
        join([rows.slice(22), ends.slice(1)]),
    ).equals(table)
    # An end without a time is that of its batch, and of the whole table.
    timeless = events(("end", None, None, None, None), ends=True)
    timeless = timeless.append_column(LEAVES, pa.array([True]))
    assert lives(join([rows.slice(0, 5), timeless, rows.slice(5)])).equals(lives(rows, timeless))
    # A flush in the same batch is for what is left.
    flush = timeless.set_column(timeless.column_names.index(LEAVES), LEAVES, [[False]])
    state, out = take_rows(new_state(order), join([whole, flush]), order)
    assert (len(out), state.held, len(state.keys)) == (len(rows), 0, 1)


def test_a_stamp_with_fewer_elements_than_required_is_reset():
    rows = events(("a", 0, 5, 0, 5))
    for elements_min, is_reset in ((1, False), (2, True)):
        order = order_of(cbd(100), system=SMALL)._replace(elements_min=elements_min)
        assert play(order, rows)[1]["reset"].to_pylist() == [is_reset]


@pytest.mark.parametrize("clock", ["arrival", "event"])
def test_observers_of_a_partition_do_not_affect_each_other(clock):
    tables = [drifting_rows(seed, 120, distinct=False) for seed in range(5)]
    rows = marked(pa.concat_tables(tables).sort_by("arrived"))
    nameless = pa.array([None if name == "eye-3" else name for name in rows[KEY].to_pylist()])
    rows = rows.set_column(rows.column_names.index(KEY), KEY, nameless)
    order = order_of(cbd(100), clock)
    batches = [rows.slice(start, 70) for start in range(0, len(rows), 70)]
    together = play(order, *batches)[1]
    assert len(together) == len(rows)
    for table in tables:
        name = table["observer"][0]
        own = [batch.filter(pc.equal(batch["observer"], name)) for batch in batches]
        alone = play(order, *own)[1]
        assert together.filter(pc.equal(together["observer"], name)).equals(alone)


def test_an_observer_that_has_ended_is_forgotten_and_one_that_is_flushed_is_not():
    order = order_of(cbd(100), "event", SMALL)
    rows = events(("a", 0, 1, 0, None), ("b", 1, 2, 0, None))
    state, _ = take_rows(new_state(order), rows, order)
    data = encode_state(state, order, 1)
    assert (read_head(data), holding(data)) == ((1, 2), [""])
    flush = events(("", None, None, None, None), ends=True)
    state, out = take_rows(state, flush, order)
    data = encode_state(state, order, 1)
    assert (len(out), read_head(data), holding(data)) == (2, (1, 0), [])
    state, out = take_rows(state, flush.append_column(LEAVES, pa.array([True])), order)
    assert (len(out), read_head(encode_state(state, order, 1))) == (0, (0, 0))


def test_the_end_of_one_observer_keeps_the_rows_of_others():
    order = order_of(cbd(100), "event", SMALL)
    rows = [events((name, 0, 1, 0, None)) for name in "abc"]
    keys = [
        table.set_column(table.column_names.index(KEY), KEY, [[name]])
        for table, name in zip(rows, "abc", strict=True)
    ]
    state, _ = take_rows(new_state(order), join(keys), order)
    end = events(("", None, None, None, None), ends=True).append_column(LEAVES, [[True]])
    end = end.set_column(end.column_names.index(KEY), KEY, [["b"]])
    state, out = take_rows(state, end, order)
    assert (names(out), state.keys.to_pylist(), state.held) == (["b"], ["a", "c"], 2)
    state = through_bytes(state, order)
    state, out = run_out(state, order, rows[0])
    assert names(out) == ["a", "c"]
    assert out["delivered_seq"].to_pylist() == [0, 0]
