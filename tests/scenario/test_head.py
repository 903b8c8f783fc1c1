"""The scenario file of any world: its values and defaults, and all its errors at once."""

import pytest

from beforehand.errors import InputError, InputErrors
from beforehand.scenario import values
from beforehand.scenario.document import Document
from beforehand.scenario.head import read_head, world_of
from beforehand.scenario.options import Option

OPTIONS = {
    "size": Option(values.whole(1), 7),
    "kinds": Option(values.list_of(values.one_of("a", "b")), ("a",)),
}


def read(path, text, **options):
    path.write_text(text)
    return read_head(Document(path, **options), {"toy": OPTIONS}, 3)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "toy-story.toml"


def test_an_omitted_key_has_its_default(path):
    scenario = read(path, "")
    assert (scenario.name, scenario.title, scenario.paper) == ("toy-story", "toy-story", None)
    assert scenario.seeds == (1, 2, 3)
    assert scenario.options["toy"] == {"size": 7, "kinds": ("a",)}


def test_the_command_line_overrides_the_file_which_overrides_defaults(path):
    text = '[scenario]\ntitle = "Toys"\n[sweep]\nseeds = 5\n[toy]\nsize = 2\nkinds = ["b", "a"]'
    scenario = read(path, text)
    assert (scenario.title, scenario.seeds) == ("Toys", (1, 2, 3, 4, 5))
    assert scenario.options["toy"] == {"size": 2, "kinds": ("b", "a")}
    scenario = read(path, text, seeds=1, overrides=["toy.size=3", "scenario.title=More toys"])
    assert (scenario.title, scenario.seeds, scenario.options["toy"]["size"]) == (
        "More toys",
        (1,),
        3,
    )
    assert scenario.document["toy"]["size"] == 3


def test_all_errors_are_reported_together_with_their_lines(path):
    text = '[scenario]\nworld = "toy"\nworlds = 1\n[sweep]\nseeds = 0\n[toy]\nkinds = ["c"]\n[x]\n'
    with pytest.raises(InputErrors) as caught:
        read(path, text, overrides=["toy.size=none", "toy"])
    told = {(error.where.removeprefix(str(path)), error.problem) for error in caught.value.errors}
    assert told == {
        (":3", "no such key: `worlds`"),
        (":5", "`seeds`: not a whole number from 1 on: `0`"),
        (":7", "`kinds`: no such choice: `c`"),
        (":8", "no such table: `x`"),
        ("--set toy.size", "`size`: not a whole number from 1 on: `none`"),
        ("", "not a setting: `toy`"),
    }


@pytest.mark.parametrize("kinds", ["[]", '"a"', '["a", "a"]'])
def test_empty_lists_and_repeated_elements_are_refused(path, kinds):
    with pytest.raises(InputError, match="`kinds`"):
        read(path, f"[toy]\nkinds = {kinds}")


@pytest.mark.parametrize(
    ("text", "world"),
    [("", "contacts"), ('[scenario]\nworld = "drift"', "drift"), ("scenario = 1", "contacts")],
)
def test_a_scenario_without_a_world_uses_contacts(path, text, world):
    path.write_text(text)
    assert world_of(Document(path)) == world


def test_missing_files_and_invalid_toml_are_refused(path):
    with pytest.raises(InputError, match="no such scenario"):
        Document(path)
    with pytest.raises(InputError, match="not TOML"):
        read(path, "[toy\n")
