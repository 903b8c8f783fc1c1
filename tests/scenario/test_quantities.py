"""Times, lengths, sizes and shares are written alike in flags and in a scenario."""

from __future__ import annotations

import inspect

import pytest

from beforehand.commands.tracing import READER_FLAGS
from beforehand.errors import InputError
from beforehand.mobility.read import READERS
from beforehand.scenario import values
from beforehand.scenario.document import Document
from beforehand.scenario.quantities import names_of, read_quantities, unit_of
from beforehand.scenario.settings import FLAGS, NETWORK, TRAFFIC, parse_flag
from beforehand.scenario.source import GENERATORS, read_source


def source_of(tmp_path, mobility):
    (tmp_path / "met.txt").write_text("a b 0 5\nb c 3 9\n")
    path = tmp_path / "x.toml"
    path.write_text(f"[mobility]\n{mobility}")
    document = Document(path)
    source = read_source(document)
    document.check()
    return source


@pytest.mark.parametrize(
    ("written", "option", "value"),
    [
        ('slot = "20s"', "slot_s", 20),
        ('slot = "1m 30s"', "slot_s", 90),
        ('slot_s = "500ms"', "slot_s", 0.5),
        ("slot_s = 20", "slot_s", 20),
    ],
)
def test_a_key_of_a_reader_takes_the_same_times_as_its_flag(tmp_path, written, option, value):
    source = source_of(tmp_path, f'input = "met.txt"\n{written}\n')
    assert source.options == {option: value}
    assert type(source.options[option]) is type(value)


def test_equal_times_in_any_notation_give_the_same_dataset_name(tmp_path):
    ways = ('slot = "20s"', "slot_s = 20", 'slot_s = "20s"')
    identities = [source_of(tmp_path, f'input = "met.txt"\n{w}\n').identity() for w in ways]
    assert identities[0] == identities[1] == identities[2]


def test_generators_take_times_and_lengths_with_units(tmp_path):
    written = 'hours = "20m"\nwidth = "1.5km"\npause_max = "90s"\nheight_m = "200m"\nnodes = 3\n'
    source = source_of(tmp_path, f'generator = "waypoint"\nrange = "50m"\n{written}')
    assert source.options == {
        "hours": pytest.approx(1 / 3),
        "width_m": 1500,
        "pause_s_max": 90,
        "height_m": 200,
        "nodes": 3,
    }


@pytest.mark.parametrize(
    ("mobility", "line", "fragment"),
    [
        ('input = "met.txt"\nslot = 20\n', 3, "`slot`: a number without a unit: `20`"),
        ('input = "met.txt"\nslot = "20"\n', 3, "`slot`: not a duration: `20`"),
        ('input = "met.txt"\nslot = "20s"\nslot_s = 20\n', 4, "`slot_s` is there twice"),
        ('input = "met.txt"\nslt = "20s"\n', 3, "no such parameter: `slt`"),
        ('generator = "waypoint"\nrange = "5m"\nwidth = "9"\n', 4, "`width`: not a distance"),
        ('generator = "waypoint"\nrange = "5m"\nhours = "0s"\n', 4, "`hours`: out of bounds"),
        ('generator = "waypoint"\nrange = "5m"\npause_max = "9999d"\n', 4, "out of bounds"),
    ],
)
def test_an_error_names_the_key_as_the_file_spells_it(tmp_path, mobility, line, fragment):
    with pytest.raises(InputError) as caught:
        source_of(tmp_path, mobility)
    assert fragment in caught.value.problem
    assert caught.value.where.endswith(f"x.toml:{line}")


def test_every_flag_of_a_reader_is_a_key_of_the_scenario():
    for name, flag in READER_FLAGS.items():
        for reader in READERS.values():
            parameters = list(inspect.signature(reader).parameters)
            if flag.option in parameters:
                assert names_of(parameters).get(name, name) == flag.option
                assert flag.is_time == (unit_of(flag.option) is not None)


def test_no_two_parameters_share_a_name_with_unit():
    for make in (*GENERATORS.values(), *READERS.values()):
        parameters = [p.name for p in inspect.signature(make).parameters.values()]
        others = names_of(parameters)
        assert len(set(others)) == len(others)
        assert not set(others) & set(parameters)
        assert read_quantities(make, {}) == ({}, [])


ALIKE = {
    "payload": ("200", 200, "200B", "0.2kB"),
    "bandwidth": ("4000", 4000, "4000B/s", "4kB/s"),
    "loss": ("0.1", 0.1, "10%", "10 %"),
    "period": ("90s", "90s", "1m 30s", "1.5m"),
    "capacity": ("7", 7),
}


@pytest.mark.parametrize("name", ALIKE)
def test_a_flag_and_a_key_take_the_same_notations(name):
    flag, *keys = ALIKE[name]
    parse = (TRAFFIC | NETWORK)[name].parse
    expected = parse_flag(name, flag)
    assert [parse(key) for key in keys] == [expected] * len(keys)
    assert [parse_flag(name, str(key)) for key in keys] == [expected] * len(keys)
    assert name in FLAGS


@pytest.mark.parametrize("value", [True, -1, "-1", "ten", 1.5, float("nan"), [5], None])
def test_an_invalid_size_is_refused(value):
    with pytest.raises(InputError, match="not a"):
        values.size(value)


@pytest.mark.parametrize("value", ["100%", "-1%", "%", "1e1%", "nan%", True, "0.5", 1.0])
def test_an_invalid_share_is_refused(value):
    with pytest.raises(InputError, match="not a share"):
        values.share(value)
