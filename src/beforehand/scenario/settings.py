"""The settings of a run, defined once for scenario files, flags and the protocol cores.

A setting names its field of `Spec` as text, so that the flags do not import the simulator.
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
    from beforehand.sim.contacts.run import Spec


class Setting(NamedTuple):
    """A key of a table, and the flag of the same name if it has one."""

    field: str
    """The path of the field in `Spec`, such as `links.latency_us`."""
    parse: Parse
    flag: str = ""
    """The placeholder of the flag's value in the usage; empty if there is no flag."""
    help: str = ""
    is_number: bool = False
    """Whether the text after the flag is parsed as a number, as in a file."""
    parse_flag: Parse | None = None
    """Parses the text after the flag, where that differs from a file."""


def _sources(value: object) -> tuple[str, ...] | float:
    """Parse names of nodes, or the share of the nodes that broadcast."""
    if isinstance(value, list):
        names: Any = values.list_of(values.text)(value)
        return tuple(names)
    share: Any = 1.0 if value in (1, "100%") else values.share(value)
    if not share:
        raise InputError("no node would broadcast", hint="write names or a share: `0.2`, `20%`")
    return float(share)


def _sources_flag(value: object) -> tuple[str, ...] | float:
    """Parse a share with its per cent sign, or names of nodes with commas between them."""
    written = str(value)
    return _sources(written if "%" in written else written.split(","))


def _phase_flag(value: object) -> bool:
    """Parse the choice between phases of their own and one for all nodes."""
    return values.one_of("own", "same")(value) == "own"


TRAFFIC: dict[str, Setting] = {
    "period": Setting(
        "traffic.period_us", values.positive_duration, "TIME", "time between two broadcasts"
    ),
    "first": Setting("traffic.first_us", values.duration, "TIME", "time until the first broadcast"),
    "payload": Setting("traffic.payload_bytes", values.size, "BYTES"),
    "law": Setting(
        *("traffic.law", values.one_of("periodic", "poisson", "uniform", "file"), "LAW"),
        "times between broadcasts: periodic, poisson, uniform",
    ),
    "phase": Setting(
        *("traffic.phase", values.switch, "PHASE"),
        "of periodic broadcasts: own (drawn for each node), same",
        parse_flag=_phase_flag,
    ),
    "payload_law": Setting(
        *("traffic.payload_law", values.one_of("fixed", "uniform", "exponential"), "LAW"),
        "sizes of payloads: fixed, uniform, exponential",
    ),
    "sources": Setting(
        *("traffic.sources", _sources, "NODES"),
        "the nodes that broadcast: a share (20%%) or names (a,b)",
        parse_flag=_sources_flag,
    ),
}


NETWORK: dict[str, Setting] = {
    "latency": Setting("links.latency_us", values.duration, "TIME"),
    "bandwidth": Setting("links.bytes_per_s", values.rate, "BYTES/S", "or `endless`"),
    "announce": Setting("layer.announce_us", values.duration, "TIME", "0s: at once"),
    "loss": Setting("links.loss", values.share, "SHARE", "share of lost frames", is_number=True),
    "duplication": Setting("links.duplication", values.share),
    "jitter": Setting("links.jitter_us", values.duration),
    "retry": Setting("layer.retry_us", values.retry, "TIME", "repeat frames without an answer"),
    "capacity": Setting(
        "layer.capacity", values.whole(1), "N", "messages that a node can hold", is_number=True
    ),
    "eviction": Setting("layer.eviction", values.one_of("oldest", "random", "shares")),
    "transfer": Setting("layer.transfer", values.one_of("random", "oldest", "newest")),
    "frame": Setting("layer.frame_bytes_max", values.size),
    "frame_messages": Setting("layer.frame_messages_max", values.whole(1)),
    "push": Setting("layer.push", values.switch),
    "digest_after": Setting("layer.digest_after", values.whole(0)),
    "patience": Setting("layer.patience_us", values.positive_duration),
    "skew": Setting("clocks.skew_us", values.duration, "TIME", "largest difference of two clocks"),
}
FLAGS = {name: s for name, s in (TRAFFIC | NETWORK).items() if s.flag}


def read_settings(
    document: Document, table: str, settings: Mapping[str, Setting]
) -> dict[str, Any]:
    """Return the values that a table of a scenario sets, by field."""
    written = document.table(table, settings)
    found = {}
    for key in [key for key in settings if key in written]:
        before = len(document.problems)
        value = document.parsed(written[key], (table, key), settings[key].parse)
        if len(document.problems) == before:
            found[settings[key].field] = value
    return found


def read_network(document: Document) -> dict[str, Any]:
    """Return the settings of `[network]`, and report combinations that exclude each other."""
    found = read_settings(document, "network", NETWORK)
    is_lossy = found.get("links.loss") or found.get("links.duplication")
    if is_lossy and "layer.retry_us" not in found:
        hint = 'add `retry = "5s"`, so that unanswered frames are repeated'
        error = InputError("links that lose or duplicate need a retry time", hint=hint)
        document.add(error, ("network",))
    if found.get("layer.push") and "layer.retry_us" in found:
        hint = "leave one of them out: a push is for links that lose nothing"
        document.add(InputError("`push` does not go with `retry`", hint=hint), ("network", "push"))
    return found


def flag_of(name: str) -> str:
    """Return the flag of a setting, without its dashes."""
    return name.replace("_", "-")


def parse_flag(name: str, written: str) -> Any:
    """Return the value of a flag in `FLAGS`."""
    setting = FLAGS[name]
    value = toml_value(written) if setting.is_number else written
    try:
        return (setting.parse_flag or setting.parse)(value)
    except InputError as error:
        raise InputError(error.problem, where=f"--{flag_of(name)}", hint=error.hint) from error


def with_settings(spec: Spec, found: Mapping[str, Any]) -> Spec:
    """Return the spec with other values. found: values by field."""
    changes: dict[str, dict[str, Any]] = defaultdict(dict)
    for path, value in found.items():
        part, _, field = path.partition(".")
        changes[part][field] = value
    parts = {
        part: msgspec.structs.replace(getattr(spec, part), **fields)
        for part, fields in changes.items()
    }
    return msgspec.structs.replace(spec, **parts)
