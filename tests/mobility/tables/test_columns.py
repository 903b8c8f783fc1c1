"""Headers decide: the same file is read under any known names and in any order."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from beforehand.errors import InputError
from beforehand.mobility.read import read
from beforehand.mobility.tables import aliases
from beforehand.mobility.tables.columns import resolve

MARKS = st.sampled_from([",", ";", "\t", "|", "  "])
NAMES = {
    "node": (*aliases.NODE, *aliases.NODE_WEAK),
    "time": (*aliases.TIME, *aliases.TIME_WEAK),
    "x": aliases.X,
    "y": aliases.Y,
    "lon": aliases.LON,
    "lat": aliases.LAT,
    "start": aliases.START,
    "end": aliases.END,
}
NUMBERS = st.integers(0, 50)
WALKS = st.lists(
    st.tuples(st.sampled_from("abc"), NUMBERS, NUMBERS, NUMBERS), min_size=2, max_size=12
)
MEETINGS = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from("cd"), NUMBERS, st.integers(1, 9)),
    min_size=1,
    max_size=8,
)
EXTRA = st.sampled_from([(), ("speed",), ("rssi", "note")])


def spelled(draw, name):
    """The same name in another spelling."""
    style = draw(st.sampled_from([str, str.upper, str.title, lambda text: f" {text} "]))
    return style(name)


@st.composite
def tables(draw, roles, rows, pairs=False):
    """A file with the columns of `roles` under other names and in another order."""
    names = [draw(st.sampled_from(NAMES[role])) if role in NAMES else role for role in roles]
    if pairs:
        names[:2] = draw(st.sampled_from(aliases.PAIRS))
    extra = draw(EXTRA)
    columns = [*zip(names, zip(*rows, strict=True), strict=True)]
    columns += [(name, ["7"] * len(rows)) for name in extra]
    columns = draw(st.permutations(columns))
    mark = draw(MARKS)
    header = [spelled(draw, name).strip() for name, _ in columns]
    body = zip(*(cells for _, cells in columns), strict=True)
    return "\n".join(mark.join(map(str, row)) for row in [header, *body]) + "\n"


def outcome(tmp_path, text):
    """Read the file and return its trace, or the error. An empty trace is an outcome too."""
    path = tmp_path / "table.txt"
    path.write_text(text)
    try:
        found = read(path)
    except InputError as error:
        return error.problem
    trace = found.contacts_within(10.0) if hasattr(found, "contacts_within") else found
    return trace.names, trace.presence.tolist(), trace.contacts.tolist()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), drawn=WALKS, roles=st.sampled_from([("x", "y"), ("lon", "lat")]))
def test_order_and_names_of_columns_never_change_the_contacts_of_positions(
    tmp_path, data, drawn, roles
):
    # Degrees are long: a thousandth of one is the length of a street.
    shift = 1 if roles == ("x", "y") else 1e-4
    rows = [(node, t, shift * x, shift * y) for node, t, x, y in drawn]
    plain = (
        "node,t," + ",".join(roles) + "\n" + "".join(f"{a},{b},{c},{d}\n" for a, b, c, d in rows)
    )
    other = data.draw(tables(("node", "time", *roles), rows))
    assert outcome(tmp_path, other) == outcome(tmp_path, plain)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), drawn=MEETINGS)
def test_order_and_names_of_columns_never_change_a_list_of_contacts(tmp_path, data, drawn):
    rows = [(a, b, up, up + lasts) for a, b, up, lasts in drawn]
    plain = "a b start end\n" + "".join(f"{a} {b} {up} {down}\n" for a, b, up, down in rows)
    other = data.draw(tables(("a", "b", "start", "end"), rows, pairs=True))
    assert outcome(tmp_path, other) == outcome(tmp_path, plain)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), drawn=MEETINGS)
def test_order_and_names_of_columns_never_change_sightings(tmp_path, data, drawn):
    rows = [(a, b, 20 + seen) for a, b, seen, _ in drawn]
    plain = "t,i,j\n" + "".join(f"{seen},{a},{b}\n" for a, b, seen in rows)
    other = data.draw(tables(("a", "b", "time"), rows, pairs=True))
    assert outcome(tmp_path, other) == outcome(tmp_path, plain)


def test_no_column_name_has_two_meanings():
    groups = {role: set(names) for role, names in NAMES.items()} | {
        "duration": set(aliases.DURATION),
        "other": set(aliases.OTHER),
    }
    for role, names in groups.items():
        for other, others in groups.items():
            assert role == other or not names & others, (role, other, names & others)


@pytest.mark.parametrize(
    ("header", "ignored"), [("node,t,x,y,speed", ("speed",)), ("t,i,j,Ci,Cj", ("Ci", "Cj"))]
)
def test_unused_columns_are_reported(header, ignored):
    assert resolve(header.split(","), "f:1").detected_format().ignored == ignored


def test_the_detected_format_is_reported_as_text_and_as_data():
    detected_format = resolve(["Source", "Target", "begin", "dur", "rssi"], "f:1").detected_format(
        ["x"]
    )
    assert detected_format.sentences() == [
        "read as contacts: a from `Source`, b from `Target`, start from `begin`, "
        "duration from `dur`",
        "columns ignored: `rssi`",
        "assumed: x",
    ]
    assert detected_format.as_json()["columns"]["start"] == "begin"
