"""Low thresholds reach every core for the time of a run, and expose bugs behind them."""

import ast
import pkgutil
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
from msgspec.structs import replace as replace_struct

import beforehand.protocols
from beforehand.check.families import FAMILIES
from beforehand.check.families.contacts import ContactsFamily, Setup
from beforehand.check.fuzz.fuzz import play
from beforehand.check.fuzz.shrink import rerun
from beforehand.check.net.case import Case
from beforehand.check.net.net import make_net
from beforehand.check.net.thresholds import LOW, in_force, places, thresholds_in_force
from beforehand.protocols.epidemic import epidemic, version_vector
from beforehand.protocols.epidemic.options import Options
from beforehand.protocols.orders import barrier, order
from beforehand.protocols.orders.order import Lifetimes

SECOND_US = 1_000_000
NO_THRESHOLDS = {
    "protocols.registry.SIZE_MAX": "bounds the size in the name of a protocol, not a state",
    "protocols.contract.base.NAME_CHARS_MAX": "a limit of the wire",
    "protocols.contract.base.PROOF_BYTES_MAX": "a limit of the wire",
    "protocols.contract.codec.BYTES_MAX": "a limit of the wire",
    "protocols.epidemic.frames.IDS_MAX": (
        "a limit of the wire; `frame_bytes_max` is drawn down to one id"
    ),
    "protocols.mobile.bounds.COUNT_MAX": "a limit of the wire",
    "protocols.orders.order.EARLY_MAX": (
        "beyond it early messages wait to be announced again: no sweep"
    ),
    "protocols.epidemic.paced_epidemic.FRAME_BYTES_MAX": (
        "a limit of the wire; the family `group` draws it down to one id"
    ),
    "protocols.epidemic.sizes.MESSAGE_BYTES_MAX": "a limit of the wire",
    "protocols.epidemic.sizes.OWN_BYTES_MAX": "a limit of the wire",
    "protocols.epidemic.sizes._ID_MAX": "a limit of the wire",
    "protocols.orders.stamped.EXPIRED_MAX": (
        "beyond it `explain` forgets why a message expired: no sweep"
    ),
    "protocols.orders.stamped_draft.RAISE_US_MAX": "a bound of deadlines, not of a state",
    "protocols.mobile.was.handoff.LEFT_MAX": (
        "beyond it a station may forget who left: no sweep, a loss"
    ),
    "protocols.mobile.tcp_flooding.connection.FLIGHT_MIN": (
        "the least window of TCP, which small nets reach"
    ),
    "protocols.vcube.node.SEQ_MAX": "a limit of the wire",
}
"""Why a constant with such a name is not lowered."""


def core_modules():
    found = pkgutil.walk_packages(beforehand.protocols.__path__, "beforehand.protocols.")
    return [import_module(module.name) for module in found]


def test_every_size_of_a_core_is_lowered_or_has_a_reason_not_to_be():
    homes = {
        f"{module.__name__.removeprefix('beforehand.')}.{name}": (module, name)
        for module in core_modules()
        for name in assigned(module)
        if name.endswith(("_MIN", "_MAX"))
    }
    assert {name for name, home in homes.items() if home not in LOW} <= set(NO_THRESHOLDS)
    assert {*LOW} <= {*homes.values()}


def assigned(module):
    """The constants that the module itself defines."""
    tree = ast.parse(Path(module.__file__).read_text())
    targets = [t for node in tree.body if isinstance(node, ast.Assign) for t in node.targets]
    return [t.id for t in targets if isinstance(t, ast.Name)]


def test_modules_that_import_a_threshold_by_name_get_the_low_one_too():
    names = {name for _, name in LOW}
    reached = {(id(module), name) for module, name, _ in places()}
    for module in core_modules():
        for name in names & vars(module).keys():
            assert (id(vars(module)), name) in reached, (module, name)
    with in_force("low"):
        assert (epidemic.KNOWN_TO_PEER_MIN, barrier.PURGE_AT_MIN, order.PURGE_AT_MIN) == (2, 1, 1)
    assert (epidemic.KNOWN_TO_PEER_MIN, barrier.PURGE_AT_MIN, order.PURGE_AT_MIN) == (1024, 64, 64)


def test_thresholds_are_restored_as_they_were_after_an_error_too(monkeypatch):
    monkeypatch.setattr(version_vector, "STALE_MIN", 77)
    with suppress(KeyError), in_force("low"):
        assert (version_vector.STALE_MIN, thresholds_in_force()) == (2, "low")
        with in_force("low"):
            pass
        assert (version_vector.STALE_MIN, thresholds_in_force()) == (2, "low")
        raise KeyError
    assert (version_vector.STALE_MIN, thresholds_in_force()) == (77, "as shipped")


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_is_drawn_with_both_thresholds(name):
    nets = [play(seed, FAMILIES[name])[0] for seed in range(12)]
    assert {net.case.thresholds for net in nets} == {"as shipped", "low"}
    assert thresholds_in_force() == "as shipped"


def test_a_case_whose_thresholds_are_not_in_force_is_refused():
    case = Case(2, (1, 0), Setup(Options()), thresholds="low")
    with pytest.raises(AssertionError, match="in_force"):
        make_net(ContactsFamily("causal"), case)


def sweep_and_forget(self, messages):
    """Replace `VersionVectors.add`: sweep without adding the held messages again."""
    for message in messages:
        self._insert(message.id)
    if self._count > version_vector.STALE_MIN + 2 * len(self._held):
        self._seqs.clear()
        self._count = 0


def purge_without_horizon(self, out):
    """Replace `Barrier._purge`: purge without saving the horizon."""
    delivered = self._waiting.delivered
    for origin in [o for o, seq in delivered.items() if seq <= self._horizon_us]:
        del delivered[origin]
        if self.durable:
            out.saves.append(("delivered", origin, None))
    self._purge_at = max(barrier.PURGE_AT_MIN, 2 * len(delivered))


class Full(ContactsFamily):
    """Small caches, and no crashes."""

    def draw(self, rng):
        case = super().draw(rng)
        options = replace_struct(case.options.options, capacity=3, digest_after=0)
        return replace(case, options=replace(case.options, options=options), crashes=0)


class Falling(ContactsFamily):
    """Three nodes that crash often while all clocks fall."""

    def draw(self, rng):
        case = super().draw(rng)
        lifetimes = Lifetimes(SECOND_US, 10_000 * SECOND_US, 2 * SECOND_US)
        return replace(
            case,
            nodes=3,
            broadcasts=(2, 2, 2),
            options=Setup(Options(push=True), lifetimes),
            lifetimes_us=(5 * SECOND_US, 20 * SECOND_US),
            ahead_us=(0, 0, 0),
            skew_us=0,
            losses=0,
            doubles=0,
            settings=0,
            crashes=9,
            shifts=9,
            shift_us=30 * SECOND_US,
            shift_span_us=30 * SECOND_US,
        )


@pytest.mark.parametrize(
    ("core", "method", "planted", "family", "words"),
    [
        (
            version_vector.VersionVectors,
            "add",
            sweep_and_forget,
            Full("causal", pushes=True),
            "lacks",
        ),
        (barrier.Barrier, "_purge", purge_without_horizon, Falling("delta"), "a second time"),
    ],
    ids=["stale ids are swept", "delivered origins are purged"],
)
def test_the_swarm_finds_a_fault_behind_a_threshold_where_it_is_low(
    core, method, planted, family, words, monkeypatch
):
    monkeypatch.setattr(core, method, planted)
    for seed in range(2_000):
        net, moves = play(seed, family)
        if net.case.thresholds == "low" and words in (net.problem or ""):
            shipped = replace(net.case, thresholds="as shipped")
            if rerun(family, shipped, moves).problem is None:
                return
    pytest.fail("it was not found, or with the shipped thresholds too")
