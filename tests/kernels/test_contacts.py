"""Contact detection against exact arithmetic, against all pairs, and against cutting the time."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beforehand.kernels import contacts as kernel
from beforehand.kernels.contacts import Segments

Row = tuple[int, int, float, float, int, float, float]  # the columns of Segments
Spans = dict[tuple[int, int], list[tuple[int, int]]]

RANGES = st.sampled_from([0.5, 1.0, 5.0, 10.0, 12.5])


def segments_of(rows: list[Row]) -> Segments:
    columns = list(zip(*rows, strict=True)) if rows else [()] * 7
    kinds = (np.int64, np.int64, float, float, np.int64, float, float)
    return Segments(*(np.array(c, dtype=k) for c, k in zip(columns, kinds, strict=True)))


@st.composite
def paths(draw: st.DrawFn) -> list[Row]:
    """A few nodes on a metre grid: meets, touches, parallel ways, rests and jumps all come up."""
    rows: list[Row] = []
    for node in range(draw(st.integers(2, 4))):
        time = draw(st.integers(0, 20)) * draw(st.sampled_from([1, 1000, 500_000]))
        place = draw(st.tuples(st.integers(-12, 12), st.integers(-12, 12)))
        for _ in range(draw(st.integers(1, 4))):
            step = st.tuples(st.integers(-12, 12), st.integers(-12, 12))
            target = draw(st.one_of(st.just(place), step))
            lasts = draw(st.integers(1, 30)) * draw(st.sampled_from([1, 7, 1000, 1_000_000]))
            rows.append((node, time, *map(float, place), time + lasts, *map(float, target)))
            place = target if draw(st.integers(0, 4)) else draw(step)
            time += lasts + draw(st.sampled_from([0, 0, 0, 5, 2_000_000]))
    return rows


def exact_meeting(one: Row, other: Row, range_m: float) -> tuple[Fraction, Fraction] | None:
    """The same question as the kernel's, in rational numbers and 60 digits for the square root."""
    start, end = Fraction(max(one[1], other[1])), Fraction(min(one[4], other[4]))
    if start >= end:
        return None
    d, v = [], []
    for axis in (2, 3):
        speed, place = [], []
        for row in (one, other):
            rate = Fraction(row[axis + 3] - row[axis]) / (row[4] - row[1])
            speed.append(rate)
            place.append(Fraction(row[axis]) + rate * (start - row[1]))
        d.append(place[1] - place[0])
        v.append(speed[1] - speed[0])
    radius = Fraction(range_m) + Fraction(kernel.TOLERANCE_M)
    a = v[0] ** 2 + v[1] ** 2
    b = d[0] * v[0] + d[1] * v[1]
    c = d[0] ** 2 + d[1] ** 2 - radius**2
    if a == 0:
        return (start, end) if c <= 0 else None
    if b * b - a * c < 0:
        return None
    with localcontext(prec=60):
        inside = b * b - a * c
        root = Fraction((Decimal(inside.numerator) / Decimal(inside.denominator)).sqrt())
    low, high = max((-b - root) / a, Fraction(0)), min((-b + root) / a, end - start)
    return (start + low, start + high) if low < high else None


def exact_spans(rows: list[Row], range_m: float) -> Spans:
    spans: Spans = {}
    for one, other in combinations(rows, 2):
        met = exact_meeting(one, other, range_m) if one[0] != other[0] else None
        if met is not None:
            pair = (min(one[0], other[0]), max(one[0], other[0]))
            spans.setdefault(pair, []).append((round(met[0]), round(met[1])))
    return spans


def difference(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> int:
    """The longest stretch of time that is in the one union of intervals and not in the other."""
    events = [(t, which, step) for which, spans in enumerate((one, other))
              for span in spans for t, step in zip(span, (1, -1), strict=True)]  # fmt: skip
    depth, longest, since = [0, 0], 0, 0
    for time, which, step in sorted(events):
        if (depth[0] > 0) != (depth[1] > 0):
            longest = max(longest, time - since)
        depth[which] += step
        since = time
    return longest


def spans_of(contacts: kernel.Ints) -> Spans:
    spans: Spans = {}
    for a, b, up_us, down_us in contacts.tolist():
        spans.setdefault((a, b), []).append((up_us, down_us))
    return spans


@given(rows=paths(), range_m=RANGES)
def test_contacts_are_those_of_exact_arithmetic_to_the_microsecond(rows, range_m):
    found = spans_of(kernel.find_contacts(segments_of(rows), range_m))
    exact = exact_spans(rows, range_m)
    for pair in found.keys() | exact.keys():
        gap = difference(found.get(pair, []), exact.get(pair, []))
        assert gap <= 1, f"pair {pair}: found {found.get(pair)}, exact {exact.get(pair)}"


@given(rows=paths(), range_m=RANGES, slab_us=st.integers(1_000_000, 10**8))
def test_the_way_time_is_cut_changes_nothing(rows, range_m, slab_us):
    segments = segments_of(rows)
    pieces = []
    for start_us, end_us, part in kernel.slabs(segments, slab_us):
        found = kernel.contacts_of_slab(segments.take(part), range_m, start_us, end_us)
        assert ((start_us <= found[:, 2]) & (found[:, 3] <= end_us)).all()
        pieces.append(found)
    cut = kernel.merge_contacts(np.concatenate(pieces))
    assert cut.tolist() == kernel.find_contacts(segments, range_m).tolist()


def test_a_contact_across_slabs_is_found_in_parts_and_joined():
    rows: list[Row] = [(0, 0, 0.0, 0.0, 100, 0.0, 0.0), (1, 20, 1.0, 0.0, 70, 1.0, 0.0)]
    segments = segments_of(rows)
    parts = [
        kernel.contacts_of_slab(segments.take(part), 2.0, start_us, end_us)
        for start_us, end_us, part in kernel.slabs(segments, 30)
    ]
    assert [part[:, 2:].tolist() for part in parts] == [[[20, 30]], [[30, 60]], [[60, 70]], []]
    assert kernel.merge_contacts(np.concatenate(parts)).tolist() == [[0, 1, 20, 70]]


@given(rows=paths(), range_m=RANGES)
def test_contacts_of_a_pair_are_apart_ordered_and_not_empty(rows, range_m):
    contacts = kernel.find_contacts(segments_of(rows), range_m).tolist()
    assert contacts == sorted(contacts)
    assert all(a < b and up < down for a, b, up, down in contacts)
    for one, other in pairwise(contacts):
        assert one[:2] != other[:2] or one[3] < other[2]


@pytest.mark.parametrize("seed", range(4))
def test_the_grid_finds_every_contact_of_the_all_pairs_search(seed):
    rng = np.random.default_rng(seed)
    segments = wandering(rng, nodes=40, steps=12, side_m=400.0 * (1 + seed))
    pieces = []
    for i, j in combinations(range(len(segments.node)), 2):
        a, b = int(segments.node[i]), int(segments.node[j])
        shared = min(segments.t1_us[i], segments.t1_us[j]) - max(
            segments.t0_us[i], segments.t0_us[j]
        )
        if a != b and shared > 0:
            up, down = kernel._meeting(segments, i, j, 50.0 + kernel.TOLERANCE_M)
            if up < down:
                pieces.append((min(a, b), max(a, b), up, down))
    brute = kernel.merge_contacts(np.array(pieces, dtype=np.int64))
    assert len(brute) > 20
    assert kernel.find_contacts(segments, 50.0).tolist() == brute.tolist()


def wandering(rng: np.random.Generator, nodes: int, steps: int, side_m: float) -> Segments:
    """Ways from a metre to the whole field, at rest and fast, each node in its own rhythm."""
    rows: list[Row] = []
    for node in range(nodes):
        time, place = int(rng.integers(0, 10**8)), rng.uniform(0, side_m, 2)
        for _ in range(steps):
            reach = rng.choice([0.0, 1.0, 60.0, side_m])
            target = place + rng.uniform(-reach, reach, 2)
            lasts = int(rng.integers(1, 10**8))
            rows.append((node, time, *place.tolist(), time + lasts, *target.tolist()))
            time, place = time + lasts, target
    return segments_of(rows)


def test_two_at_rest_exactly_one_range_apart_are_in_contact():
    rows: list[Row] = [(0, 0, 0.0, 0.0, 10, 0.0, 0.0), (1, 4, 3.0, 4.0, 20, 3.0, 4.0)]
    assert kernel.find_contacts(segments_of(rows), 5.0).tolist() == [[0, 1, 4, 10]]
    assert kernel.find_contacts(segments_of(rows), 4.999).tolist() == []


def test_side_by_side_at_one_range_is_one_contact_whatever_the_rounding():
    rows: list[Row] = []
    for step in range(50):
        x0, x1 = 100_000 + step / 3, 100_000 + (step + 1) / 3
        for node, y in ((0, 0.1), (1, 10.1)):
            rows.append((node, step * 7, x0, y, (step + 1) * 7, x1, y))
    assert kernel.find_contacts(segments_of(rows), 10.0).tolist() == [[0, 1, 0, 350]]


def test_a_node_that_passes_is_met_between_the_roots():
    # Along y = 30 at 10 m/s, range 50: in range while |x| <= 40.
    rows: list[Row] = [
        (7, 0, 0.0, 0.0, 100_000_000, 0.0, 0.0),
        (3, 0, -400.0, 30.0, 80_000_000, 400.0, 30.0),
    ]
    assert kernel.find_contacts(segments_of(rows), 50.0).tolist() == [
        [3, 7, 36_000_000, 44_000_000]
    ]


def test_one_fast_way_across_a_wide_field_costs_its_length_and_not_its_area():
    rows: list[Row] = [
        (0, 0, 0.0, 0.0, 10**9, 1e6, 1e6),
        (1, 0, 5e5, 5e5, 10**9, 5e5, 5e5),
    ]
    (contact,) = kernel.find_contacts(segments_of(rows), 10.0).tolist()
    assert contact[2] == pytest.approx(5e8 - 1e4 / 2**0.5, abs=2)


def test_an_empty_input_gives_no_contacts():
    assert kernel.find_contacts(segments_of([]), 10.0).shape == (0, 4)


@pytest.mark.parametrize("range_m", [0.0, -1.0, float("nan"), float("inf")])
def test_a_range_that_is_not_positive_is_refused(range_m):
    rows: list[Row] = [(0, 0, 0.0, 0.0, 10, 0.0, 0.0)]
    with pytest.raises(ValueError, match="range"):
        kernel.find_contacts(segments_of(rows), range_m)
