"""All browser tests run in one worker: they share one browser and the pages it shows."""

import pytest


@pytest.hookimpl(tryfirst=True)  # before xdist, which reads the groups in the same hook
def pytest_collection_modifyitems(config, items):
    if config.pluginmanager.hasplugin("xdist"):
        for item in items:
            if item.get_closest_marker("browser"):
                item.add_marker(pytest.mark.xdist_group("browser"))
