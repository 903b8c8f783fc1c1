"""Check the published claims of MOB and MOB-TR against our runs: held, not held or unknown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean, median
from typing import NamedTuple

import pandas as pd

from beforehand.papers.claims import Claim, Judgement, judge
from beforehand.report.content import CLAIM_MARKS, Cell, Table
from beforehand.report.mobile.data import CALM_S, CellResults

WAS, FLOOD, CK, TCP = "was", "was_flood", "ck", "tcp_flooding"
FEW = 150
"""Buffered messages from which on a cell slows down its neighbours (MOB section 5.3)."""
BEFORE_S = 5
"""The length of the reference period before a failure."""

Answer = float | None
"""The measured value of a claim; None if our runs do not determine it."""
Measure = Callable[[CellResults], Answer]


class Judged(NamedTuple):
    """A claim, and its value over the runs without missing or wrong deliveries."""

    claim: Claim
    ours: Answer
    whole: int
    runs: int
    """All runs of the experiment; `whole` of them have no missing or wrong deliveries."""

    @property
    def judgement(self) -> Judgement:
        return judge(self.claim, (self.ours,))

    @property
    def is_covered(self) -> bool:
        """Return whether the scenario has the runs that the claim needs. Without a value although
        no run lost anything, it lacks a system, a rate or a size."""
        return self.ours is not None or self.whole < self.runs


def judge_all(
    cells: CellResults, claims: Sequence[Claim], answers: Mapping[str, Measure] | None = None
) -> list[Judged]:
    """Judge every claim whose experiment was run. answers: replace the measures of all claims."""
    there, whole = set(cells.runs["experiment"]), cells.whole()
    return [
        Judged(
            claim,
            (answers or ANSWERS)[claim.key](whole),
            sum(len(whole.of(run)) for run in claim.runs),
            sum(len(cells.of(run)) for run in claim.runs),
        )
        for claim in claims
        if there.issuperset(claim.runs)
    ]


def claims_table(judged: Sequence[Judged]) -> Table:
    rows, data = [], []
    for found in judged:
        claim, ours, whole, runs = found
        shown = "–" if ours is None else show_value(ours, claim.unit)
        rows.append(
            (
                Cell(claim.text),
                Cell(f"{claim.paper} {claim.figure}"),
                Cell(shown, mark=CLAIM_MARKS.get(found.judgement, "")),
                Cell(str(runs) if whole == runs else f"{whole} of {runs}"),
                Cell(f"{claim.bounds} {claim.unit}".strip()),
                Cell(found.judgement),
            )
        )
        bounds = (claim.low, claim.high)
        source = (claim.key, claim.paper, claim.figure)
        data.append((*source, ours, whole, runs, *bounds, found.judgement))
    head = ("What", "Figure", "Ours", "Runs", "Held if", "Verdict")
    columns = ["key", "paper", "figure", "ours", "whole", "runs", "least", "most", "verdict"]
    frame = pd.DataFrame(data, columns=columns)
    return Table("claims", "Claims", head, tuple(rows), frame, words=(0, 1, 5), is_wide=True)


def show_value(value: float, unit: str) -> str:
    """Return a measured value with its unit."""
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{text} {unit}".strip()


# ---- MOB figure 6: throughput -------------------------------------------------------------------


def _rates(cells: CellResults, system: str) -> dict[int, float]:
    """Return the sustained rate by number of hosts, where every seed found one."""
    runs = cells.of("throughput", system)
    found = {}
    for hosts, part in runs.groupby("hosts"):
        if part["is_sustained"].eq(True).all():
            found[int(str(hosts))] = float(part["rate_per_s"].mean())
    return found


def _throughput(hosts_min: int, hosts_max: int) -> Callable[[CellResults], Answer]:
    def answer(cells: CellResults) -> Answer:
        was, ck = _rates(cells, WAS), _rates(cells, CK)
        both = [was[n] / ck[n] for n in was if n in ck and hosts_min <= n <= hosts_max]
        return fmean(both) if both else None

    return answer


def _throughput_falls(cells: CellResults) -> Answer:
    was, ck = _rates(cells, WAS), _rates(cells, CK)
    both = sorted(set(was) & set(ck))
    if len(both) < 2:
        return None
    first, last = both[0], both[-1]
    return (ck[first] / ck[last]) / (was[first] / was[last])


# ---- MOB figures 7 and 8: traffic ---------------------------------------------------------------


def _ratio(top: Answer, bottom: Answer) -> Answer:
    return top / bottom if top is not None and bottom else None


def _mean_ratio(
    experiment: str, one: str, other: str, column: str
) -> Callable[[CellResults], Answer]:
    def answer(cells: CellResults) -> Answer:
        return _ratio(cells.mean(experiment, one, column), cells.mean(experiment, other, column))

    return answer


def _sent(cells: CellResults, system: str, network: str, column: str, kind: str = "") -> Answer:
    flows = cells.sent("scale", system, network)
    flows = flows[flows["kind"] == kind] if kind else flows
    return float(flows[column].sum()) if len(flows) else None


def _sent_ratio(network: str, column: str, kind: str = "") -> Callable[[CellResults], Answer]:
    def answer(cells: CellResults) -> Answer:
        ours = (_sent(cells, system, network, column, kind) for system in (CK, WAS))
        return _ratio(*ours)

    return answer


def _growth(cells: CellResults) -> Answer:
    """Return how much faster CK's radio frames grow than WAS's, from the smallest to the largest
    network."""
    grown = []
    for system in (CK, WAS):
        by_size = cells.sent("scale", system, "radio").groupby("hosts")["frames"].sum()
        if len(by_size) < 2:
            return None
        grown.append(float(by_size.iloc[-1] / by_size.iloc[0]))
    return grown[0] / grown[1]


# ---- MOB figure 9: buffers -----------------------------------------------------------------------


def _calm(cells: CellResults) -> pd.DataFrame:
    series = cells.moments("cache", WAS)
    return series[series["t_s"] >= CALM_S]


def _cache_less(cells: CellResults) -> Answer:
    """Return the saving in per cent against a central discard.

    With a central discard, every station would keep about as much as the fullest one.
    """
    series = _calm(cells)
    most = series["kept_max"].mean() if len(series) else 0
    return float(100 * (1 - series["kept_rest_avg"].mean() / most)) if most else None


def _cache_most(cells: CellResults) -> Answer:
    series = _calm(cells)
    series = series[series["kept_rest_avg"] > 0]
    return float((series["kept_max"] / series["kept_rest_avg"]).max()) if len(series) else None


def _cache_deviation(cells: CellResults) -> Answer:
    series = _calm(cells)
    return float(series["kept_rest_deviation"].median()) if len(series) else None


# ---- MOB figure 10, MOB-TR figure 8: failures ----------------------------------------------------


class Failure:
    """One failure, and the buffer sizes of the stations before, during and after it."""

    def __init__(self, outage: pd.Series, moments: pd.DataFrame) -> None:
        self.lasted_s = outage["to_s"] - outage["from_s"]
        station, others = int(outage["station"]), moments["kept"]
        times = moments["t_s"]
        here = others.map(lambda kept: kept[station])
        rest = others.map(lambda kept: (sum(kept) - kept[station]) / max(1, len(kept) - 1))
        during = (times >= outage["from_s"]) & (times <= outage["to_s"])
        before = (times >= outage["from_s"] - BEFORE_S) & (times < outage["from_s"])
        after = times > outage["to_s"]
        self.peak = float(here[during].max()) if during.any() else 0.0
        self.rest = float(rest[during].iloc[-1]) if during.any() else 0.0
        self.rest_avg = float(rest[during].mean()) if during.any() else 0.0
        self.rest_before = float(rest[before].mean()) if before.any() else 0.0
        # Before a short failure, a station may already keep more than a quarter of the peak.
        calm = float(here[before].mean()) if before.any() else 0.0
        low = times[after & (here <= calm + (self.peak - calm) / 4)]
        self.recovery_s = float(low.iloc[0] - outage["to_s"]) if len(low) else None


def failures(
    cells: CellResults, experiment: str, system: str, *, but_last: bool = False
) -> Iterator[Failure]:
    """Yield the failures of all runs. but_last: leave out the last failure of each run."""
    series, outages = cells.moments(experiment, system), cells.outages
    outages = outages[(outages["experiment"] == experiment) & (outages["system"] == system)]
    for run, part in outages.groupby("run", sort=False):
        moments = series[series["run"] == run].sort_values("t_s")
        outages_here = part.sort_values("from_s")
        for _, outage in outages_here[: len(part) - but_last].iterrows():
            if len(moments) and outage["station"] >= 0:
                yield Failure(outage, moments)


def _failure_ratio(cells: CellResults) -> Answer:
    ratios = [f.peak / f.rest for f in failures(cells, "failures", WAS) if f.rest]
    return median(ratios) if ratios else None


def _recovery(experiment: str, system: str, *, but_last: bool) -> Callable[[CellResults], Answer]:
    def answer(cells: CellResults) -> Answer:
        """Return the mean recovery time; None also if a station never recovered."""
        found = failures(cells, experiment, system, but_last=but_last)
        times = [failure.recovery_s for failure in found]
        known = [time for time in times if time is not None]
        return fmean(known) if known and len(known) == len(times) else None

    return answer


def _failure_others(cells: CellResults) -> Answer:
    few = [f for f in failures(cells, "failures", WAS) if f.peak < FEW and f.rest_before]
    return fmean(f.rest_avg / f.rest_before for f in few) if few else None


def _faults_grow(cells: CellResults) -> Answer:
    found = list(failures(cells, "faults", FLOOD))
    if len(found) < 3:
        return None
    table = pd.DataFrame({"lasted": [f.lasted_s for f in found], "peak": [f.peak for f in found]})
    means = table.groupby("lasted")["peak"].mean().reset_index()
    return float(means["lasted"].rank().corr(means["peak"].rank()))


# ---- MOB-TR figures 6 and 7 ----------------------------------------------------------------------


def _mean(
    experiment: str, system: str, column: str, unit: float = 1
) -> Callable[[CellResults], Answer]:
    def answer(cells: CellResults) -> Answer:
        found = cells.mean(experiment, system, column)
        return None if found is None else found / unit

    return answer


def _per_second(column: str) -> Callable[[CellResults], Answer]:
    """Return a function that computes a radio column per second, without the warm-up."""

    def answer(cells: CellResults) -> Answer:
        series = cells.moments("loaded", FLOOD)
        series = series[series["t_s"] >= CALM_S]
        if len(series) < 2:
            return None
        step_s = float(series["t_s"].drop_duplicates().sort_values().diff().median())
        return float(series[column].mean()) / step_s

    return answer


def _static_bytes(cells: CellResults) -> Answer:
    sizes = []
    for system in (TCP, FLOOD):
        flows = cells.sent("static", system, "radio")
        if flows.empty:
            return None
        columns = ["control_bytes", "payload_bytes", "header_bytes"]
        sizes.append(float(flows[columns].sum().sum()))
    return _ratio(*sizes)


def _dynamic_slower(cells: CellResults) -> Answer:
    walking = cells.mean("dynamic", FLOOD, "delay_us_avg")
    standing = cells.mean("standing", FLOOD, "delay_us_avg")
    return None if walking is None or standing is None else (walking - standing) / SECOND_US


SECOND_US = 1_000_000
ANSWERS: dict[str, Measure] = {
    "throughput": _throughput(0, 300),
    "throughput_400": _throughput(400, 400),
    "throughput_falls": _throughput_falls,
    "delay": _mean_ratio("throughput", CK, WAS, "delay_us_avg"),
    "acks": _sent_ratio("radio", "at_station", "ack"),
    "repetitions": _sent_ratio("radio", "frames", "repetition"),
    "radio_messages": _sent_ratio("radio", "frames"),
    "wire_messages": _sent_ratio("wire", "frames"),
    "radio_messages_growth": _growth,
    "radio_bytes": _sent_ratio("radio", "bytes"),
    "wire_bytes": _sent_ratio("wire", "bytes"),
    "cache_less": _cache_less,
    "cache_most": _cache_most,
    "cache_deviation": _cache_deviation,
    "failure_ratio": _failure_ratio,
    "failure_recovery": _recovery("failures", WAS, but_last=True),
    "failure_others": _failure_others,
    "static_delay": _mean("static", FLOOD, "delay_us_avg", SECOND_US),
    "static_delay_tcp": _mean("static", TCP, "delay_us_avg", SECOND_US),
    "static_sent": _mean("static", FLOOD, "sent_per_delivery"),
    "static_sent_tcp": _mean("static", TCP, "sent_per_delivery"),
    "static_early": _mean("static", FLOOD, "early_avg"),
    "static_early_tcp": _mean("static", TCP, "early_avg"),
    "static_kept": _mean_ratio("static", TCP, FLOOD, "kept_avg"),
    "static_lost": _mean("static", FLOOD, "lost_percent"),
    "static_lost_tcp": _mean("static", TCP, "lost_percent"),
    "static_bytes": _static_bytes,
    "loaded_kept": _mean("loaded", FLOOD, "kept_avg"),
    "loaded_delay": _mean("loaded", FLOOD, "delay_us_avg", SECOND_US),
    "loaded_early": _mean("loaded", FLOOD, "early_avg"),
    "loaded_messages": _per_second("radio_frames"),
    "loaded_bytes": _per_second("radio_bytes"),
    "dynamic_lost": _mean("dynamic", FLOOD, "lost_percent"),
    "dynamic_delay": _mean("dynamic", FLOOD, "delay_us_avg", SECOND_US),
    "dynamic_slower": _dynamic_slower,
    "faults_grow": _faults_grow,
    "faults_recovery": _recovery("faults", FLOOD, but_last=False),
}
"""The function that measures each claim, by the claim's key."""
IN_RANGE: dict[str, Measure] = {
    "static_lost": _mean("static", FLOOD, "heard_lost_percent"),
    "static_lost_tcp": _mean("static", TCP, "heard_lost_percent"),
    "dynamic_lost": _mean("dynamic", FLOOD, "heard_lost_percent"),
}
"""The same for claims about losses, with the losses at all nodes in range of a frame."""
