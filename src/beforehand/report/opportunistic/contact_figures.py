"""The figures of the trace that the field expects: distributions of contacts, and activity."""

from __future__ import annotations

import pandas as pd

from beforehand.report.contact_charts import hours_chart, survival_chart
from beforehand.report.content import Figure
from beforehand.report.datasets import read_frame
from beforehand.report.notation import show_count, show_time
from beforehand.report.opportunistic.material import Material

LINES = {"between": "inter-contact time", "duration": "contact duration"}
COUNTS = {"contacts": "contacts", "first_encounters": "first encounters"}


def contact_figures(material: Material) -> tuple[Figure, ...]:
    """Draw the log-log CCDF of contact and inter-contact times, and the contacts per hour."""
    return (*_survival(material), *_hours(material))


def _survival(material: Material) -> tuple[Figure, ...]:
    frame = read_frame(material.directory, "survival")
    # A logarithmic axis has no zero.
    frame = frame[(frame["value_us"] > 0) & frame["metric"].isin(LINES)]
    if frame.empty:
        return ()
    table = frame.assign(line=frame["metric"].map(LINES))[["line", "value_us", "share"]]
    longest = table.sort_values("share", kind="stable").iloc[0]
    caption = (
        "The share of contacts, and of pauses until the same two nodes meet again, that take "
        "longer than a time; both axes are logarithmic. A straight line is a power law. "
        f"{_percent(longest['share'])} of the {_plural(longest['line'])} take longer than "
        f"{show_time(longest['value_us'])}."
    )
    title = "Contact and inter-contact times, complementary distribution"
    return (Figure("contact-times", title, caption, survival_chart(table), table),)


def _hours(material: Material) -> tuple[Figure, ...]:
    frame = read_frame(material.directory, "hours")
    if len(frame) < 2:
        return ()
    first_us = frame["from_us"].min()
    parts = [
        pd.DataFrame(
            {"line": words, "from_us": frame["from_us"] - first_us, "count": frame[column]}
        )
        for column, words in COUNTS.items()
    ]
    table = pd.concat(parts)
    pairs, met = int(frame["first_encounters"].sum()), int(frame["contacts"].sum())
    caption = (
        f"Contacts that begin in each hour of the trace: {show_count(met)} in all, between "
        f"{show_count(pairs)} different pairs of nodes. A first encounter is the first contact "
        "of a pair."
    )
    return (Figure("contacts-per-hour", "Contacts per hour", caption, hours_chart(table), table),)


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"


def _plural(line: str) -> str:
    return f"{line}s"
