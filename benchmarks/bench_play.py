"""Claim: a page of the city buses is shown in half a second, plays at 50 frames a second or more,
and has at most 5 B per reception plus 150 kB. 3,000 receptions and 50 counts of waiting messages
equal the log. The same holds for 1.46 million receptions and for 2,000 nodes at once.

`cpu_s` covers everything from the event log to the file. Times in the page are wall-clock times of
a Chromium without a graphics card, so they are upper bounds under load. `frames_per_s` counts the
frames that the page draws while it plays at 600x with a message chosen. `shown_ms` has each of some
openings, and `shown_cpu_ms` the CPU time of the page's thread, which other work on the machine
hardly changes. `frame_cpu_ms` is that of a frame.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

REPO = Path(__file__).parent.parent
sys.path.insert(0, str(REPO))  # the browser of the tests

import msgspec  # noqa: E402
from tests.browser.chromium import Chromium  # noqa: E402
from tests.play.agreement import compare  # noqa: E402

from beforehand.mobility.generators import buses, walkers, waypoint  # noqa: E402
from beforehand.mobility.positions import Positions  # noqa: E402
from beforehand.play.encode import encode  # noqa: E402
from beforehand.play.gather import gather_run  # noqa: E402
from beforehand.play.page import write_page  # noqa: E402
from beforehand.protocols.epidemic.options import Options  # noqa: E402
from beforehand.protocols.registry import find_order  # noqa: E402
from beforehand.sim.contacts.links import LinkModel  # noqa: E402
from beforehand.sim.contacts.run import Spec, run_one  # noqa: E402
from beforehand.sim.contacts.traffic import Traffic  # noqa: E402
from beforehand.sim.log import (  # noqa: E402
    event_table,
    links_table,
    pasts_table,
    write_events,
)

PLAYED_S = 3
OPENED = 7
PLAYED = 4
SHOWN = "window.beforehand && beforehand.marks.shown"
COUNT_FRAMES = """new Promise((done) => {
  const { app } = beforehand;
  let frames = 0;
  const began = performance.now(), draw = app.stage.draw;
  app.stage.draw = (...given) => { frames++; return draw.apply(app.stage, given); };
  app.setSpeed(600);
  if (app.state.t + SECONDS * 600_000 > app.model.length) app.seek(0);
  app.play(true);
  setTimeout(() => {
    app.play(false);
    app.stage.draw = draw;
    done(frames / ((performance.now() - began) / 1000));
  }, SECONDS * 1000);
})"""
MINUTE_US = 60_000_000


class World(NamedTuple):
    """A mobility model and the traffic on it."""

    places: Positions
    range_m: float
    protocol: str
    lifetime_us: int | None
    period_us: int
    sources: float | None = None
    """The share of the nodes that broadcast; None: all."""


WORLDS: dict[str, Callable[[], World]] = {
    "city-bus": lambda: World(buses.generate(1), 200.0, "causal", None, 20 * MINUTE_US),
    "ostermalm": lambda: World(
        walkers.generate(1), 50.0, "delta", 20 * MINUTE_US, period_us=MINUTE_US
    ),
    # 2,000 nodes that are there all the time, and meet far more often than people do.
    "at-once": lambda: World(
        waypoint.generate(1, nodes=2000, hours=0.5, width_m=1500, height_m=1500),
        *(50.0, "causal", None, 15 * MINUTE_US, 0.05),
    ),
}


def write_run(folder: Path, world: str) -> Path:
    """Simulate the world, and write its log with the tables beside it."""
    import pyarrow as pa

    places, range_m, protocol, lifetime_us, period_us, sources = WORLDS[world]()
    trace = places.contacts_within(range_m)
    spec = Spec(
        protocol,
        seed=1,
        lifetime_us=lifetime_us,
        traffic=Traffic(first_us=20_000_000, period_us=period_us, sources=sources),
        links=LinkModel(latency_us=2_000, bytes_per_s=4_000),
        layer=Options(announce_us=5_000_000, frame_messages_max=1, frame_bytes_max=1_000_000),
    )
    result = run_one(trace, spec)
    written = find_order(protocol).written
    log = event_table(
        world,
        result.columns,
        senders=result.senders,
        promise=written,
        names=trace.names,
        about=msgspec.structs.replace(spec.about(), range_m=range_m),
    )
    path = folder / f"{world}.parquet"
    write_events(log, path)
    write_events(links_table(trace.contacts), folder / f"{world}.links.parquet")
    write_events(pasts_table(result.pasts), folder / f"{world}.pasts.parquet")
    write_events(pa.table(places.segments._asdict()), folder / f"{world}.positions.parquet")
    return path


def open_once(browser: Chromium, page: Path) -> tuple[int, int]:
    """Return the time until something is shown, and the CPU time of the page's thread, in ms."""
    browser.call("Page.navigate", url="about:blank")
    browser.open(page, until=SHOWN)
    return round(browser.evaluate("beforehand.marks.shown")), round(1000 * busy_s(browser))


def play_once(browser: Chromium) -> tuple[float, float]:
    """Return the frames per second while the run plays, and the CPU time of the page's thread for
    each, in ms."""
    before_s = busy_s(browser)
    frames_per_s = browser.evaluate(COUNT_FRAMES.replace("SECONDS", str(PLAYED_S)))
    cpu_s = busy_s(browser) - before_s
    return round(frames_per_s, 1), round(1000 * cpu_s / (PLAYED_S * frames_per_s), 1)


def busy_s(browser: Chromium) -> float:
    metrics = browser.call("Performance.getMetrics")["metrics"]
    return float(next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration"))


def measure(world: str, folder: Path) -> dict[str, Any]:
    log = write_run(folder, world)
    page = folder / f"{world}.html"
    started_s = time.process_time()
    run = gather_run(log)
    size = write_page(run, page)
    cpu_s = time.process_time() - started_s
    head, _ = encode(run)
    receptions = next(c["n"] for c in head["columns"] if c["name"] == "reception.t")
    profiles = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    with profiles as profile, Chromium(Path(profile)) as browser:
        browser.resize(1280, 800)
        browser.call("Performance.enable", timeDomain="threadTicks")
        opened = [open_once(browser, page) for _ in range(OPENED)]
        played = [play_once(browser) for _ in range(PLAYED)]
        browser.call("HeapProfiler.collectGarbage")
        heap = browser.call("Runtime.getHeapUsage")
        heap_bytes = int(heap["usedSize"] + heap.get("backingStorageSize", 0))
        equal = compare(browser, log)
    return {
        "receptions": receptions,
        "page_bytes": size,
        "page_budget_bytes": 5 * receptions + 150_000,
        "write_cpu_s": round(cpu_s, 2),
        "shown_ms": sorted(shown for shown, _ in opened),
        "shown_cpu_ms": sorted(cpu for _, cpu in opened),
        "frames_per_s": sorted((frames for frames, _ in played), reverse=True),
        "frame_cpu_ms": sorted(cpu for _, cpu in played),
        "heap_bytes": heap_bytes,
        "equal_to_the_log": dict(zip(("receptions", "instants"), equal, strict=True)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("worlds", nargs="*", default=list(WORLDS), metavar="WORLD")
    worlds = parser.parse_args().worlds
    with tempfile.TemporaryDirectory() as folder:
        found = {world: measure(world, Path(folder)) for world in worlds}
    print(json.dumps({"python": platform.python_version(), "load": os.getloadavg()[0], **found}))


if __name__ == "__main__":
    main()
