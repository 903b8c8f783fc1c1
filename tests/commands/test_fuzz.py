"""`beforehand fuzz`: all families by default, and a failing seed can be replayed."""

import json
import shlex
from functools import partial

import pytest

from beforehand.check.families import FAMILIES
from beforehand.check.families.contacts import ContactsFamily
from beforehand.check.fuzz import targets
from beforehand.check.fuzz.fuzz import Outcome, play, run_seed
from beforehand.check.fuzz.swarm import Swarm
from beforehand.cli import main


def test_without_a_name_every_family_of_the_registry_gets_every_seed(capsys):
    assert main(["fuzz", "--seeds", "2", "--start", "7", "--workers", "1", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["protocols"] == list(FAMILIES)
    assert {name: tally["runs"] for name, tally in report["tallies"].items()} == dict.fromkeys(
        FAMILIES, 2
    )
    assert {"causal_push", "delta_push"} <= set(report["tallies"])


def test_a_family_that_is_added_to_the_registry_is_in_the_default(capsys, monkeypatch):
    given = []

    def run_swarm(seeds, protocols, **_):
        given.extend(protocols)
        return Swarm({})

    monkeypatch.setitem(FAMILIES, "newcomer", ContactsFamily("causal"))
    monkeypatch.setattr("beforehand.check.fuzz.swarm.run_swarm", run_swarm)
    assert main(["fuzz", "--seeds", "2"]) == 0
    assert given == list(FAMILIES)
    assert "newcomer" in given
    assert f"2 seeds of each of {len(FAMILIES)} protocols" in capsys.readouterr().out


def test_the_progress_names_the_family(monkeypatch):
    told = []

    class Bar:
        def __enter__(self):
            return self

        def __exit__(self, *_): ...

        def add_task(self, *_, total):
            assert total == 25

        def update(self, _, *, description, advance):
            told.append((description, advance))

    monkeypatch.setattr("beforehand.commands.fuzz.progress", Bar)
    assert (
        main(["fuzz", "--protocol", "observer", "--seeds", "25", "--workers", "1", "--json"]) == 0
    )
    assert told == [("fuzzing observer", 25)]


def always_wrong(family, net):
    yield "all went well, and that is wrong"


@pytest.mark.parametrize("name", FAMILIES)
def test_the_printed_command_replays_a_failure_of_every_family(name, capsys, monkeypatch):
    monkeypatch.setattr(type(FAMILIES[name]), "problems", always_wrong)
    monkeypatch.setattr("beforehand.check.fuzz.shrink.RUNS_MAX", 3)
    outcome = run_seed(3, FAMILIES[name])
    assert outcome.problem == "all went well, and that is wrong"
    program, *arguments = shlex.split(outcome.replay)
    assert program == "beforehand"
    assert main(arguments) == 1
    shown = capsys.readouterr()
    assert outcome.story in shown.out
    assert f"replay: {outcome.replay}" in shown.err


@pytest.mark.parametrize("name", [name for name in targets.TARGETS if name not in FAMILIES])
def test_the_printed_command_names_an_adversary_too(name, capsys, monkeypatch):
    def player(seed, system):
        return Outcome(seed, f"{system}_wide", "wrong", 0, 0, frozenset(), 0)

    monkeypatch.setitem(targets.TARGETS, name, partial(player, system=name[: -len("_wide")]))
    _, *arguments = shlex.split(targets.TARGETS[name](9).replay)
    assert main(arguments) == 1
    assert f"replay: beforehand {shlex.join(arguments)}" in capsys.readouterr().err


TROUBLES = {
    "clocks that fall together": lambda net: "all set back" in net.sights,
    "clocks that jump together": lambda net: "all set forward" in net.sights,
    "a signer that fails": lambda net: "refused to broadcast: the signer failed" in net.sights,
    "low thresholds": lambda net: net.case.thresholds == "low",
    "a full cache": lambda net: any(d.core.counters.evicted for d in net.drivers),
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_failure_with_each_kind_of_fault_is_replayed_exactly(trouble, capsys, monkeypatch):
    """A run counts as wrong if it has the fault, so the shrunk and the replayed run have it too."""

    def problems(family, net):
        if TROUBLES[trouble](net):
            yield f"there was {trouble}"

    monkeypatch.setattr(ContactsFamily, "problems", problems)
    family = FAMILIES["delta_push"]
    seed = next(s for s in range(200) if play(s, family)[0].problem == f"there was {trouble}")
    outcome = run_seed(seed, family)
    assert outcome.story.startswith(f"there was {trouble}:")
    assert main(shlex.split(outcome.replay)[1:]) == 1
    assert outcome.story in capsys.readouterr().out


@pytest.mark.filterwarnings("always")
@pytest.mark.parametrize(
    ("written", "name"),
    [("was", "was"), ("was-flood", "was_flood"), ("was_flood", "was_flood"), ("mobile", "was")],
)
def test_a_protocol_has_one_name_with_hyphens_or_not(written, name, capsys):
    assert main(["fuzz", "--protocol", written, "--replay", "1", "--json"]) == 0
    shown = capsys.readouterr()
    assert [row["protocol"] for row in json.loads(shown.out)] == [name]
    present = name.replace("_", "-")
    assert (f"is called `{present}` now" in shown.err) == (written != present)


def test_names_of_protocols_are_shown_with_hyphens(capsys):
    assert main(["fuzz", "--protocol", "gossip"]) == 2
    told = capsys.readouterr().err
    assert "`was-flood`" in told
    assert "`tcp-flooding`" in told
