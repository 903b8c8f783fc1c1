"""What an event log says of its runs besides its rows: in the metadata of the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

METADATA = b"beforehand"
"""`{"runs": {RUN: {"promise": "none", "events": 1200, "names": ["a", "b"], "members": ["ann"]}}}`,
each part or not."""

PROMISES: dict[str, tuple[str, ...]] = {
    "causal": ("late", "twice", "unknown"),
    "none": ("twice", "unknown"),
}
"""What is held against a run, by what its protocol promises."""
PROMISE_NAMES = {"causal": "causal order", "none": "no order"}
DEFAULT_PROMISE, LEAST_PROMISE = "causal", "none"


class About(msgspec.Struct, frozen=True):
    """Of one run."""

    promise: str | None = None
    """None: the log does not say."""
    events: int | None = None
    """How many there were."""
    names: tuple[str, ...] = ()
    """Of the nodes, by their numbers."""
    doubts: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    """The roster of a node's log: the members that the node knew, itself included."""


class _Written(msgspec.Struct, frozen=True):
    runs: dict[str, About]


def read_about(metadata: Mapping[bytes, bytes] | None) -> dict[str, About]:
    """By name of the run. What cannot be read is a doubt about all, under the empty name."""
    if not metadata or METADATA not in metadata:
        return {}
    try:
        return msgspec.json.decode(metadata[METADATA], type=_Written).runs
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        return {"": About(doubts=(f"what the file says of itself cannot be read: {error}",))}


def about_run(run: str, said: Sequence[Mapping[str, About]]) -> About:
    """What all files of a log say of one run. Where they contradict each other, none is believed
    more than another, and it is held to the least of what they promise. The rosters are united.
    said: by each file."""
    here = [part.get(run, part.get("", About())) for part in said]
    doubts = {doubt for about in here for doubt in about.doubts}
    promises = sorted({about.promise for about in here if about.promise})
    counts = sorted({about.events for about in here if about.events is not None})
    if len(promises) > 1:
        listed = ", ".join(f"`{promise}`" for promise in promises)
        doubts.add(f"its files do not promise the same: {listed}")
    if len(counts) > 1:
        listed = ", ".join(f"{count:,}" for count in counts)
        doubts.add(f"its files do not have the same number of events: {listed}")
    return About(
        promise=LEAST_PROMISE if len(promises) > 1 else next(iter(promises), None),
        events=max(counts, default=None),
        names=next((about.names for about in here if about.names), ()),
        doubts=tuple(sorted(doubts)),
        members=tuple(sorted({name for about in here for name in about.members})),
    )
