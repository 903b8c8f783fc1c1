"""Every page of the documentation site in a browser: on a phone, at a desk, without a network."""

import re

import pytest

from tests.browser.chromium import Chromium
from tests.documentation import REPO

pytestmark = pytest.mark.browser
PHONE, DESK = 390, 1280
DRAWN = "document.querySelectorAll('pre.mermaid, .mermaid > code').length === 0"
MERMAID = re.compile(r"^```mermaid$", re.MULTILINE)
WIDER = """[...document.querySelectorAll('.md-content *')].filter(part =>
    part.getBoundingClientRect().right > innerWidth + 1
    && !part.closest('.md-typeset__scrollwrap, pre, .diagram, .highlight')
).map(part => part.outerHTML.slice(0, 200))"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Chromium(tmp_path_factory.mktemp("profile")) as opened:
        offline = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
        opened.call("Network.emulateNetworkConditions", **offline)
        yield opened


def pages_of(site):
    """Return all pages of the site."""
    return sorted(set(site.rglob("*.html")) - {site / "404.html"})


def faults_of(browser, site, page):
    """Open one page on a phone, then show it at a desk. Return what is wrong with it."""
    browser.resize(PHONE)
    browser.open(page, until="document.body")
    source = (REPO / "docs" / page.relative_to(site)).with_suffix(".md")
    wanted = len(MERMAID.findall(source.read_text())) if source.is_file() else 0
    faults = []
    for width in (PHONE, DESK):
        browser.resize(width)
        browser.wait(f"innerWidth >= {width}")  # more where the page is too wide for a phone
        drawn = drawings(browser, wanted)
        if drawn < wanted:
            faults.append(f"{drawn} of {wanted} diagrams drawn at {width}")
        if browser.evaluate("document.documentElement.scrollWidth") > width:
            faults.append(f"wider than the screen of {width}: {browser.evaluate(WIDER)}")
    elsewhere = [url for url in browser.requests() if not url.startswith((site.as_uri(), "data:"))]
    return [*faults, *(f"asks for {url}" for url in elsewhere), *browser.complaints()]


def drawings(browser, wanted):
    """Wait for the diagrams. Return the number of those that show a picture."""
    if wanted:
        browser.wait(DRAWN)
    tree = "[...document.querySelectorAll('.diagram > div.mermaid')]"
    return browser.evaluate(f"{tree}.filter(part => part.clientHeight > 40).length")


def test_every_page_fits_draws_its_diagrams_and_needs_no_network(browser, site):
    faults = {
        str(page.relative_to(site)): found
        for page in pages_of(site)
        if (found := faults_of(browser, site, page))
    }
    assert faults == {}


def test_a_faulty_page_is_noticed(browser, tmp_path):
    docs = tmp_path / "broken.html"
    docs.write_text(
        "<meta name=viewport content='width=device-width'><body>"
        "<div style='width: 1400px'>wide</div><img src='http://127.0.0.1:9/x.png'>"
        "<script>missing()</script>"
    )
    faults = " ".join(faults_of(browser, tmp_path, docs))
    assert "asks for http://127.0.0.1:9/x.png" in faults
    assert f"wider than the screen of {PHONE}" in faults
    assert f"wider than the screen of {DESK}" in faults
    assert "missing is not defined" in faults
