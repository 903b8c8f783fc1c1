"""The page of a run in a browser: it is offline, and every action changes what it shows."""

import json

import pytest

from beforehand.cli import main
from tests.browser.chromium import Chromium
from tests.play.agreement import compare
from tests.play.made_up import HOSTILE, late_log, simulate_buses

pytestmark = pytest.mark.browser
SHOWN = "window.beforehand && beforehand.marks.shown"
WIDTHS = (390, 600, 719, 720, 1000, 1100, 1280, 1920)


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return simulate_buses(tmp_path_factory.mktemp("buses"))


@pytest.fixture(scope="module")
def pages(log, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    late = late_log(folder / "late.parquet")
    for name, source in (("buses", log), ("late", late)):
        assert main(["play", str(source), "--out", str(folder / f"{name}.html"), "-q"]) == 0
    return folder


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Chromium(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def page(browser, pages):
    browser.resize(1280, 800)
    browser.prefer("light")
    browser.open(pages / "buses.html", until=SHOWN)
    return browser


def rest(page):
    """Wait until the page has drawn what changed; a page that plays never rests."""
    page.wait("!beforehand.app.asked || beforehand.app.state.isPlaying")


def state(page, field):
    return page.evaluate(f"beforehand.app.state.{field}")


def press(page, key, modifiers=0):
    text = key if len(key) == 1 else ""
    for kind in ("keyDown", "keyUp"):
        sent = text if kind == "keyDown" else ""
        page.call("Input.dispatchKeyEvent", type=kind, key=key, text=sent, modifiers=modifiers)
    rest(page)


def click(page, x, y):
    for kind in ("mousePressed", "mouseReleased"):
        page.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
    rest(page)


def middle_of(page, selector):
    box = f"document.querySelector({selector!r}).getBoundingClientRect()"
    return page.evaluate(f"(b => [b.x + b.width / 2, b.y + b.height / 2])({box})")


def test_the_page_makes_no_other_request_and_logs_no_error(page, pages):
    assert page.requests() == [(pages / "buses.html").as_uri()]
    assert page.complaints() == []


def test_the_first_view_shows_a_message_and_a_time_when_nodes_wait(page):
    assert state(page, "message") >= 0
    assert page.evaluate("document.querySelector('#details h2').textContent").count("#") == 1
    now = "const { model, app } = beforehand, t = app.state.t;"
    waits = "[...app.spread.rows].some((r) => model.recT[r] <= t && t < model.recEnd[r])"
    assert page.evaluate(f"(() => {{ {now} return {waits}; }})()")


def test_keys_step_play_change_speed_view_and_message(page):
    t = state(page, "t")
    press(page, "ArrowRight")
    page.wait(f"beforehand.app.state.t > {t}")
    later = state(page, "t")
    press(page, "ArrowLeft")
    page.wait(f"beforehand.app.state.t < {later}")
    press(page, " ")
    page.wait(f"beforehand.app.state.isPlaying && beforehand.app.state.t > {later + 1000}")
    press(page, " ")
    page.wait("!beforehand.app.state.isPlaying")
    speed = state(page, "speed")
    press(page, ".")
    assert state(page, "speed") > speed
    press(page, "c")
    assert state(page, "stage") == "circle"
    press(page, "m")
    assert state(page, "stage") == "map"
    message = state(page, "message")
    press(page, "n")
    assert state(page, "message") == message + 1
    press(page, "p")
    assert state(page, "message") == message
    width = page.evaluate("beforehand.app.view.t1 - beforehand.app.view.t0")
    press(page, "+")
    assert page.evaluate("beforehand.app.view.t1 - beforehand.app.view.t0") < width


def test_search_by_typing_selects_a_node_and_escape_selects_nothing(page):
    name = page.evaluate("beforehand.model.names[5]")
    press(page, "/")
    for letter in name:
        press(page, letter)
    page.wait("document.querySelectorAll('#found li[role=option]').length")
    press(page, "Enter")
    assert state(page, "node") == 5
    page.wait(f"document.querySelector('#details h2').textContent === {json.dumps(name)}")
    press(page, "Escape")
    assert state(page, "node") == -1
    press(page, "Escape")
    assert state(page, "message") == -1


def test_a_click_on_a_node_of_the_map_selects_it(page):
    press(page, "Escape")
    page.wait("beforehand.app.asked === null && !beforehand.app.dirty.size")  # it is drawn
    spot = page.evaluate(
        """(() => { const s = beforehand.app.stage, box = s.surface.canvas.getBoundingClientRect();
        const gap = (n, o) => Math.hypot(s.x[o] - s.x[n], s.y[o] - s.y[n]);
        const alone = (n) => Math.min(...s.there.filter((o) => o !== n).map((o) => gap(n, o)));
        const node = s.there.toSorted((a, b) => alone(b) - alone(a))[0];
        return [node, box.x + s.x[node], box.y + s.y[node]]; })()"""
    )
    click(page, spot[1], spot[2])
    assert state(page, "node") == spot[0]


def test_a_click_on_the_timeline_seeks(page):
    click(page, *middle_of(page, "#timeline"))
    assert abs(page.evaluate("beforehand.app.state.t / beforehand.model.length") - 0.5) < 0.02
    told = "document.getElementById('timeline').getAttribute('aria-valuetext')"
    page.wait(f"{told} === document.getElementById('clock').textContent")


def test_the_address_restores_the_view(page, browser, pages):
    press(page, "n")
    press(page, "c")
    page.wait("location.hash.includes('v=circle')")
    shown = """JSON.stringify([beforehand.app.state.message, beforehand.app.state.stage,
        Math.round(beforehand.app.view.t0), Math.round(beforehand.app.state.t)])"""
    before, address = page.evaluate(shown), page.evaluate("location.href")
    browser.call("Page.navigate", url="about:blank")
    browser.call("Page.navigate", url=address)
    browser.wait(SHOWN)
    assert page.evaluate(shown) == before


def test_nothing_is_wider_or_taller_than_the_window(page):
    for width in WIDTHS:
        page.resize(width, 844 if width < 720 else 800)
        page.wait("innerWidth === " + str(width))
        root = "document.documentElement"
        over = f"[{root}.scrollWidth - innerWidth, {root}.scrollHeight - innerHeight]"
        assert max(page.evaluate(over)) <= 0, width


def test_every_view_of_a_phone_is_drawn_after_every_other(page):
    page.resize(390, 844)
    page.evaluate("beforehand.app.select({ node: beforehand.app.stage.there[0] })")
    views = ("circle", "", "map", "")
    for view, tab in zip(views, ("stage", "spacetime", "stage", "details"), strict=True):
        also = f"[data-also={view}]" if view and tab == "stage" else ""
        page.evaluate(f"document.querySelector('#tabs [data-tab={tab}]{also}').click()")
        page.wait(f"beforehand.app.state.tab === '{tab}' && beforehand.app.dirty.size === 0")
        if tab == "spacetime":
            page.wait("!beforehand.app.view.isStale && beforehand.app.view.base.width === 390")
    assert page.complaints() == []


def test_every_control_has_a_name(page):
    unnamed = """[...document.querySelectorAll('button, input, select, canvas[role]')]
        .filter((e) => !e.hidden)
        .filter((e) => !(e.ariaLabel || e.textContent.trim() || e.title || e.labels?.length))
        .map((e) => e.id)"""
    assert page.evaluate(unnamed) == []


def test_receptions_and_waiting_equal_the_log(page, log):
    assert compare(page, log) == (3000, 50)


def test_violations_open_with_their_proof_and_hostile_names_stay_text(browser, pages):
    browser.resize(1280, 800)
    browser.open(pages / "late.html", until=SHOWN)
    assert browser.complaints() == []
    assert browser.evaluate("beforehand.model.names[0]") == HOSTILE[0]
    assert browser.evaluate("document.querySelectorAll('script').length") == 2
    assert "violation" in browser.evaluate("document.getElementById('verdict').textContent")
    kinds = browser.evaluate("[...beforehand.model.wrong.kind]")
    assert sorted(kinds) == [0, 1, 2]  # late, twice, unknown
    steps = browser.evaluate("document.querySelectorAll('.tour button').length")
    assert steps == 5  # broadcast, delivery, reply, delivery of the reply, late delivery
    browser.evaluate("document.querySelectorAll('.tour button')[2].click()")
    assert browser.evaluate("beforehand.app.state.t") == 6000


def test_hints_explain_a_first_visit_and_close(browser, pages):
    browser.open(pages / "late.html", until=SHOWN)
    browser.evaluate("localStorage.clear()")
    browser.open(pages / "late.html", until=SHOWN)
    assert browser.evaluate("document.getElementById('hints').textContent").startswith("1 of 3")
    for _ in range(3):
        browser.evaluate("document.querySelector('#hints .link').click()")
    assert browser.evaluate("document.getElementById('hints').hidden")
    browser.open(pages / "late.html", until=SHOWN)
    assert browser.evaluate("document.getElementById('hints').hidden")


def test_the_rows_are_a_table_for_screen_readers(page):
    rows = page.evaluate("document.querySelectorAll('#rows tbody tr').length")
    assert rows == page.evaluate("beforehand.app.view.rows.length") > 10
    assert "waits since" in page.evaluate("document.getElementById('rows').textContent")


def test_forced_colours_and_reduced_motion_still_draw_and_play(page, browser, pages):
    features = [
        {"name": "forced-colors", "value": "active"},
        {"name": "prefers-reduced-motion", "value": "reduce"},
    ]
    browser.call("Emulation.setEmulatedMedia", features=features)
    browser.open(pages / "buses.html", until=SHOWN)
    colours = browser.evaluate("Object.values(beforehand.app.colours)")
    assert all(len(colour) == 7 and colour[0] == "#" for colour in colours)
    t = state(page, "t")
    press(page, " ")
    page.wait(f"beforehand.app.state.t > {t}")
    press(page, " ")
    assert browser.complaints() == []


def test_a_finger_selects_drags_and_two_fingers_zoom(page):
    press(page, "Escape")
    page.wait("beforehand.app.asked === null && !beforehand.app.dirty.size")
    box = page.evaluate(
        "(b => [b.x, b.y])(document.getElementById('stage').getBoundingClientRect())"
    )
    places = "[...beforehand.app.stage.there].map((n) => beforehand.app.stage.x[n])"
    before, scale = page.evaluate(places), page.evaluate("beforehand.app.stage.scale")

    def touch(kind, *points):
        spots = [{"x": box[0] + x, "y": box[1] + y, "id": at} for at, (x, y) in enumerate(points)]
        page.call("Input.dispatchTouchEvent", type=kind, touchPoints=spots)

    touch("touchStart", (100, 100))
    touch("touchMove", (130, 100))
    touch("touchMove", (160, 100))
    touch("touchEnd")
    rest(page)
    after = page.evaluate(places)
    moved = [b - a for a, b in zip(before, after, strict=True)]
    assert min(moved) == pytest.approx(max(moved), abs=1)
    assert min(moved) > 20
    touch("touchStart", (100, 200), (140, 200))
    touch("touchMove", (80, 200), (180, 200))
    touch("touchMove", (60, 200), (240, 200))
    touch("touchEnd")
    rest(page)
    assert page.evaluate("beforehand.app.stage.scale") > 1.5 * scale
    assert page.complaints() == []


def test_the_page_prints_its_views_without_controls(page, browser):
    browser.prefer("light", media="print")
    hidden = "['play', 'search', 'theme', 'zoom-in'].map((id) => document.getElementById(id))"
    assert page.evaluate(f"{hidden}.every((e) => e.getClientRects().length === 0)")
    shown = "['stage', 'st-base', 'timeline', 'details'].map((id) => document.getElementById(id))"
    assert page.evaluate(f"{shown}.every((e) => e.getClientRects().length > 0)")
    assert browser.pdf().startswith(b"%PDF")
    browser.prefer("light")


def test_a_page_of_calm_steps_and_does_not_glide(page, browser, pages):
    features = [{"name": "prefers-reduced-motion", "value": "reduce"}]
    browser.call("Emulation.setEmulatedMedia", features=features)
    browser.open(pages / "buses.html", until=SHOWN)
    count = """new Promise((done) => { const { app } = beforehand, times = new Set();
        app.play(true); const began = performance.now();
        const look = () => { times.add(app.state.t);
          if (performance.now() - began < 1600) return requestAnimationFrame(look);
          app.play(false); done(times.size); };
        look(); })"""
    assert page.evaluate(count) <= 5
