"""Run all browser tests in one worker: they share one browser and the pages it shows."""

import pytest

from tests.browser.chromium import EXECUTABLE

REASON = "Chromium is not installed: `apt-get install chromium`"


@pytest.hookimpl(tryfirst=True)  # before xdist, which reads the groups in the same hook
def pytest_collection_modifyitems(config, items):
    for item in items:
        if item.get_closest_marker("browser"):
            if EXECUTABLE is None:
                item.add_marker(pytest.mark.skip(reason=REASON))
            if config.pluginmanager.hasplugin("xdist"):
                item.add_marker(pytest.mark.xdist_group("browser"))
