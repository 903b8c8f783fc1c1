"""The page of the observer in a browser: it fits a phone, and one choice changes all charts."""

import pytest

from beforehand.lab import write_report
from tests.browser.chromium import Chromium
from tests.report.observer.test_page import MEASURES, measured, save

pytestmark = pytest.mark.browser
DRAWN = "document.documentElement.dataset.charts === 'drawn'"
CHECKED = "[...document.querySelectorAll('.chart input:checked')].map((input) => input.value)"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    other = [measured(50.0, c=c, reading="one/sender") for c in (80, 100)]
    return write_report(save(tmp_path_factory.mktemp("run"), [*MEASURES, *other]))


@pytest.fixture(params=[390, 1200])
def page(request, tmp_path, report):
    with Chromium(tmp_path) as browser:
        browser.resize(request.param)
        browser.open(report, until=DRAWN)
        yield browser


def test_a_selection_in_one_chart_applies_to_all_charts(page):
    assert page.complaints() == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    charts = page.evaluate("document.querySelectorAll('.chart').length")
    asked = page.evaluate(CHECKED)
    assert set(asked) == {"to all others"}
    assert 1 < len(asked) <= charts
    page.evaluate("document.querySelector('#figure-6a input[value=\"to one other\"]').click()")
    page.wait(f"{CHECKED}.every((value) => value === 'to one other')")
    assert page.evaluate(CHECKED) == ["to one other"] * len(asked)
