"""The report in a browser: it makes no request, logs no error, and fits a phone."""

import pytest

from beforehand.lab import write_report
from tests.browser.chromium import Chromium
from tests.report.made_up import write_datasets
from tests.waiting import wait_until

pytestmark = pytest.mark.browser
DRAWN = "document.documentElement.dataset.charts === 'drawn'"
PHONE, DESK = 390, 1200
FIGURES = 13


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return write_report(write_datasets(tmp_path_factory.mktemp("run"), protocols=("vector",)))


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Chromium(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(params=[PHONE, DESK])
def width(request):
    return request.param


@pytest.fixture
def page(width, browser, report):
    browser.resize(width)
    browser.prefer("light")
    browser.open(report, until=DRAWN)
    return browser


def test_the_page_makes_no_other_request_and_logs_no_error(page, report):
    assert page.requests() == [report.as_uri()]
    assert page.complaints() == []


def test_a_page_with_other_requests_or_console_errors_is_detected(browser, tmp_path):
    address = "http://127.0.0.1:47123/x.png"
    bad = f"console.error('oops'); new Image().src = '{address}'"
    (tmp_path / "bad.html").write_text(f"<body><script>{bad}</script>")
    browser.open(tmp_path / "bad.html", until="true")
    assert address in browser.requests()
    assert any("oops" in complaint for complaint in browser.complaints())


def test_every_chart_is_drawn(page):
    marks = page.evaluate(
        "[...document.querySelectorAll('[data-chart]')].map("
        "place => place.querySelectorAll('svg .role-mark path, svg .role-mark line').length)"
    )
    assert len(marks) == FIGURES
    assert min(marks) > 0


def test_nothing_is_wider_than_the_screen(page, width):
    # A phone zooms out to show what is too wide, and then says that it is wider than it is.
    assert page.evaluate("[innerWidth, document.documentElement.scrollWidth]") == [width, width]
    wide = page.evaluate(
        "[...document.querySelectorAll('h1, h2, h3, p, svg, figure, .tiles, nav, td')].filter("
        f"part => part.getBoundingClientRect().right > {width} + 1).map(part => part.outerHTML)"
    )
    assert wide == []


@pytest.mark.parametrize("wide", [PHONE, DESK, 1500])
def test_the_contents_stay_in_sight_and_mark_the_section_that_is_read(browser, report, wide):
    browser.resize(wide)
    browser.open(report, until=DRAWN)
    browser.evaluate("document.querySelectorAll('section')[4].scrollIntoView()")
    marked = "document.querySelector('nav a[aria-current]')"
    wait_until(lambda: browser.evaluate(f"{marked} !== null"))
    title = "document.querySelectorAll('section h2')[4]"
    assert browser.evaluate(f"{marked}.textContent === {title}.textContent")
    seen = f"document.elementFromPoint({marked}.getBoundingClientRect().x + 5, Y) === {marked}"
    middle = browser.evaluate(f"{marked}.getBoundingClientRect().y + 8")
    assert browser.evaluate(seen.replace("Y", str(middle)))
    bar = "document.querySelector('nav').getBoundingClientRect().bottom"
    assert wide == 1500 or browser.evaluate(f"{title}.getBoundingClientRect().top >= {bar}")


def test_wide_tables_are_cards_on_a_phone_only(page, width):
    shape = page.evaluate("getComputedStyle(document.querySelector('table.wide tr')).display")
    assert shape == ("block" if width == PHONE else "table-row")


def test_a_chart_fills_the_width_of_its_container(page):
    measure = (
        "[...document.querySelectorAll('#presence svg, #presence .chart')].map("
        "part => part.getBoundingClientRect().width).reverse()"
    )
    chart, place = page.evaluate(measure)
    assert 0.97 * place <= chart <= place
    # Paper is narrower than the screen, and tells no script that it is.
    page.evaluate("document.querySelector('#presence').style.width = '300px'")
    chart, place = page.evaluate(measure)
    assert chart <= place == 300


@pytest.mark.parametrize(("scheme", "is_dark"), [("light", False), ("dark", True)])
def test_the_page_follows_the_light_or_dark_preference(browser, report, scheme, is_dark):
    browser.resize(DESK)
    browser.prefer(scheme)
    browser.open(report, until=DRAWN)
    ground = brightness(browser, "getComputedStyle(document.body).backgroundColor")
    label = "getComputedStyle(document.querySelector('#presence svg text')).fill"
    assert (ground < 60) == is_dark
    assert abs(ground - brightness(browser, label)) > 120


def test_print_uses_the_light_theme_in_dark_mode_too(browser, report):
    browser.prefer("dark", media="print")
    browser.open(report, until=DRAWN)
    assert brightness(browser, "getComputedStyle(document.body).backgroundColor") > 250
    assert browser.pdf().startswith(b"%PDF")
    browser.prefer("light")


def brightness(browser, colour):
    red, green, blue, *_ = browser.evaluate(f"({colour}).match(/[\\d.]+/g).map(Number)")
    return (red + green + blue) / 3


@pytest.mark.parametrize(
    ("slug", "kind"),
    [("processing", "csv"), ("cdf-delay", "csv"), ("presence", "svg"), ("presence", "png")],
)
def test_downloads_work_without_the_files_beside_the_page(browser, report, tmp_path, slug, kind):
    alone = tmp_path / "alone.html"
    alone.write_text(report.read_text())
    downloads = tmp_path / "downloads"
    browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(downloads))
    browser.open(alone, until=DRAWN)
    browser.evaluate(f"document.querySelector('a[data-slug={slug}][data-kind={kind}]').click()")
    wanted = (report.parent / "figures" / f"{slug}.{kind}").read_bytes()
    if kind == "png":  # drawn by the browser, in the size of the file
        found = read_soon(downloads / "presence.png", 5_000)
        assert found[:24] == wanted[:24]
    else:
        assert read_soon(downloads / f"{slug}.{kind}", len(wanted)) == wanted


def test_a_dense_figure_can_be_zoomed_and_a_plain_wheel_scrolls_the_page(browser, report):
    browser.resize(DESK)
    browser.open(report, until=DRAWN)
    slug = "scatter-causal-none"
    browser.evaluate(f"document.querySelector('#{slug}').scrollIntoView({{block: 'center'}})")
    assert "Ctrl + wheel" in browser.evaluate(f"document.querySelector('#{slug}').innerText")
    inside = f"document.querySelector('#{slug} svg .role-mark path')"
    spot = f"(() => {{ const b = document.querySelector('#{slug} svg').getBoundingClientRect();"
    x, y = browser.evaluate(f"{spot} return [b.x + b.width / 2, b.y + b.height / 2]; }})()")
    wide = browser.evaluate(f"{inside}.getAttribute('transform')")
    wheel = {"type": "mouseWheel", "x": x, "y": y, "deltaX": 0, "deltaY": -200}
    browser.call("Input.dispatchMouseEvent", **wheel, modifiers=2)
    browser.wait(f"{inside}.getAttribute('transform') !== '{wide}'")
    zoomed = browser.evaluate(f"{inside}.getAttribute('transform')")
    top = browser.evaluate("scrollY")
    browser.call("Input.dispatchMouseEvent", **wheel)
    browser.wait(f"scrollY < {top}")
    assert browser.evaluate(f"{inside}.getAttribute('transform')") == zoomed


def test_a_saved_chart_has_its_own_colours(browser, report, tmp_path):
    browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    browser.open(report, until=DRAWN)
    browser.evaluate("document.querySelector('a[data-slug=cdf-delay][data-kind=svg]').click()")
    svg = read_soon(tmp_path / "cdf-delay.svg", 1000).decode()
    assert svg.startswith("<svg")
    assert svg.count("currentColor") == 0


def read_soon(path, size_min):
    wait_until(lambda: path.exists() and path.stat().st_size >= size_min, told=lambda: path.name)
    return path.read_bytes()


def test_without_scripts_charts_are_static_images(browser, report):
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    browser.call("Page.navigate", url=report.as_uri())
    try:
        browser.wait("document.readyState === 'complete'")
        sizes = browser.evaluate(
            "[...document.querySelectorAll('noscript img')].map(image => image.naturalWidth)"
        )
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)
    assert len(sizes) == FIGURES
    assert min(sizes) > 500


def test_touching_a_line_shows_its_label(browser, report):
    browser.resize(DESK)
    browser.open(report, until=DRAWN)
    browser.evaluate("document.querySelector('#cdf-delay').scrollIntoView({block: 'center'})")
    x, y = browser.evaluate(
        "(() => { const marks = document.querySelectorAll('#cdf-delay .mark-symbol path');"
        " const box = marks[marks.length >> 1].getBoundingClientRect();"
        " return [box.x + box.width / 2, box.y + box.height / 2]; })()"
    )
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    browser.wait("document.querySelector('#vg-tooltip-element.visible')")
    words = browser.evaluate("document.querySelector('#vg-tooltip-element').innerText")
    assert "Protocol, lifetime" in words
    assert "Below" in words


def test_selecting_a_legend_entry_dims_the_other_lines(browser, report):
    browser.resize(DESK)
    browser.open(report, until=DRAWN)
    browser.evaluate("document.querySelector('#cdf-delay').scrollIntoView({block: 'center'})")
    lines = (
        "[...document.querySelectorAll('#cdf-delay .mark-line.role-mark path')].map("
        "line => Number(line.getAttribute('opacity') ?? 1))"
    )
    assert set(browser.evaluate(lines)) == {1}
    x, y = browser.evaluate(
        "(() => { const box = document.querySelector('#cdf-delay .role-legend-symbol path')"
        ".getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; })()"
    )
    for kind in ("mousePressed", "mouseReleased"):
        browser.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
    browser.wait(f"({lines}).filter(opacity => opacity < 0.5).length")
    assert browser.evaluate(f"({lines}).filter(opacity => opacity === 1).length") == 1


COLUMN = "[...document.querySelectorAll('#nodes tbody tr')].filter(row => !row.hidden).map(" + (
    "row => row.cells[{}].innerText)"
)


def test_clicking_a_table_header_sorts_with_missing_values_last(browser, report):
    browser.resize(DESK)
    browser.open(report, until=DRAWN)
    browser.evaluate("document.querySelector('#nodes').open = true")
    click = "document.querySelectorAll('#nodes th')[{}].click()"
    browser.evaluate(click.format(5))
    rising = browser.evaluate(COLUMN.format(5))
    assert rising[-1] == "–"
    delays = [float(text) for text in rising[:-1]]
    assert delays == sorted(delays)
    assert delays[-1] >= 10 > delays[0]  # as numbers: 2 before 10
    browser.evaluate(click.format(5))
    assert browser.evaluate(COLUMN.format(5)) == [*rising[-2::-1], "–"]
    browser.evaluate(click.format(0))
    assert browser.evaluate(COLUMN.format(0)) == [f"L01-{node}" for node in range(12)]
    sorts = "[...document.querySelectorAll('#nodes th')].map(head => head.ariaSort)"
    assert browser.evaluate(sorts) == ["ascending", *[None] * 8]


def test_a_long_table_can_be_searched_and_sorted_on_a_phone_too(page, width):
    page.evaluate("document.querySelector('#nodes').open = true")
    page.evaluate(
        "(() => { const field = document.querySelector('#nodes input'); field.value = 'l01-1';"
        " field.dispatchEvent(new Event('input')); })()"
    )
    assert page.evaluate(COLUMN.format(0)) == ["L01-1", "L01-10", "L01-11"]
    assert page.evaluate("document.querySelector('#nodes output').innerText") == "3 of 12 rows"
    shape = page.evaluate("getComputedStyle(document.querySelector('#nodes select')).display")
    assert (shape == "none") == (width == DESK)
    page.evaluate(
        "(() => { const order = document.querySelector('#nodes select'); order.value = '0';"
        " order.dispatchEvent(new Event('change')); })()"
    )
    assert page.evaluate(COLUMN.format(0)) == ["L01-11", "L01-10", "L01-1"]
    assert page.evaluate("document.documentElement.scrollWidth") == width
