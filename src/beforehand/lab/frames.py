"""Tables for notebooks: the events of a simulation as a pandas frame, with names joined in."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from beforehand.errors import InputError
from beforehand.events import KINDS, RECEIVE
from beforehand.mobility.trace import Trace
from beforehand.sim.contacts.run import Result
from beforehand.sim.contacts.summary import count_violations

if TYPE_CHECKING:
    import pandas as pd


def events_frame(trace: Trace, result: Result) -> pd.DataFrame:
    """Return the events of a run in their total order, with the names of the trace.

    Columns: `t_s`, `node`, `kind`, `origin`, `seq`, `sender`. `origin` and `sender` are None where
    an event has none; `seq` is then -1.

    Raise `InputError` if the result is not one of this trace.
    """
    import pandas as pd

    columns = result.columns
    if columns["node"].max(initial=-1) >= trace.nodes_count:
        problem = f"the result has more nodes than the trace, which has {trace.nodes_count}"
        raise InputError(problem, hint="pass the trace that was simulated")
    senders = np.full(len(columns["node"]), -1)
    senders[columns["kind"] == RECEIVE] = result.senders
    names = np.array([*trace.names, None], object)  # -1 is the last one
    return pd.DataFrame(
        {
            "t_s": columns["t_us"] / 1e6,
            "node": names[columns["node"]],
            "kind": _kinds(columns["kind"]),
            "origin": names[columns["origin"]],
            "seq": columns["seq"],
            "sender": names[senders],
        }
    )


def find_violations(result: Result) -> dict[str, int]:
    """Return the violations of causal order by kind: `late`, `twice` and `unknown`."""
    return dict(count_violations(result.columns))


def propagation(
    events: pd.DataFrame | str | os.PathLike[str], origin: str, seq: int
) -> pd.DataFrame:
    """Return the tree along which a message spread: its first reception at every other node.

    - `events`: a frame of `events_frame`, or the path of an event log.
    - `origin`, `seq`: the message.

    Columns: `t_s`, `sender`, `node`. Raise `InputError` if the log does not name the senders, or
    has no such message.
    """
    frame = _read_events(events) if isinstance(events, str | os.PathLike) else events
    of_message = frame[(frame["origin"] == origin) & (frame["seq"] == seq)]
    if not (of_message["kind"] == "broadcast").any():
        raise InputError(f"no message {seq} of `{origin}` in the events")
    received = of_message[(of_message["kind"] == "receive") & (of_message["node"] != origin)]
    if received["sender"].isna().any():
        hint = "an earlier version wrote it, or a world that does not know them"
        raise InputError("the log does not name the senders of receptions", hint=hint)
    first = received.drop_duplicates("node")
    return first[["t_s", "sender", "node"]].reset_index(drop=True)


def _read_events(path: str | os.PathLike[str]) -> pd.DataFrame:
    import pandas as pd

    from beforehand.export.run_log import read_run

    log = read_run(path)
    unknown = np.full(len(log.columns["node"]), -1)
    senders = unknown if log.sender_of_row is None else log.sender_of_row
    named = {
        role: [log.name(node) if node >= 0 else None for node in nodes.tolist()]
        for role, nodes in (
            ("node", log.columns["node"]),
            ("origin", log.columns["origin"]),
            ("sender", senders),
        )
    }
    kinds = _kinds(log.columns["kind"])
    t_s, seq = log.columns["t_us"] / 1e6, log.columns["seq"]
    return pd.DataFrame({"t_s": t_s, "kind": kinds, "seq": seq, **named})


def _kinds(codes: NDArray[Any]) -> pd.Series[str]:
    """Return the names of the kinds as a categorical column."""
    import pandas as pd

    names = np.array(KINDS, object)[codes]
    return pd.Series(names, dtype=pd.CategoricalDtype(list(KINDS)))
