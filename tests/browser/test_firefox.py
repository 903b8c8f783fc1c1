"""The pages of all kinds of runs in Firefox, another engine than Chromium's."""

import pytest

from tests.browser.firefox import EXECUTABLE, Firefox
from tests.browser.test_play import SHOWN
from tests.browser.test_play_kinds import INK, KINDS

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(EXECUTABLE is None, reason="Firefox is not installed"),
]
ESCAPE = "\ue00c"


@pytest.fixture(scope="module")
def firefox(tmp_path_factory):
    with Firefox(tmp_path_factory.mktemp("firefox")) as opened:
        yield opened


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_drawn_and_acts_in_firefox(firefox, kind_pages, kind):
    firefox.resize(1280, 860)
    firefox.open(kind_pages / f"{kind}.html", until=SHOWN)
    assert firefox.evaluate("document.getElementById('trouble').hidden")
    for canvas in ("stage", "st-base", "timeline"):
        firefox.wait(f"{INK}('{canvas}') > 300")
    message = firefox.evaluate("beforehand.app.state.message")
    assert message >= 0
    firefox.press("n")
    firefox.wait(f"beforehand.app.state.message !== {message}")
    firefox.press(ESCAPE)
    firefox.wait("beforehand.app.state.message === -1")
    box = "document.getElementById('timeline').getBoundingClientRect()"
    firefox.click(*firefox.evaluate(f"(b => [b.x + b.width / 2, b.y + b.height / 2])({box})"))
    firefox.wait("Math.abs(beforehand.app.state.t / beforehand.model.length - 0.5) < 0.02")
    t = firefox.evaluate("beforehand.app.state.t")
    firefox.press(" ")
    firefox.wait(f"beforehand.app.state.isPlaying && beforehand.app.state.t > {t}")
    firefox.press(" ")
    firefox.wait("!beforehand.app.state.isPlaying")
