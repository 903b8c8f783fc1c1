"""What may be set of a run, each thing once: for scenario files, for flags and for the cores.

A setting knows its place in `Spec` by name alone, so that the flags are there without a simulator.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from beforehand.errors import InputError
from beforehand.scenario import values
from beforehand.scenario.document import Document, toml_value
from beforehand.scenario.values import Parse

if TYPE_CHECKING:
    from beforehand.sim.run import Spec


class Setting(NamedTuple):
    """A key of a table, and the flag of the same name where it has one."""

    field: str
    """Of `Spec`: `links.latency_us`."""
    parse: Parse
    flag: str = ""
    """What stands behind the flag in the usage; empty: there is no such flag."""
    help: str = ""
    is_number: bool = False
    """So that what stands behind the flag is read as a number is in a file."""


TRAFFIC: dict[str, Setting] = {
    "period": Setting(
        "traffic.period_us", values.positive_duration, "TIME", "between two broadcasts"
    ),
    "first": Setting("traffic.first_us", values.duration, "TIME", "until the first broadcast"),
    "payload": Setting("traffic.payload_bytes", values.size, "BYTES"),
}


NETWORK: dict[str, Setting] = {
    "latency": Setting("links.latency_us", values.duration, "TIME"),
    "bandwidth": Setting("links.bytes_per_s", values.rate, "BYTES/S", "or `endless`"),
    "announce": Setting("layer.announce_us", values.duration, "TIME", "0s: at once"),
    "loss": Setting("links.loss", values.share, "SHARE", "of all frames", is_number=True),
    "duplication": Setting("links.duplication", values.share),
    "jitter": Setting("links.jitter_us", values.duration),
    "retry": Setting("layer.retry_us", values.retry, "TIME", "repeat what was not answered"),
    "capacity": Setting(
        "layer.capacity", values.whole(1), "N", "messages a node can hold", is_number=True
    ),
    "eviction": Setting("layer.eviction", values.one_of("oldest", "random")),
    "transfer": Setting("layer.transfer", values.one_of("random", "oldest", "newest")),
    "frame": Setting("layer.frame_bytes_max", values.size),
    "frame_messages": Setting("layer.frame_messages_max", values.whole(1)),
    "push": Setting("layer.push", values.switch),
    "marks_after": Setting("layer.marks_after", values.whole(0)),
    "skew": Setting("clocks.skew_us", values.duration, "TIME", "between any two clocks"),
}
FLAGS = {name: s for name, s in (TRAFFIC | NETWORK).items() if s.flag}


def read_settings(
    document: Document, table: str, settings: Mapping[str, Setting]
) -> dict[str, Any]:
    """What a table of a scenario sets, by field."""
    written = document.table(table, settings)
    found = {}
    for key in [key for key in settings if key in written]:
        before = len(document.problems)
        value = document.parsed(written[key], (table, key), settings[key].parse)
        if len(document.problems) == before:
            found[settings[key].field] = value
    return found


def read_network(document: Document) -> dict[str, Any]:
    """The table `[network]`, whose settings have to go together."""
    found = read_settings(document, "network", NETWORK)
    is_lossy = found.get("links.loss") or found.get("links.duplication")
    if is_lossy and "layer.retry_us" not in found:
        hint = 'add `retry = "5s"`, so that what is not answered is repeated'
        error = InputError("links that lose or duplicate need a retry time", hint=hint)
        document.add(error, ("network",))
    if found.get("layer.push") and "layer.retry_us" in found:
        hint = "leave one of them out: a push is for links that lose nothing"
        document.add(InputError("`push` does not go with `retry`", hint=hint), ("network", "push"))
    return found


def parse_flag(name: str, written: str) -> Any:
    """The value of one of `FLAGS`."""
    setting = FLAGS[name]
    value = toml_value(written) if setting.is_number else written
    try:
        return setting.parse(value)
    except InputError as error:
        raise InputError(error.problem, where=f"--{name}", hint=error.hint) from error


def with_settings(spec: Spec, found: Mapping[str, Any]) -> Spec:
    """The same with other values; found: by field."""
    changes: dict[str, dict[str, Any]] = defaultdict(dict)
    for path, value in found.items():
        part, _, field = path.partition(".")
        changes[part][field] = value
    parts = {
        part: msgspec.structs.replace(getattr(spec, part), **fields)
        for part, fields in changes.items()
    }
    return msgspec.structs.replace(spec, **parts)
