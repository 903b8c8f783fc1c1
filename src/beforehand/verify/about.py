"""Read what an event log says about its runs in the metadata of the Parquet file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from beforehand.events import METADATA, About, Runs
from beforehand.promises import LEAST_PROMISE

SETTINGS = ("protocol", "lifetime_us", "range_m", "stations", "skew_us")


def read_about(metadata: Mapping[bytes, bytes] | None) -> dict[str, About]:
    """Return the metadata by run.

    Unreadable metadata is a doubt about all runs, under the empty name.
    """
    written = (metadata or {}).get(METADATA.encode())
    if written is None:
        return {}
    try:
        return msgspec.json.decode(written, type=Runs).runs
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        return {"": About(doubts=(f"the metadata of the file cannot be read: {error}",))}


def about_run(run: str, metadata: Sequence[Mapping[str, About]]) -> About:
    """Merge the metadata of one run from all files of a log.

    If the files contradict each other, the run is held to the weakest order that one of them
    promises. The rosters are united.

    metadata: the metadata of each file.
    """
    here = [part.get(run, part.get("", About())) for part in metadata]
    doubts = {doubt for about in here for doubt in about.doubts}
    promises = sorted({about.promise for about in here if about.promise})
    counts = sorted({about.events for about in here if about.events is not None})
    if len(promises) > 1:
        listed = ", ".join(f"`{promise}`" for promise in promises)
        doubts.add(f"its files have different promises: {listed}")
    if len(counts) > 1:
        listed = ", ".join(f"{count:,}" for count in counts)
        doubts.add(f"its files do not have the same number of events: {listed}")
    return About(
        promise=LEAST_PROMISE if len(promises) > 1 else next(iter(promises), None),
        events=max(counts, default=None),
        names=next((about.names for about in here if about.names), ()),
        **{name: _agreed(here, name) for name in SETTINGS},
        doubts=tuple(sorted(doubts)),
        members=tuple(sorted({name for about in here for name in about.members})),
    )


def _agreed(here: Sequence[About], name: str) -> Any:
    """Return the setting that all files agree on; None if they differ, or none of them has it."""
    found = {getattr(about, name) for about in here} - {None}
    return found.pop() if len(found) == 1 else None
