"""Worlds leave no reference cycles behind, so they may run without the cycle collector."""

import gc

import pytest

from beforehand.mobility.generators import crowd
from beforehand.protocols.epidemic.options import Options
from beforehand.sim.collector import no_collection
from beforehand.sim.contacts.links import LinkModel
from beforehand.sim.contacts.run import Spec, run_one
from beforehand.sim.overlay.world import OverlaySpec
from beforehand.sim.overlay.world import run as run_overlay

A_FEW = 100
"""Cycles of the libraries; one per message or per node would be thousands."""


def contacts():
    trace = crowd.generate(3, nodes_mean=100, hours=1)
    links, layer = LinkModel(loss=0.1), Options(retry_us=5_000_000, capacity=50)
    spec = Spec("delta", seed=1, lifetime_us=600_000_000, links=links, layer=layer)
    return run_one(trace, spec)


@pytest.mark.parametrize("run", [contacts, lambda: run_overlay(OverlaySpec(64), 1)])
def test_a_run_leaves_no_reference_cycles(run):
    with no_collection():
        run()  # compiles, which does leave some
        gc.collect()
        run()
        assert gc.collect() < A_FEW


def test_the_garbage_collector_is_restored_after_a_run():
    with no_collection():
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        with no_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
