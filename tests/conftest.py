"""Provide to all tests stable random examples, one Spark session and the shared traces."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import Phase, settings

from beforehand.doctor import CHROMIUM_HINT
from tests import quick_java
from tests.documentation import build_site

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REPO = Path(__file__).parent.parent
os.environ.update(quick_java.ENVIRONMENT)
gc.disable()  # until the tests run: nothing of a collection is garbage

# No deadline: the machine may be busy with the other half of the suite. In CI the same examples
# each time, so that a red build is the fault of its change; new ones are drawn at every desk.
settings.register_profile("desk", deadline=None, print_blob=True)
settings.register_profile("ci", settings.get_profile("desk"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "desk")
# A mutant is dead with its first failure: nobody reads the smallest one. The same examples each
# time: whether a mutant dies must not depend on luck.
settings.register_profile(
    "mutant", settings(), derandomize=True, phases=(Phase.explicit, Phase.generate)
)


COSTLY = {"browser", "imports", "report", "said", "simulated", "table"}
"""Fixtures of a module that take seconds: made once, in the worker that has all their tests."""
SHARED = ("site",)
"""Fixtures that tests of several files use and that take seconds: made in one worker, once."""
STREAMS = ("tests/observe/", "tests/commands/")
"""Tests below these folders share one Spark session, all other Spark tests a second one. In a
single worker they would take longer than all other tests together."""


@pytest.hookimpl(tryfirst=True)  # before xdist, which reads the groups in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        if "spark" in fixtures:
            is_stream = item.nodeid.startswith(STREAMS)
            item.add_marker(pytest.mark.xdist_group("spark streams" if is_stream else "spark"))
        elif item.get_closest_marker("spark"):
            # A test that starts a Spark of its own shares nothing with the others.
            item.add_marker(pytest.mark.xdist_group(item.nodeid))
        elif shared := fixtures.intersection(SHARED):
            item.add_marker(pytest.mark.xdist_group(*shared))
        elif COSTLY & fixtures:
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    """Return the rank of a test: the longest tests run first, so that all workers are busy to the
    end; mutants come last."""
    if "spark" in getattr(item, "fixturenames", ()):
        return 0
    return 1 if item.get_closest_marker("spark") or item.get_closest_marker("slow") else 2


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Keep the collected tests and modules out of garbage collections, which took a tenth of the
    CPU time: they live to the end."""
    gc.enable()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Report that the browser tests did not run: pytest shows only a letter for a skipped test."""
    skipped = terminalreporter.stats.get("skipped", [])
    count = sum("browser" in getattr(report, "keywords", ()) for report in skipped)
    if count:
        terminalreporter.section("browser tests")
        terminalreporter.line(f"{count} did not run: no Chromium here. {CHROMIUM_HINT}")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Yield the one session of all tests marked `spark`; the first of them starts it."""
    from beforehand.spark.session import open_session

    with open_session("local[2]", app="tests", small=True) as session:
        yield session


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built documentation. Its configuration makes every warning an error."""
    folder = tmp_path_factory.mktemp("site")
    assert build_site(folder) == ""
    return folder


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of real traces, which are not part of the repository."""
    folder = REPO.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("no real traces here: they are expected in `../shared/data`")
    return folder
