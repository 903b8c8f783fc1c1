"""Losses, crashes and each kind of violation have a sign of their own in the diagram."""

import re

import numpy as np
import pytest

from beforehand.cli import main
from beforehand.events import (
    BROADCAST,
    CRASH,
    DELIVER,
    DROP,
    EXPIRE,
    JOIN,
    LEAVE,
    RECEIVE,
    RECOVER,
    About,
)
from tests.browser.chromium import Chromium
from tests.browser.test_play import SHOWN, rest
from tests.play.made_up import SECOND_US, write_log

pytestmark = pytest.mark.browser
LOOKED = 9
"""Pixels around the middle of a sign that are looked at."""
# The pixels of one colour around each place: a row of text for each row of pixels.
LOOK = """(() => {
  const { view, colours } = beforehand.app, c = view.base.canvas, g = c.getContext("2d");
  const near = (d, i, [r, g, b]) =>
    Math.abs(d[i] - r) + Math.abs(d[i + 1] - g) + Math.abs(d[i + 2] - b) < 60 && d[i + 3] > 100;
  const parts = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  return PLACES.map(([t, node, colour]) => {
    const x = Math.round(view.x(t)), y = Math.round(view.y(node)), side = 2 * SIZE + 1;
    const d = g.getImageData(x - SIZE, y - SIZE, side, side).data;
    return Array.from({ length: side }, (_, row) => Array.from({ length: side }, (_, at) =>
      near(d, 4 * (row * side + at), parts(colours[colour])) ? "#" : ".").join(""));
  }); })()"""
PLACES = {
    "late": (8, 2, "wrong"),
    "twice": (12, 2, "wrong"),
    "unknown": (16, 1, "wrong"),
    "expire": (20, 3, "soft"),
    "drop": (24, 3, "soft"),
    "crash": (28, 3, "ink"),
    "recover": (34, 3, "ink"),
}


def signs_log(path):
    """Write a log with every sign, each 4 s from the next."""
    rows = [
        *((0, node, JOIN, -1, -1) for node in range(4)),
        (1, 0, BROADCAST, 0, 1),
        (2, 1, RECEIVE, 0, 1),
        (2, 1, DELIVER, 0, 1),
        (3, 1, BROADCAST, 1, 1),
        (4, 2, RECEIVE, 1, 1),
        (4, 2, DELIVER, 1, 1),
        (8, 2, RECEIVE, 0, 1),
        (8, 2, DELIVER, 0, 1),
        (12, 2, DELIVER, 0, 1),
        (16, 1, DELIVER, 2, 99),
        (20, 3, EXPIRE, 0, 1),
        (24, 3, DROP, 1, 1),
        (28, 3, CRASH, -1, -1),
        (34, 3, RECOVER, -1, -1),
        *((40, node, LEAVE, -1, -1) for node in range(4)),
    ]
    timed = [(t * SECOND_US, *rest) for t, *rest in rows]
    senders = np.array([0, 1, 0], np.int32)
    return write_log(path, timed, "abcd", senders=senders, about=About(protocol="made"))


@pytest.fixture(scope="module")
def signs(tmp_path_factory):
    """Return the pixels of each sign, as rows of text."""
    folder = tmp_path_factory.mktemp("signs")
    page = folder / "signs.html"
    log = signs_log(folder / "log.parquet")
    assert main(["play", str(log), "--out", str(page), "-q"]) == 0
    with Chromium(tmp_path_factory.mktemp("profile")) as browser:
        browser.resize(1280, 800)
        browser.prefer("light")
        browser.open(page, until=SHOWN)
        all_of_it = "app.select({ message: -1, node: -1 }); app.fitView(); app.seek(0);"
        browser.evaluate(f"(() => {{ const {{ app }} = beforehand; {all_of_it} }})() || 1")
        rest(browser)
        spots = [[1000 * t, node, colour] for t, node, colour in PLACES.values()]
        found = browser.evaluate(LOOK.replace("PLACES", str(spots)).replace("SIZE", str(LOOKED)))
    return dict(zip(PLACES, found, strict=True))


def width(sign, by):
    """Return how many pixels a sign has `by` rows below its middle."""
    return sign[LOOKED + by].count("#")


def test_a_late_delivery_is_a_triangle_and_an_unknown_one_stands_on_its_tip(signs):
    assert width(signs["late"], 3) > width(signs["late"], 0) > width(signs["late"], -4) > 0
    assert width(signs["unknown"], -3) > width(signs["unknown"], 0) > width(signs["unknown"], 2) > 0


def test_a_repeated_delivery_is_two_triangles(signs):
    for by in (-2, -1):  # above the place where they overlap
        assert len(re.findall("#+", signs["late"][LOOKED + by])) == 1
        assert len(re.findall("#+", signs["twice"][LOOKED + by])) == 2


def test_an_expired_message_is_a_cross_and_a_dropped_one_a_square(signs):
    cross, square = signs["expire"], signs["drop"]
    assert cross[LOOKED][LOOKED] == "#"
    assert width(cross, 0) < width(square, 4)
    assert square[LOOKED][LOOKED - 1 : LOOKED + 2] == "..."
    assert max(row.count("#") for row in square) >= 7
    assert sum(row.count("#") for row in cross) > 8


def test_a_crash_is_a_zigzag_and_a_recovery_a_bar(signs):
    def columns(sign):
        return {row.index("#") for row in sign if "#" in row}

    assert len(columns(signs["crash"])) >= 3
    assert len(columns(signs["recover"])) == 1
    assert sum("#" in row for row in signs["recover"]) >= 10
