"""The two engines of the contact world: the cores, and their compiled twin.

Both write the same event log. The cores run what runs on sockets; the twin is some thirty times as
fast and covers most worlds.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from beforehand.errors import InputError, choose
from beforehand.mobility.trace import Trace
from beforehand.sim.contacts.run import Result, Spec, Totals, run_one
from beforehand.sim.contacts.summary import count_violations, summarise
from beforehand.sim.contacts.traffic import plan_traffic
from beforehand.sim.contacts.world import OnDone

if TYPE_CHECKING:
    from beforehand.sim.contacts.running import LogPage
    from beforehand.sim.contacts.twin import Twin
    from beforehand.sim.log_writer import EventWriter

    OpenWriter = Callable[[], AbstractContextManager[EventWriter | None]]

ENGINES = ("auto", "cores", "twin")


WORTH_COMPILING = 3_000_000
"""For fewer possible receptions the cores, at 10 µs each, are faster than a compilation."""


Found = TypeVar("Found")
Note = Callable[[str], object]


@dataclass(frozen=True)
class _Played(Generic[Found]):
    """The result of a run, and what has played it."""

    result: Found
    engine: str
    """`cores` or `twin`."""
    why: str = ""
    """Why the twin did not play the run, if it was asked for by `auto`."""


Played = _Played[Result]


@dataclass(frozen=True)
class MeasuredRun:
    """The figures of a run, without its log."""

    totals: Totals
    rows: int
    summary: dict[str, Any]
    """As `summary.summarise` returns it."""
    violations: dict[str, int]
    """As `summary.count_violations` returns them."""
    engine: str
    why: str


def check_engine(engine: str, where: str = "--engine") -> None:
    """Refuse an unknown engine."""
    if engine not in ENGINES:
        raise InputError(f"unknown engine `{engine}`", where=where, hint=choose(engine, ENGINES))


def is_worthwhile(trace: Trace, spec: Spec) -> bool:
    """Return whether the twin is compiled, or the run is large enough to compile it."""
    from beforehand.kernels.compiling import is_compiled
    from beforehand.kernels.epidemic.run import play

    broadcasts = len(plan_traffic(trace, spec.traffic, spec.seed).t_us)
    return is_compiled(play) or broadcasts * trace.nodes_count >= WORTH_COMPILING


def prepare(trace: Trace, spec: Spec, engine: str, note: Callable[[str], object]) -> None:
    """Compile the twin, if it will play this run, before several processes play runs."""
    if engine == "cores":
        return
    from beforehand.sim.contacts.twin import compile_world, refusal

    if refusal(trace, spec) is None and (engine == "twin" or is_worthwhile(trace, spec)):
        compile_world(note)


def play_run(
    trace: Trace,
    spec: Spec,
    engine: str = "auto",
    *,
    on_done: OnDone | None = None,
    note: Note = lambda _: None,
) -> Played:
    """Run the simulation with an engine: `auto` takes the twin if it covers the run.

    note: takes a sentence about the compilation of the twin, which happens once."""
    return _played(trace, spec, engine, lambda twin: twin.run(), on_done, note)


def play_measured(
    trace: Trace,
    spec: Spec,
    engine: str = "auto",
    *,
    open_writer: OpenWriter = lambda: nullcontext(None),
    on_done: OnDone | None = None,
    note: Note = lambda _: None,
) -> MeasuredRun:
    """Run the simulation as `play_run` does, and return its figures and verdict.

    The twin keeps no log: it is judged, measured and written page by page, unless caches are
    bounded. open_writer: makes what writes the event log."""

    def stream(twin: Twin) -> Result | MeasuredRun:
        if spec.layer.is_bounded:
            return twin.run()
        from beforehand.sim.contacts.running import RunningFigures

        figures = RunningFigures(trace.nodes_count, twin.traffic, twin.live)
        with open_writer() as writer:

            def take(page: LogPage) -> None:
                figures.add(page)
                if writer is not None:
                    writer.add(page.columns, page.senders)

            totals = twin.stream(take)
        violations, summary = figures.violations(), figures.summary(spec.life_us)
        return MeasuredRun(totals, figures.rows, summary, violations, "twin", "")

    played = _played(trace, spec, engine, stream, on_done, note)
    found = played.result
    if isinstance(found, MeasuredRun):
        return found
    with open_writer() as writer:
        if writer is not None:
            writer.add(found.columns, found.senders)
    violations = count_violations(found.columns)
    summary = summarise(found.columns, life_us=spec.life_us)
    rows = len(found.columns["kind"])
    return MeasuredRun(found, rows, summary, violations, played.engine, played.why)


def _played(
    trace: Trace,
    spec: Spec,
    engine: str,
    by_twin: Callable[[Twin], Found],
    on_done: OnDone | None,
    note: Note,
) -> _Played[Found | Result]:
    """Run the simulation by the twin, or else by the cores."""
    check_engine(engine)
    spec.check()
    if engine == "cores":
        return _Played(run_one(trace, spec, on_done=on_done), "cores")
    # Imported here: the cores need no compiler, whose import takes half a second.
    from beforehand.sim.contacts.twin import Twin, Uncovered, refusal

    why = refusal(trace, spec)
    if why is None and engine == "auto" and not is_worthwhile(trace, spec):
        why = "the twin is not compiled yet, and the run is too small for that"
    if why is None:
        try:
            return _Played(by_twin(Twin(trace, spec, on_done=on_done, note=note)), "twin")
        except Uncovered as found:
            why = str(found)
    if engine == "twin":
        hint = "choose `--engine auto` or `--engine cores`"
        raise InputError(f"the compiled twin cannot play this run: {why}", hint=hint)
    return _Played(run_one(trace, spec, on_done=on_done), "cores", why)
