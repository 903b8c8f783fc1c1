"""What every test can lean on: stable random tests, one Spark session, the shared traces."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import Phase, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REPO = Path(__file__).parent.parent

# No deadline: the machine may be busy with the other half of the suite. In CI the same examples
# each time, so that a red build is the fault of its change; new ones are drawn at every desk.
settings.register_profile("desk", deadline=None, print_blob=True)
settings.register_profile("ci", settings.get_profile("desk"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "desk")
# A mutant is dead with its first failure: nobody reads the smallest one.
settings.register_profile("mutant", settings(), phases=(Phase.explicit, Phase.generate))


COSTLY = {"browser", "report", "said", "simulated", "table"}
"""Fixtures of a module that take seconds: made once, in the worker that has all their tests."""


@pytest.hookimpl(tryfirst=True)  # before xdist, which reads the groups in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        if "spark" in fixtures:
            item.add_marker(pytest.mark.xdist_group("spark"))
        elif item.get_closest_marker("spark") or COSTLY & fixtures:
            # Those who start a Spark of their own share nothing with the others.
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One session for all tests marked `spark`, started by the first of them."""
    from beforehand.spark.session import open_session

    with open_session("local[2]", app="tests", small=True) as session:
        yield session


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real traces, which stay outside the repository."""
    folder = REPO.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("no real traces here: they are expected in `../shared/data`")
    return folder
