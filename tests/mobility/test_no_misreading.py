"""Each reader on each file: no format is misread as another, neither by content nor when forced."""

from __future__ import annotations

import pytest

from beforehand.errors import InputError
from beforehand.mobility.formats.parquet import write_contacts_parquet
from beforehand.mobility.read import READERS, detect, read
from beforehand.mobility.trace import Trace
from tests.mobility.tables.test_plausible import INTERNAL, RATINGS, SNAP
from tests.mobility.test_read import OTHER_SPELLINGS, SAMPLES
from tests.mobility.town import write_feed

KTH = OTHER_SPELLINGS["walkers"][1]
FILES = {
    **{name: (name, text) for name, text in SAMPLES.items()},
    **OTHER_SPELLINGS,
    **{f"pairs first {i}": ("sociopatterns", text) for i, text in enumerate((SNAP, RATINGS))},
    "pairs from zero on": ("sociopatterns", INTERNAL),
}
UNMARKED = {"one-movement", "bonnmotion", "contacts", "sociopatterns", "csv"}
"""Tables of numbers: where a person names one of these formats, the person decides."""
REAL = {
    "gtfs_cairns/cairns_gtfs.zip": "gtfs",
    "haggle_cambridge_students/haggle-one-cambridge-city-students.tsv": "one-events",
    "hospital/hospital.csv.gz": "sociopatterns",
    "infectious_dublin/listcontacts_2009_07_15.txt": "sociopatterns",
    "infocom05/infocom05.dat.gz": "contacts",
}


def readers_that_accept(path):
    found = set()
    for name in READERS:
        try:
            read(path, name)
        except (InputError, ValueError):
            continue
        found.add(name)
    return found


def make(folder, name):
    format, text = FILES[name]
    path = folder / "file"
    path.write_text(text)
    return format, path


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_read_as_what_it_is(tmp_path, name):
    format, path = make(tmp_path, name)
    assert detect(path) == format
    accepted = readers_that_accept(path)
    assert accepted - UNMARKED == {format} - UNMARKED
    assert format in accepted
    if format not in UNMARKED:
        assert accepted == {format}


def test_packed_formats_are_read_by_their_reader_only(tmp_path):
    feed, parquet = tmp_path / "feed", tmp_path / "met.parquet"
    write_feed(feed)
    trace = read(make(tmp_path, "contacts")[1])
    assert isinstance(trace, Trace)
    write_contacts_parquet(trace, parquet)
    for format, path in (("gtfs", feed), ("parquet", parquet)):
        assert detect(path) == format
        assert readers_that_accept(path) == {format}


@pytest.mark.parametrize("name", REAL)
def test_real_data_are_read_as_what_they_are(shared_data, name):
    path = shared_data / name
    assert detect(path) == REAL[name]
    assert readers_that_accept(path) <= {REAL[name], *({REAL[name]} & UNMARKED and UNMARKED)}
