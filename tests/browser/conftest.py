"""Run all browser tests in one worker: they share one browser and the pages it shows."""

import pytest

from beforehand.cli import main
from tests.browser.chromium import EXECUTABLE
from tests.play.kinds import make_cells, make_clocks, make_nodes, make_observed, make_vcube

REASON = "Chromium is not installed: `apt-get install chromium`"


@pytest.hookimpl(tryfirst=True)  # before xdist, which reads the groups in the same hook
def pytest_collection_modifyitems(config, items):
    for item in items:
        if item.get_closest_marker("browser"):
            if EXECUTABLE is None:
                item.add_marker(pytest.mark.skip(reason=REASON))
            if config.pluginmanager.hasplugin("xdist"):
                item.add_marker(pytest.mark.xdist_group("browser"))


@pytest.fixture(scope="session")
def kind_pages(tmp_path_factory):
    """Return the folder with a page of each kind of run."""
    folder = tmp_path_factory.mktemp("kinds")
    sources = {
        "cells": make_cells(folder / "was"),
        "vcube": make_vcube(folder / "cube", nodes=16),
        "observer": make_observed(folder, messages=600),
        "nodes": make_nodes(folder / "nodes", gap=True),
        "foreign": make_clocks(folder / "clocks.log", damage=True),
    }
    for name, source in sources.items():
        assert main(["play", str(source), "--out", str(folder / f"{name}.html"), "-q"]) == 0
    return folder
