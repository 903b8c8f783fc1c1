"""The two engines of the contact world: the cores, and their compiled twin.

Both write the same event log. The cores run what runs on sockets; the twin is some thirty times as
fast and covers most worlds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from beforehand.errors import InputError, choose
from beforehand.mobility.trace import Trace
from beforehand.sim.contacts.run import Result, Spec, run_one
from beforehand.sim.contacts.traffic import plan_traffic
from beforehand.sim.contacts.world import OnDone

ENGINES = ("auto", "cores", "twin")


WORTH_COMPILING = 3_000_000
"""For fewer possible receptions the cores, at 10 µs each, are faster than a compilation."""


@dataclass(frozen=True)
class Played:
    """The result of a run, and what has played it."""

    result: Result
    engine: str
    """`cores` or `twin`."""
    why: str = ""
    """Why the twin did not play the run, if it was asked for by `auto`."""


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
    note: Callable[[str], object] = lambda _: None,
) -> Played:
    """Run the simulation with an engine: `auto` takes the twin if it covers the run.

    note: takes a sentence about the compilation of the twin, which happens once."""
    check_engine(engine)
    spec.check()
    if engine == "cores":
        return Played(run_one(trace, spec, on_done=on_done), "cores")
    # Imported here: the cores need no compiler, whose import takes half a second.
    from beforehand.sim.contacts.twin import Twin, Uncovered, refusal

    why = refusal(trace, spec)
    if why is None and engine == "auto" and not is_worthwhile(trace, spec):
        why = "the twin is not compiled yet, and the run is too small for that"
    if why is None:
        try:
            return Played(Twin(trace, spec).run(on_done, note), "twin")
        except Uncovered as found:
            why = str(found)
    if engine == "twin":
        hint = "choose `--engine auto` or `--engine cores`"
        raise InputError(f"the compiled twin cannot play this run: {why}", hint=hint)
    return Played(run_one(trace, spec, on_done=on_done), "cores", why)
