"""Add the fixture `assert_causal`: `pytest -p beforehand.verify.pytest_plugin`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def assert_causal() -> Callable[..., Any]:
    """Return the function that fails a test unless a log is in causal order."""
    from beforehand.verify import causal_assertion  # a test suite without logs skips the import

    return causal_assertion.assert_causal
