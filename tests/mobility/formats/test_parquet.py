"""Contacts as Parquet: written and read back exactly, and read as other programs name them."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from beforehand.cli import main
from beforehand.errors import InputError
from beforehand.mobility.formats.parquet import write_contacts_parquet
from beforehand.mobility.generators import crowd
from beforehand.mobility.read import detect, read
from beforehand.mobility.trace import Trace


def written(tmp_path, columns):
    path = tmp_path / "met"
    pq.write_table(pa.table(columns), path)
    return path


def test_a_trace_that_is_written_is_read_back_exactly(tmp_path):
    trace = crowd.generate(3, nodes_mean=50, hours=0.1)
    path = tmp_path / "met.parquet"
    write_contacts_parquet(trace, path)
    found = read(path)
    assert isinstance(found, Trace)
    assert found.presence.tolist() == sorted(
        ([found.names.index(trace.names[n]), *span] for n, *span in trace.presence.tolist()),
        key=lambda row: (row[1], row[0]),
    )
    again = tmp_path / "again.parquet"
    write_contacts_parquet(found, again)
    assert read(again).contacts.tolist() == found.contacts.tolist()
    assert len(found.contacts) == len(trace.contacts) > 10
    assert found.changes == {}


def test_the_command_writes_parquet_by_the_name_of_its_target(tmp_path, capsys):
    source, out = tmp_path / "met.txt", tmp_path / "met.parquet"
    source.write_text("a b 0 600\nb c 100 900\n")
    assert main(["contacts", str(source), "--out", str(out)]) == 0
    assert detect(out) == "parquet"
    assert main(["contacts", str(out), "--json"]) == 0
    assert '"contacts": 2' in capsys.readouterr().out


@pytest.mark.parametrize(
    "times",
    [
        {"start": [1.0, 2.5], "end": [3.0, 4.5]},
        {"start_ms": [1000, 2500], "end_ms": [3000, 4500]},
        {"up_us": [1_000_000, 2_500_000], "down_us": [3_000_000, 4_500_000]},
        {"start": [1.0, 2.5], "duration": [2.0, 2.0]},
        {
            "start": [datetime.datetime.fromtimestamp(t, datetime.UTC) for t in (1, 2.5)],
            "end": [datetime.datetime.fromtimestamp(t, datetime.UTC) for t in (3, 4.5)],
        },
    ],
    ids=["seconds", "milliseconds", "microseconds", "duration", "timestamps"],
)
def test_times_are_read_in_the_unit_of_their_column(tmp_path, times):
    found = read(written(tmp_path, {"source": [7, 8], "target": [8, 9], **times}))
    assert found.names == ("7", "8", "9")
    assert found.contacts[:, 2:].tolist() == [[1_000_000, 3_000_000], [2_500_000, 4_500_000]]


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"a": [1], "b": [2], "time": [3]}, "Parquet of `sociopatterns`"),
        ({"speed": [1]}, "neither places nor two nodes"),
        ({"a": [1], "b": [2], "start": [5.0], "end": [3.0]}, "row 1 ends before it starts"),
        ({"a": [1], "b": [2], "start": [1.0], "end": [None]}, "a contact without a time"),
        ({"a": [1], "b": [None], "start": [1.0], "end": [2.0]}, "a node without a name"),
        ({"a": [1], "b": [2], "start": ["1"], "end": ["2"]}, "times of type `string`"),
        ({"a": [1], "b": [2], "start": [10**13], "end": [10**13]}, "beyond the year 9999"),
        ({"a": [1.0], "b": [1.5], "start": [1.0], "end": [2.0]}, "nodes of type `double`"),
    ],
)
def test_a_parquet_file_without_contacts_is_refused(tmp_path, columns, problem):
    with pytest.raises(InputError, match=problem):
        read(written(tmp_path, {k: pa.array(v) for k, v in columns.items()}))
