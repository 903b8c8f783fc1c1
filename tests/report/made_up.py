"""Datasets as a finished run leaves them, made up: near the published figures, and small."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from beforehand.protocols.registry import written_promise

MINUTE_US = 60_000_000
HOUR_US = 60 * MINUTE_US
SECOND_US = 1_000_000
LIFETIMES_MIN = {"opp-buses": (None, 120, 60, 40, 20, 10), "opp-ostermalm": (20, 15, 10, 5)}
TRANSFER = "announcements every 5 s, 2 ms latency, 1 MB/s, one frame at a time, random order"

# broadcasts, receptions, delay average and deviation in minutes, latency average in seconds
FIGURES = {
    None: (2004, 104_120, 44.9, 79, 12.2),
    120: (2004, 99_871, 23.0, 18.2, 2.2),
    60: (2004, 95_411, 20.2, 13.3, 1.1),
    40: (2004, 80_950, 17.5, 10.4, 0.6),
    20: (2004, 47_703, 10.9, 5.3, 0.2),
    15: (10557, 1_100_205, 6.6, 4.4, 12.0),
    10: (2004, 20_310, 5.6, 3.1, 0.06),
    5: (10557, 541_205, 2.3, 1.5, 2.1),
}


def write_datasets(
    folder: Path,
    paper: str | None = "opp-buses",
    *,
    seeds: int = 1,
    as_folders: bool = False,
    title: str = "City buses",
    protocols: tuple[str, ...] = (),
    **changes: Any,
) -> Path:
    """All datasets of the contract.

    protocols: more of them, with the same lifetimes. changes: other values for columns of `runs`.
    """
    rng = np.random.default_rng(7)
    lifetimes = LIFETIMES_MIN[paper or "opp-buses"]
    runs = [
        {**make_run(protocol, minutes, seed), **changes}
        for minutes in lifetimes
        for protocol in ("causal" if minutes is None else "delta", *protocols)
        for seed in range(seeds)
    ]
    names = [run["run"] for run in runs]
    limits = {run["run"]: run["lifetime_us"] or 11 * HOUR_US for run in runs}
    datasets = {
        "runs": runs,
        "quantiles": [row for run in names for row in make_quantiles(rng, run, limits[run])],
        "scatter": [row for run in names for row in make_scatter(rng, run, limits[run])],
        "presence": make_presence(),
        "gauges": [row for run in names for row in make_gauges(run, limits[run])],
        "trace": [make_trace()],
        "nodes": [row for run in names for row in make_nodes(run)],
        "messages": [row for run in names for row in make_messages(run)],
        "meetings": make_meetings(),
        "survival": [
            {"metric": metric, "value_us": 10**k, "share": 0.5 ** (k - 5)}
            for metric in ("duration", "between")
            for k in range(6, 11)
        ],
        "hours": [
            {"from_us": h * HOUR_US, "contacts": 9 - h, "first_encounters": 4 - h} for h in range(4)
        ],
        "hops": [row for run in names for row in make_hops(run)],
    }
    for name, rows in datasets.items():
        write_rows(folder, name, rows, as_folder=as_folders)
    scenario = {
        "name": "city-bus",
        "title": title,
        "paper": paper,
        "parameters": {
            "period_us": 20 * MINUTE_US,
            "network": {"range_m": 200, "loss": 0.0},
            "protocols": [{"name": "causal"}, {"name": "delta", "lifetimes": ["20m", "10m"]}],
        },
        "changes": {"merged_overlap": 12, "self_contact": 0},
        "versions": {"beforehand": "0.1.0"},
    }
    (folder / "scenario.json").write_text(json.dumps(scenario))
    return folder


def write_rows(folder: Path, name: str, rows: list[dict[str, Any]], *, as_folder: bool) -> None:
    path = folder / f"{name}.parquet"
    table = pa.Table.from_pylist(rows)
    if not as_folder:
        pq.write_table(table, path)
        return
    path.mkdir()
    half = len(rows) // 2
    pq.write_table(table.slice(0, half), path / "part-0.parquet")
    pq.write_table(table.slice(half), path / "part-1.parquet")
    (path / "_SUCCESS").touch()  # as Spark leaves it


def make_run(protocol: str, minutes: int | None, seed: int) -> dict[str, Any]:
    broadcasts, receptions, delay_min, spread_min, latency_s = FIGURES[minutes]
    receptions += 100 * seed
    delay_us, spread_us, latency_us = delay_min * 6e7, spread_min * 6e7, latency_s * 1e6
    longest_us = float((minutes or 700) * MINUTE_US - 4_000_000)
    run: dict[str, Any] = {
        "run": f"{protocol}-{minutes or 'none'}-{seed}",
        "protocol": protocol,
        "promise": written_promise(protocol),
        "lifetime_us": minutes and minutes * MINUTE_US,
        "point": "",
        "seed": seed,
        "nodes": 12,
        "contacts": 8731,
        "broadcasts": broadcasts,
        "receptions": receptions,
        "deliveries": broadcasts + receptions - 4,
        "expired": 0 if minutes is None or minutes > 20 else 3,
        "dropped": 0,
        "waiting": 4 if minutes is None or minutes > 20 else 1,
        "left_out": 0,
        "again": 0,
        "evictions": 0,
        "frames_aborted": 17,
        "held_us_avg": None,
        "delivery_ratio": 1 - 4 / (broadcasts + receptions),
        "reach": min(1.0, receptions / (11 * broadcasts)),
    }
    parts = (("delay", delay_us), ("delivered_delay", delay_us), ("latency", latency_us))
    for name, average_us in (*parts, ("age", delay_us + latency_us)):
        run[f"{name}_us_min"] = 2_000.0
        run[f"{name}_us_max"] = longest_us / (20 if name == "latency" else 1)
        run[f"{name}_us_avg"] = average_us
        run[f"{name}_us_stdev"] = 5 * latency_us if name == "latency" else spread_us
    return {
        **run,
        "past_entries_avg": 14.2,
        "frames": 3 * receptions,
        "bytes": 412 * receptions,
        "verdict": "valid",
        "violations": 0,
        "cpu_s": 3.5,
        "transfer_model": TRANSFER,
        "engine": "twin",
        "engine_why": "",
    }


def make_quantiles(rng: np.random.Generator, run: str, limit_us: int) -> list[dict[str, Any]]:
    rows = []
    for metric, mean_us in (("delay", limit_us / 3), ("latency", 4e6)):
        values = np.sort(np.minimum(rng.exponential(mean_us, 101), limit_us - 1)).astype(np.int64)
        rows += [
            {"run": run, "metric": metric, "share": i / 100, "value_us": int(value)}
            for i, value in enumerate(values)
        ]
    return rows


def make_scatter(rng: np.random.Generator, run: str, limit_us: int) -> list[dict[str, Any]]:
    delays = np.minimum(rng.exponential(limit_us / 3, 300), 0.9 * limit_us)
    latencies = np.where(rng.random(300) < 0.8, 2_000, rng.exponential(9e7, 300))
    pairs = zip(delays, np.minimum(latencies, limit_us - delays), strict=True)
    return [{"run": run, "delay_us": int(a), "latency_us": int(b)} for a, b in pairs]


def make_presence() -> list[dict[str, Any]]:
    """Twelve buses; number 3 is there longest, number 7 twice."""
    rows = []
    for node in range(12):
        up_us = 6 * HOUR_US + node * 13 * MINUTE_US
        down_us = up_us + (13 if node == 3 else 9) * HOUR_US
        rows.append({"node": node, "name": f"L01-{node}", "up_us": up_us, "down_us": down_us})
    return [*rows, {"node": 7, "name": "L01-7", "up_us": 19 * HOUR_US, "down_us": 20 * HOUR_US}]


def make_gauges(run: str, limit_us: int) -> list[dict[str, Any]]:
    """Nodes 3 and 5. The registry of the delivered shrinks where messages have a short life."""
    rows = []
    for node in (3, 5):
        for i in range(60):
            forgets = limit_us < 3 * HOUR_US and i % 10 > 7
            sizes = {
                "barrier": 1 + i % 7,
                "delivered": min(i, 40) - 6 * forgets,
                "pending": i % 3,
                "cache": 30 * i,
            }
            t_us = 7 * HOUR_US + i * 12 * MINUTE_US
            rows += [
                {"run": run, "t_us": t_us, "node": node, "gauge": gauge, "value": value}
                for gauge, value in sizes.items()
            ]
    return rows


def make_nodes(run: str) -> list[dict[str, Any]]:
    """The second node received nothing."""
    return [
        {
            "run": run,
            "node": node,
            "broadcasts": 10 + node,
            "deliveries": 900 - node,
            "receptions": 0 if node == 1 else 1000 * (node + 1),
            "delay_us_avg": None if node == 1 else 6e7 * (12 - node),
            "delivered_delay_us_avg": None if node == 1 else 8e7,
            "latency_us_avg": None if node == 1 else 1e7,
            "age_us_avg": None if node == 1 else 9e7,
        }
        for node in range(12)
    ]


def make_messages(run: str, count: int = 300) -> list[dict[str, Any]]:
    return [
        {
            "run": run,
            "origin": i % 12,
            "seq": i // 12,
            "sent_us": 6 * HOUR_US + i * MINUTE_US,
            "past_entries": i % 5,
            "receptions": i % 12,
            "deliveries": 1 + i % 12,
            "delay_us_max": i * SECOND_US,
            "age_us_max": i * SECOND_US,
        }
        for i in range(count)
    ]


def make_hops(run: str) -> list[dict[str, Any]]:
    """Half from the origin, a third after two hops, a sixth after three."""
    return [{"run": run, "hops": n, "receptions": many} for n, many in ((1, 30), (2, 20), (3, 10))]


def make_meetings() -> list[dict[str, Any]]:
    """Contacts of up to 100 s; most pauses are short, and one is of a day."""
    shares = [i / 100 for i in range(101)]
    spans = {"duration": [int(s * 100 * SECOND_US) for s in shares]}
    spans["between"] = [24 * HOUR_US if s == 1 else int(s * MINUTE_US) for s in shares]
    return [
        {"metric": metric, "share": share, "value_us": value}
        for metric, values in spans.items()
        for share, value in zip(shares, values, strict=True)
    ]


def make_trace() -> dict[str, Any]:
    return {
        "nodes": 12,
        "max_at_once": 11,
        "activity_min": 9.0 * HOUR_US,
        "activity_max": 13.0 * HOUR_US,
        "activity_avg": 9.4 * HOUR_US,
        "activity_stdev": 1.1 * HOUR_US,
        "contacts": 8731,
        "duration_min": 1.0e6,
        "duration_max": 251.0e6,
        "duration_avg": 82.0e6,
        "duration_stdev": 66.0e6,
    }
