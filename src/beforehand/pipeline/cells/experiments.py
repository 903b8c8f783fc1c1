"""The keys of a scenario of world `cells`: its experiments, its readings, and the spec of a run.

A *reading* is one way to fill in what the papers leave open. It is a table of the same keys, which
replace those of an experiment. A reading that extends another one has its keys too, and names the
experiments on which its own keys have an effect; the other results are those of the extended one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from beforehand.errors import InputError
from beforehand.scenario import values
from beforehand.scenario.document import Document
from beforehand.scenario.options import Option, read_table
from beforehand.units import format_duration

if TYPE_CHECKING:
    from beforehand.sim.cells.spec import CellsSpec, Failure

SECOND_US = 1_000_000


class Reading(NamedTuple):
    """One way to fill in what the papers leave open."""

    changes: Mapping[str, Any]
    """The options that replace those of the experiments."""
    evidence: str = ""
    """Its reasons: places in the papers or in a simulator, or that it was fitted."""
    extends: str = ""
    """The reading that it changes; empty: none."""
    experiments: tuple[str, ...] = ()
    """The experiments that differ from those of the extended reading; empty: all."""


def _sizes(value: object) -> tuple[tuple[int, int], ...]:
    hint = "write pairs of stations and hosts: `[[10, 100], [10, 200]]`"
    pairs = value if isinstance(value, list) else []
    if not pairs or not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise InputError(f"not a list of sizes: `{value}`", hint=hint)
    if not all(type(n) is int and n >= 1 for pair in pairs for n in pair):
        raise InputError(f"not numbers of stations and hosts: `{value}`", hint=hint)
    return tuple((stations, hosts) for stations, hosts in pairs)


def _rate(value: object) -> float:
    if values.number(value) <= 0:
        raise InputError(f"must be above zero: `{value}`", hint="broadcasts of all hosts, a second")
    return float(values.number(value))


def _retry_min(value: object) -> int:
    from beforehand.protocols.mobile.pace import Pace

    retry_us, most_us = values.retry(value), Pace().retry_us_max
    if retry_us > most_us:
        hint = "it is for stations that keep many messages; those with few use the maximum"
        raise InputError(f"more than {format_duration(most_us)}: `{value}`", hint=hint)
    return retry_us


def _system(value: object) -> str:
    """Parse the name of a system; tables and datasets have it with underscores."""
    from beforehand.protocols.mobile.systems import SYSTEMS
    from beforehand.protocols.registry import present_name

    known = (system.replace("_", "-") for system in SYSTEMS)
    name = values.one_of(*known)(present_name(str(values.text(value))))
    return str(name).replace("-", "_")


def experiment_options() -> dict[str, Option]:
    """Return the keys of an experiment; in `[cells]` they apply to all experiments."""
    from beforehand.sim.cells.spec import CellsSpec

    default = CellsSpec()
    return {
        "systems": Option(values.list_of(_system), ("was",)),
        "sizes": Option(_sizes, ((10, 200),)),
        "rates": Option(values.list_of(_rate), (35.0,)),
        "macs": Option(values.list_of(values.one_of("dcf", "csma", "none")), ("dcf",)),
        "modulation": Option(values.one_of("simple", "dsss", "ofdm"), "simple"),
        "capture": Option(values.switch, False),
        "answers_draw": Option(values.switch, default.radio.answers_draw),
        "radio_mbit_s": Option(_rate, 20.0),
        "wire_mbit_s": Option(_rate, 100.0),
        "range": Option(values.distance, default.range_m),
        "walks": Option(values.switch, True),
        "stays_covered": Option(values.switch, True),
        "choice": Option(values.one_of("stay", "nearest"), default.choice),
        "placement": Option(values.one_of("cells", "area"), default.placement),
        "payload": Option(values.size, default.payload_bytes),
        "ack_jitter": Option(values.share, default.ack_jitter),
        "timer_jitter": Option(values.share, default.timer_jitter),
        "duration": Option(values.positive_duration, default.duration_us),
        "warm_up": Option(values.positive_duration, default.warm_up_us),
        "settle": Option(values.duration, default.settle_us),
        "sample": Option(values.positive_duration, default.sample_us),
        # Search for the highest sustained rate between the first of `rates` and this rate.
        "search_to": Option(_rate),
        **_core_options(default),
        # Station failures: time of the first, interval, duration of the first, growth per failure.
        "failures": Option(values.whole(0), 0),
        "failures_from": Option(values.duration, 10 * SECOND_US),
        "failures_every": Option(values.positive_duration, 30 * SECOND_US),
        "failures_last": Option(values.positive_duration, 5 * SECOND_US),
        "failures_grow": Option(values.duration, 2 * SECOND_US),
        "failures_at": Option(values.whole(0)),
    }


def _core_options(default: CellsSpec) -> dict[str, Option]:
    """Return the keys of queues and of the cores of all systems."""
    return {
        "queue": Option(values.whole(1), default.radio.queue_max),
        "full_duplex": Option(values.switch, default.radio.full_duplex),
        "unicast_hold": Option(values.duration, default.radio.unicast_hold_us),
        "ck_needs": Option(values.one_of("host", "station"), default.ck.needs),
        "ck_ack": Option(values.duration, default.ck.ack_us),
        "ck_acks_always": Option(values.switch, default.ck.acks_always),
        "tcp_timeout_first": Option(values.positive_duration, default.tcp.timeout_us_first),
        "tcp_timeout_min": Option(values.positive_duration, default.tcp.timeout_us_min),
        "tcp_measures": Option(values.switch, default.tcp.measures),
        "tcp_ack": Option(values.duration, default.tcp.ack_us),
        "inflight": Option(values.whole(1), default.pace.inflight_max),
        "retry_min": Option(_retry_min, default.pace.retry_us_min),
        "retry_full_at": Option(values.whole(1)),
        "ack_ranges": Option(values.switch, default.pace.ack_ranges),
        "silence": Option(values.positive_duration),
        "repeats_max": Option(values.share),
    }


def read_experiments(document: Document) -> Mapping[str, Mapping[str, Any]]:
    """Return the options of each experiment by name; without any, one experiment from `[cells]`."""
    options = experiment_options()
    shared = read_table(document, "cells", options)
    experiments = {
        name: {
            key: document.value(table, ("experiments", name, key), option.parse, shared[key])
            for key, option in options.items()
        }
        for name, table in _named_tables(document, "experiments", options)
    }
    return experiments or {"cells": shared}


def read_readings(document: Document) -> Mapping[str, Reading]:
    """Return the readings by name; without any, one that changes nothing and has no name."""
    options = experiment_options()
    about = {
        "evidence": Option(values.text, ""),
        "extends": Option(values.one_of(*document.table("readings", None)), ""),
        "experiments": Option(_names_in(document.table("experiments", None)), ()),
    }
    readings: dict[str, Reading] = {}
    for name, table in _named_tables(document, "readings", [*options, *about]):
        found = {
            key: document.value(table, ("readings", name, key), option.parse, option.default)
            for key, option in about.items()
        }
        changes = {
            key: document.value(table, ("readings", name, key), option.parse, None)
            for key, option in options.items()
            if key in table
        }
        if found["extends"]:
            base = readings.get(found["extends"])
            if base is None or base.extends:
                hint = "extend a reading that stands before and extends none"
                error = InputError(f"`{name}` cannot extend `{found['extends']}`", hint=hint)
                document.add(error, ("readings", name, "extends"))
            else:
                changes = {**base.changes, **changes}
        readings[name] = Reading(changes, **found)
    return readings or {"": Reading({})}


def _names_in(known: Iterable[str]) -> values.Parse:
    return values.list_of(values.one_of(*known))


def _named_tables(
    document: Document, section: str, keys: Iterable[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the tables of a section by name, with the keys checked."""
    for name, table in document.table(section, None).items():
        if isinstance(table, dict):
            document.check_keys(table, (section, name), keys)
            yield name, table
        else:
            hint = f"write `[{section}.{name}]`"
            document.add(InputError(f"`{name}` is no table", hint=hint), (section, name))


def make_spec(
    options: Mapping[str, Any], system: str, stations: int, hosts: int, rate: float, mac: str
) -> CellsSpec:
    from beforehand.sim.cells.spec import CellsSpec, Walk, Wiring
    from beforehand.sim.radio import Radio

    return CellsSpec(
        system=system,
        stations=stations,
        hosts=hosts,
        placement=options["placement"],
        wiring=Wiring(bits_per_s=round(1e6 * options["wire_mbit_s"])),
        radio=Radio(
            modulation=options["modulation"],
            bits_per_s=round(1e6 * options["radio_mbit_s"]),
            mac=mac,  # type: ignore[arg-type]
            capture=options["capture"],
            answers_draw=options["answers_draw"],
            queue_max=options["queue"],
            full_duplex=options["full_duplex"],
            unicast_hold_us=options["unicast_hold"],
        ),
        range_m=options["range"],
        choice=options["choice"],
        walk=Walk(
            speed_m_s=Walk().speed_m_s if options["walks"] else 0.0,
            stays_covered=options["stays_covered"],
        ),
        payload_bytes=options["payload"],
        rate_per_s=rate,
        **_make_cores(options),
        ack_jitter=options["ack_jitter"],
        timer_jitter=options["timer_jitter"],
        warm_up_us=options["warm_up"],
        duration_us=options["duration"],
        settle_us=options["settle"],
        sample_us=options["sample"],
        failures=_failures(options),
    )


def _make_cores(options: Mapping[str, Any]) -> dict[str, Any]:
    from beforehand.protocols.mobile.ck.options import CkOptions
    from beforehand.protocols.mobile.pace import Pace
    from beforehand.protocols.mobile.tcp_flooding.connection import Tcp
    from beforehand.sim.cells.spec import CellsSpec

    return {
        "pace": Pace(
            rounds=CellsSpec().pace.rounds,
            inflight_max=options["inflight"],
            retry_us_min=options["retry_min"],
            retry_full_at=options["retry_full_at"],
            ack_ranges=options["ack_ranges"],
            silence_us=options["silence"],
            repeats_max=options["repeats_max"],
        ),
        "ck": CkOptions(
            needs=options["ck_needs"],
            ack_us=options["ck_ack"],
            acks_always=options["ck_acks_always"],
        ),
        "tcp": Tcp(
            timeout_us_first=options["tcp_timeout_first"],
            timeout_us_min=options["tcp_timeout_min"],
            measures=options["tcp_measures"],
            ack_us=options["tcp_ack"],
        ),
    }


def _failures(options: Mapping[str, Any]) -> tuple[Failure, ...]:
    from beforehand.sim.cells.spec import Failure

    return tuple(
        Failure(
            at_us=options["failures_from"] + k * options["failures_every"],
            for_us=options["failures_last"] + k * options["failures_grow"],
            station=options["failures_at"],
        )
        for k in range(options["failures"])
    )
