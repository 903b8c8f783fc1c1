"""Judge the run that a page shows, and find the proofs of its first violations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import numpy as np

from beforehand.kernels.verify.causality import (
    LATE,
    TWICE,
    Spread,
    causal_chain,
    first_delivery,
    first_follower,
    spread_of,
)
from beforehand.play.run import Violations
from beforehand.verify.verdict import RunVerdict

PROOFS_MAX = 200
"""A proof takes a pass over the log. The page names `verify --explain` for the others."""


def violations_of(verdict: RunVerdict) -> Violations:
    """Return the violations of a run, in its order, with the proofs of the first ones."""
    log, history, found = verdict.log, verdict.history, verdict.violations
    rows = found.row
    spreads: dict[int, Spread] = {}
    chains = []
    for row, kind in islice(zip(rows.tolist(), found.kind.tolist(), strict=True), PROOFS_MAX):
        message = int(history.message[row])
        if kind == LATE and message not in spreads:
            spreads = {message: spread_of(history, message)}
        proof = _proof(verdict, row, kind, spreads.get(message))
        table = (log.t_us[proof], log.node[proof], log.origin[proof], log.seq[proof])
        chains.append(np.column_stack([*table, log.is_broadcast[proof]]).astype(np.int64))
    return Violations(
        log.t_us[rows],
        log.node[rows].astype(np.int64),
        log.origin[rows].astype(np.int64),
        log.seq[rows],
        found.kind.astype(np.int64),
        tuple(chains),
    )


def _proof(verdict: RunVerdict, row: int, kind: int, spread: Spread | None) -> Sequence[int]:
    """Return the rows that prove a violation, from the cause to the delivery."""
    history = verdict.history
    if kind == LATE:
        assert spread is not None
        after = first_follower(history, spread, int(history.node[row]), row)
        return [*causal_chain(history, spread, int(history.message[after])), after, row]
    if kind == TWICE:
        return [*first_delivery(history, row), row]
    message = history.message[row]
    return [row] if message < 0 else [row, int(history.broadcast_rows[message])]
