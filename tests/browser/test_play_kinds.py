"""The pages of all kinds of runs in a browser: they show something at once, and act as promised."""

import json

import pytest

from tests.browser.chromium import Chromium
from tests.browser.test_play import SHOWN, WIDTHS, click, middle_of, press, state
from tests.play.made_up import HOSTILE

pytestmark = pytest.mark.browser
KINDS = ("cells", "vcube", "observer", "nodes", "foreign")
INK = """((id) => { const c = document.getElementById(id), d = c.getContext("2d")
  .getImageData(0, 0, c.width, c.height).data; let n = 0;
  for (let i = 3; i < d.length; i += 4) n += d[i] > 0; return n; })"""


@pytest.fixture
def pages(kind_pages):
    return kind_pages


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Chromium(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(params=KINDS)
def page(request, browser, pages):
    browser.resize(1280, 800)
    browser.prefer("light")
    browser.open(pages / f"{request.param}.html", until=SHOWN)
    browser.kind = request.param
    return browser


def test_each_kind_shows_something_at_once_and_asks_nothing_of_the_network(page, pages):
    assert page.requests() == [(pages / f"{page.kind}.html").as_uri()]
    assert page.complaints() == []
    assert state(page, "message") >= 0
    page.wait(f"{INK}('stage') > 500")
    page.wait(f"{INK}('st-base') > 500")
    assert page.evaluate("document.querySelectorAll('script').length") == 2
    assert page.evaluate("document.querySelector('#details h2').textContent")


def test_search_keys_and_clicks_work_in_each_kind(page):
    name = page.evaluate("beforehand.model.names[2]")
    press(page, "/")
    for letter in name[:6]:
        press(page, letter)
    page.wait("document.querySelectorAll('#found li[role=option]').length")
    press(page, "Enter")
    assert state(page, "node") >= 0
    press(page, "Escape")
    assert state(page, "node") == -1
    message = state(page, "message")
    press(page, "n")
    assert state(page, "message") != message
    press(page, " ")
    t = state(page, "t")
    page.wait(f"beforehand.app.state.isPlaying && beforehand.app.state.t > {t}")
    press(page, " ")
    page.wait("!beforehand.app.state.isPlaying")
    click(page, *middle_of(page, "#timeline"))
    assert abs(page.evaluate("beforehand.app.state.t / beforehand.model.length") - 0.5) < 0.02
    assert page.complaints() == []


def test_the_address_restores_each_kind(page, browser):
    press(page, "n")
    message = state(page, "message")
    page.wait("location.hash.includes('m=')")
    shown = "JSON.stringify([beforehand.app.state.message, Math.round(beforehand.app.state.t)])"
    page.wait(
        f"location.hash.includes('t=' + Math.round(beforehand.app.state.t)) && {message} >= 0"
    )
    before, address = page.evaluate(shown), page.evaluate("location.href")
    browser.call("Page.navigate", url="about:blank")
    browser.call("Page.navigate", url=address)
    browser.wait(SHOWN)
    assert page.evaluate(shown) == before


def test_no_kind_is_wider_or_taller_than_the_window(page):
    for width in WIDTHS:
        page.resize(width, 844 if width < 720 else 800)
        page.wait("innerWidth === " + str(width))
        root = "document.documentElement"
        over = f"[{root}.scrollWidth - innerWidth, {root}.scrollHeight - innerHeight]"
        assert max(page.evaluate(over)) <= 0, (page.kind, width)


def open_kind(browser, pages, name):
    browser.resize(1280, 800)
    browser.open(pages / f"{name}.html", until=SHOWN)
    return browser


def test_a_key_goes_from_handoff_to_handoff(browser, pages):
    page = open_kind(browser, pages, "cells")
    press(page, "Escape")
    press(page, "h")
    node, t = state(page, "node"), state(page, "t")
    assert page.evaluate(f"beforehand.model.names[{node}]").startswith("H")
    page.wait("document.getElementById('details').textContent.includes('Handoffs')")
    press(page, "H")
    assert state(page, "t") < t


def test_the_tree_of_vcube_has_the_origin_in_the_middle(browser, pages):
    page = open_kind(browser, pages, "vcube")
    page.wait(
        """(() => { const { app, model } = beforehand, s = app.stage;
        const o = model.origin[app.state.message];
        return Math.hypot(s.x[o] - s.left, s.y[o] - s.top) < 1; })()"""
    )
    page.wait("document.getElementById('details').textContent.includes('Its packets')")


def test_a_click_on_the_queue_selects_the_event(browser, pages):
    page = open_kind(browser, pages, "observer")
    press(page, "Escape")
    box = page.evaluate(
        "(b => [b.x, b.y, b.width])(document.getElementById('stage').getBoundingClientRect())"
    )
    click(page, box[0] + box[2] / 6, box[1] + 34 + 3.5 * 22)
    assert state(page, "message") >= 0
    page.wait("document.getElementById('details').textContent.includes('Arrived as number')")


@pytest.mark.parametrize("name", ["nodes", "foreign"])
def test_a_run_without_a_clock_has_a_causal_axis_and_shows_gaps(browser, pages, name):
    page = open_kind(browser, pages, name)
    assert "no clock" in page.evaluate("document.querySelector('.spacetime h2').textContent")
    assert page.evaluate("document.getElementById('clock').textContent").startswith("place ")
    legend = page.evaluate("document.getElementById('st-legend').textContent")
    assert "not time" in legend
    assert "missing from the log" in legend
    names = page.evaluate("beforehand.model.names")
    assert HOSTILE[4] in names or "<b>bold</b>" in names
    assert page.evaluate("document.querySelector('#details b')") is None


def test_pages_are_within_their_budget(pages):
    for name in KINDS:
        text = (pages / f"{name}.html").read_text()
        head = json.loads(text.split('type="application/json">')[1].split("</script>")[0])
        counted = ("reception.t", "frame.t", "packet.t")
        rows = sum(column["n"] for column in head["columns"] if column["name"] in counted)
        assert len(text.encode()) <= 165_000 + 5 * rows, (name, rows)
