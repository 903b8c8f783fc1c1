"""The options of a node are declared, checked and documented in one place."""

import inspect
import typing

import pytest

from beforehand.errors import InputError
from beforehand.runtime.blocking import BlockingGroup
from beforehand.runtime.config import GroupOptions, MemberConfig, MemberOptions
from beforehand.runtime.crypto.keys import new_group
from beforehand.runtime.group import Group
from beforehand.runtime.host import Host
from beforehand.runtime.overlay import Overlay
from beforehand.runtime.station import Station

STATIONS = """
group = "port"
[[station]]
name = "north"
address = "127.0.0.1:7001"
cell = "239.77.0.1:7700"
"""
MEMBERS = """
group = "port"
[[member]]
name = "ann"
address = "127.0.0.1:7400"
[[member]]
name = "bob"
address = "127.0.0.1:7401"
"""


def test_the_declared_options_of_a_member_are_the_ones_that_are_checked():
    checked = [*inspect.signature(MemberConfig).parameters]
    assert checked == ["group", *typing.get_type_hints(MemberOptions)]


def test_a_group_and_its_blocking_form_take_the_same_options():
    own = {*GroupOptions.__annotations__} - {*MemberOptions.__annotations__}
    assert {*inspect.signature(Group).parameters} == {"group", "options", *own}


@pytest.fixture
def port(tmp_path, monkeypatch):
    """A folder with the files of the group `port`, and of another group."""
    monkeypatch.chdir(tmp_path)
    new_group("port").write(tmp_path / "port.key")
    new_group("island").write(tmp_path / "island.key")
    (tmp_path / "stations.toml").write_text(STATIONS)
    (tmp_path / "members.toml").write_text(MEMBERS)


NODES = {
    "Group": lambda **options: Group("port", **{"lifetime": "20m", **options}),
    "BlockingGroup": lambda **options: BlockingGroup("port", **{"lifetime": "20m", **options}),
    "Overlay": lambda **options: Overlay("members.toml", **options),
    "Host": lambda **options: Host("port", cell="239.77.0.1:7700", **options),
}
FILES = {"store": "ann.db", "key": "port.key"}


@pytest.mark.parametrize("make", NODES.values(), ids=NODES.keys())
def test_every_member_refuses_a_wrong_option_in_the_same_words(port, make):
    make(name="ann", **FILES)
    with pytest.raises(InputError, match="no such durability: `paper`"):
        make(name="ann", durable="paper", **FILES)
    with pytest.raises(InputError, match="no name for a member"):
        make(name="", **FILES)
    with pytest.raises(TypeError, match="colour"):
        make(name="ann", colour="red", **FILES)
    with pytest.raises(TypeError, match="key"):
        make(name="ann", store="ann.db")


def test_a_station_refuses_the_key_of_another_group_in_the_words_of_a_member(port):
    Station("stations.toml", name="north", key="port.key")
    with pytest.raises(InputError, match="the key of the group `island`, not of `port`") as refused:
        Station("stations.toml", name="north", key="island.key")
    assert refused.value.where == "island.key"
