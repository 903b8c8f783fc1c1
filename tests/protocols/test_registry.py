"""The entries of the registry, and the names under which they are found.

`test_new_order.py` adds an entry; plausible clocks are the order here that came last.
"""

import json
import re

import pytest
from tests.test_tidy import PACKAGE, read_modules

from beforehand.check.families import FAMILIES
from beforehand.check.fuzz.fuzz import run_seed
from beforehand.cli import main
from beforehand.errors import InputError
from beforehand.kernels.verify.causality import KINDS
from beforehand.promises import PROMISES
from beforehand.protocols.mobile.systems import SYSTEMS
from beforehand.protocols.orders.order import Lifetimes
from beforehand.protocols.orders.plausible import Plausible
from beforehand.protocols.registry import (
    FORMER,
    ORDERS,
    PROTOCOLS,
    FormerName,
    check_protocol,
    find_protocol,
    make_order,
    present_name,
)
from beforehand.scenario.document import Document
from beforehand.scenario.protocols import read_protocols
from beforehand.verify.verdict import state_of

NAMED = re.compile(r"""\bPlausible\b|["'`]plausible["'`-]|orders\.plausible""")
OWN = {"protocols.orders.plausible", "protocols.registry"}


def test_no_other_source_file_names_the_new_order():
    sources = read_modules(PACKAGE).items()
    assert {name for name, text in sources if NAMED.search(text)} == OWN


def test_new_order_is_simulated_and_its_late_deliveries_are_counted(tmp_path, capsys):
    log = tmp_path / "plausible.parquet"
    run = ("simulate", "--example", "--protocol", "plausible-2", "--period", "40m")
    assert main([*run, "--events", str(log), "--json"]) == 0
    shown = capsys.readouterr()
    told = json.loads(shown.out)
    late = told["violations"]["late"]
    assert late > 0
    assert told["violations"] == {"late": late, "twice": 0, "unknown": 0}
    assert told["past_entries"]["max"] <= 2
    assert f"{late:,} late" in shown.err

    assert main(["verify", str(log), "--json"]) == 0
    (judged,) = json.loads(capsys.readouterr().out)["runs"]
    assert (judged["verdict"], judged["promise"]) == ("valid", "probable")
    assert "order promised with probability only" in judged["reason"]
    assert main(["verify", str(log), "--promise", "causal"]) == 1


def test_new_order_is_fuzzed_and_what_it_promises_not_is_no_failure():
    outcomes = [run_seed(seed, FAMILIES["plausible"]) for seed in range(60)]
    assert not [outcome.story for outcome in outcomes if outcome.problem]
    assert sum(outcome.allowed for outcome in outcomes) > 0
    assert sum(outcome.waited for outcome in outcomes) > 0


def test_fuzzer_finds_a_new_order_that_delivers_twice(monkeypatch):
    monkeypatch.setattr(Plausible, "has_delivered", lambda *_: False)
    monkeypatch.setattr(Plausible, "_deliver", deliver_and_forget)
    outcomes = (run_seed(seed, FAMILIES["plausible"]) for seed in range(60))
    assert any("a second time" in (outcome.problem or "") for outcome in outcomes)


def deliver_and_forget(self, message, out):
    self._counts[self._entry_of(message.origin)] += 1
    out.deliveries.append(message)


def test_scenario_names_the_size_of_a_clock(tmp_path):
    names = ["plausible-32", "plausible"]
    text = "".join(f'[[protocols]]\nname = "{name}"\n' for name in names)
    assert [spec.protocol for spec in read_scenario(tmp_path, text)] == names


def read_scenario(folder, text):
    (folder / "sizes.toml").write_text(text)
    document = Document(folder / "sizes.toml")
    specs = read_protocols(document)
    assert not document.problems
    return specs


@pytest.mark.parametrize("name", ["plausible-0", "plausible-99999", "causal-8", "was-8"])
def test_size_that_a_protocol_does_not_have_is_refused(name):
    with pytest.raises(InputError, match="unknown protocol"):
        check_protocol(name, None)


@pytest.mark.parametrize("name", ORDERS)
def test_each_order_is_made_and_has_a_family(name):
    lifetimes = Lifetimes(1, 1) if ORDERS[name].lifetimes == "must" else None
    order = make_order(name, 1, lifetimes, literal_deadlines=True, literal_barriers=True)
    assert order.node == 1
    assert name in FAMILIES


def test_systems_of_cells_and_former_names_are_in_the_registry():
    cells = {name for name, entry in PROTOCOLS.items() if entry.world == "cells"}
    assert cells == {name.replace("_", "-") for name in SYSTEMS}
    assert not FORMER.keys() & PROTOCOLS.keys()
    assert find_protocol("mobile") is None  # `present_name` accepts it, with a warning


@pytest.mark.parametrize(
    ("written", "name"),
    [("mobile", "was"), ("was_flood", "was-flood"), ("tcp_flooding", "tcp-flooding")],
)
def test_former_name_is_accepted_with_a_warning(written, name):
    with pytest.warns(FormerName, match=f"`{written}` is called `{name}` now"):
        assert present_name(written) == name
    assert present_name(name) == name


def test_unknown_name_has_no_present_one():
    assert [present_name(name) for name in ("was_flod", "causal_push", "")] == [
        *("was_flod", "causal_push", "")
    ]


def test_each_family_of_the_checkers_is_of_a_protocol_with_an_entry():
    kinds = {name.removesuffix("_push").removeprefix("group_") for name in FAMILIES}
    assert {name.replace("_", "-") for name in kinds} == PROTOCOLS.keys()


@pytest.mark.parametrize("name", ["was", "vcube", "observer", "group"])
def test_protocol_of_another_world_is_refused_over_contacts_with_its_world(name):
    with pytest.raises(InputError, match=f"in the world `{PROTOCOLS[name].world}`"):
        check_protocol(name, None)


@pytest.mark.filterwarnings("always")
def test_simulate_names_the_present_name_of_a_former_one(capsys):
    assert main(["simulate", "--example", "--protocol", "mobile"]) == 2
    told = capsys.readouterr().err
    assert "`mobile` is called `was` now" in told
    assert "`was` does not run over contacts, but in the world `cells`" in told


@pytest.mark.parametrize("name", PROMISES)
def test_each_promise_forbids_repeated_and_unknown_messages(name):
    promise = PROMISES[name]
    assert {"twice", "unknown"} <= {*promise.broken_by} <= {*KINDS}
    state, reason = state_of({"late": 3, "twice": 0, "unknown": 0}, 60, (), name)
    assert state == ("invalid" if promise.is_sure else "valid")
    assert ("3 late" in reason) == (not promise.is_sure)


def test_promise_with_probability_is_shown_even_if_nothing_is_late():
    assert state_of({"late": 0, "twice": 0, "unknown": 0}, 60, (), "probable") == (
        "valid",
        "0 late (0 % of the deliveries): order promised with probability only",
    )
