"""Everything that can be run with a seed, by its name on the command line."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from beforehand.check.families import FAMILIES
from beforehand.check.fuzz.fuzz import Outcome, run_seed
from beforehand.check.fuzz.wide import run_wide
from beforehand.protocols.registry import present_name

WIDE = ("was", "was_flood", "ck")
TARGETS: dict[str, Callable[[int], Outcome]] = {
    **{name: partial(run_seed, family=family) for name, family in FAMILIES.items()},
    **{f"{system}_wide": partial(run_wide, system=system) for system in WIDE},
}


def find_target(written: str) -> str | None:
    """Return the name of the target that a user wrote, with or without hyphens, or None.

    The former name of a protocol is accepted with a warning.
    """
    name = present_name(written).replace("-", "_")
    return name if name in TARGETS else None
