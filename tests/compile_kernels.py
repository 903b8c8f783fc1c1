"""Compile once, and keep on disk, the kernels that take seconds to compile.

`make test` does so while types are checked, which keeps one processor busy. Otherwise the workers
of pytest and of Spark would all compile the same kernels first.
"""

from beforehand.mobility.generators import walkers
from beforehand.sim.cells.spec import SECOND_US, CellsSpec
from beforehand.sim.cells.world import run as run_cells
from beforehand.sim.contacts.run import Spec, run_one
from beforehand.sim.contacts.summary import count_violations, summarise
from beforehand.sim.contacts.twin import compile_world
from beforehand.sim.drift import Drift, measure
from beforehand.sim.drift_figures import figure_dials
from beforehand.sim.overlay.twin import run_compiled
from beforehand.sim.overlay.world import OverlaySpec


def main() -> None:
    trace = walkers.generate(1, hours=0.1).contacts_within(50)
    compile_world(print)
    columns = run_one(trace, Spec("causal", seed=1)).columns
    summarise(columns)
    count_violations(columns)
    run_compiled(OverlaySpec(8, messages=2), seed=1)
    drift = Drift(messages=100, seed=1)
    for _ in measure(drift, figure_dials(drift)):
        pass
    run_cells(CellsSpec(stations=2, hosts=2, duration_us=20 * SECOND_US), seed=1)


if __name__ == "__main__":
    main()
