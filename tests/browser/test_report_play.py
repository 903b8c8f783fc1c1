"""A report links the page that plays a run, and shows it in a frame once it is asked for."""

import pytest

from beforehand.cli import main
from beforehand.events import PLAY_FILE
from beforehand.report.page import write_page
from tests.browser.chromium import Chromium
from tests.play.made_up import late_log
from tests.report.test_page import small_page
from tests.waiting import wait_until

pytestmark = pytest.mark.browser
FRAMES = "Page.getFrameTree"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    log = late_log(folder / "late.parquet")
    assert main(["play", str(log), "--out", str(folder / PLAY_FILE), "-q"]) == 0
    write_page(small_page("A report"), folder)
    return folder


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Chromium(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def frames_of(browser):
    return browser.call(FRAMES)["frameTree"].get("childFrames", [])


def test_the_preview_loads_when_it_is_opened_and_not_before(browser, folder):
    browser.resize(1200)
    browser.open(folder / "report.html", until="true")
    played = (folder / PLAY_FILE).as_uri()
    assert browser.evaluate("document.querySelector('.play a').href") == played
    assert played not in browser.requests()
    for width in (390, 1200):
        browser.resize(width)
        browser.evaluate("document.querySelector('.preview').open = true")
        browser.wait("document.querySelector('.preview iframe').clientHeight > 300")
        assert browser.evaluate("document.documentElement.scrollWidth") == width
    wait_until(lambda: played in [frame["frame"]["url"] for frame in frames_of(browser)])
    assert played in browser.requests()
    assert browser.complaints() == []


def test_a_report_without_such_a_page_has_neither_link_nor_frame(tmp_path):
    text = write_page(small_page("A report"), tmp_path).read_text()
    assert "<iframe" not in text
    assert PLAY_FILE not in text
