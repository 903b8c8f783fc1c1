"""One table defines the settings of a run for scenario files, flags and cores."""

import msgspec
import pytest

from beforehand.errors import InputError
from beforehand.scenario.settings import FLAGS, NETWORK, TRAFFIC, flag_of, parse_flag, with_settings
from beforehand.sim.contacts.run import Spec

EVERY = TRAFFIC | NETWORK
PARTS = ("traffic", "links", "layer", "clocks")
NOT_SET = {"links.noise_until_us", "layer.capacity_bytes", "layer.flow", "traffic.events"}
"""The first is for the fuzzer, which heals a network. The next two are for nodes on sockets, whose
memory and links are bounded. The last is read from a file."""


def test_each_field_of_the_parts_has_its_key_and_each_key_its_field():
    fields = {
        f"{part}.{name}"
        for part in PARTS
        for name in getattr(Spec("causal"), part).__struct_fields__
    }
    named = [setting.field for setting in EVERY.values()]
    assert set(named) == fields - NOT_SET
    assert len(named) == len(set(named))


def test_an_override_changes_only_its_own_setting():
    spec = Spec("delta", 3, 60, literal_barriers=True)
    changed = with_settings(spec, {"links.loss": 0.5, "links.jitter_us": 7, "clocks.skew_us": 9})
    assert (changed.links.loss, changed.links.jitter_us, changed.clocks.skew_us) == (0.5, 7, 9)
    links = msgspec.structs.replace(changed.links, loss=0.0, jitter_us=0)
    assert msgspec.structs.replace(changed, links=links, clocks=spec.clocks) == spec
    assert with_settings(spec, {}) == spec


@pytest.mark.parametrize(
    ("name", "written", "value"),
    [
        ("period", "30s", 30_000_000),
        ("payload", "80", 80),
        ("payload", "1kB", 1000),
        ("bandwidth", "1000000", 1_000_000),
        ("bandwidth", "1MB/s", 1_000_000),
        ("bandwidth", "250kbit/s", 31_250),
        ("bandwidth", "1.5 Mbit/s", 187_500),
        ("bandwidth", "endless", None),
        ("loss", "0.25", 0.25),
        ("capacity", "12", 12),
    ],
)
def test_a_flag_is_read_like_the_key_and_a_bare_number_has_its_unit(name, written, value):
    assert parse_flag(name, written) == value


@pytest.mark.parametrize("name", FLAGS)
def test_an_error_names_the_wrong_flag(name):
    wrong = "200%" if name == "sources" else "-nonsense"  # any text is the name of some node
    with pytest.raises(InputError) as refused:
        parse_flag(name, wrong)
    assert refused.value.where == f"--{flag_of(name)}"
