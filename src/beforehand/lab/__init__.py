"""Simulate protocols on traces, run scenarios, and write their reports."""

from __future__ import annotations

from beforehand.lazy import importer

TYPE_CHECKING = False
"""Replaces `typing.TYPE_CHECKING`, which takes long to import."""
if TYPE_CHECKING:
    from beforehand.lab.frames import events_frame, find_violations, propagation
    from beforehand.lab.report import write_report
    from beforehand.lab.sources import register_sources
    from beforehand.lab.trace import read_trace
    from beforehand.mobility.trace import Trace, make_trace
    from beforehand.pipeline.frames import simulate_runs, verify_runs
    from beforehand.pipeline.jobs import run_scenario
    from beforehand.sim.contacts.run import Result, Spec
    from beforehand.sim.contacts.run import run_one as simulate
    from beforehand.sim.contacts.summary import summarise

__all__ = [
    "Result",
    "Spec",
    "Trace",
    "events_frame",
    "find_violations",
    "make_trace",
    "propagation",
    "read_trace",
    "register_sources",
    "run_scenario",
    "simulate",
    "simulate_runs",
    "summarise",
    "verify_runs",
    "write_report",
]

_MODULES = {
    "Result": "sim.contacts.run",
    "Spec": "sim.contacts.run",
    "Trace": "mobility.trace",
    "events_frame": "lab.frames",
    "find_violations": "lab.frames",
    "propagation": "lab.frames",
    "make_trace": "mobility.trace",
    "read_trace": "lab.trace",
    "register_sources": "lab.sources",
    "run_scenario": "pipeline.jobs",
    "simulate": "sim.contacts.run:run_one",
    "simulate_runs": "pipeline.frames",
    "summarise": "sim.contacts.summary",
    "verify_runs": "pipeline.frames",
    "write_report": "lab.report",
}

__getattr__ = importer("beforehand.lab", globals(), _MODULES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
