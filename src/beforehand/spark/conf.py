"""Check the user's Spark settings and addresses before Spark starts."""

from __future__ import annotations

import re
from collections.abc import Sequence

from beforehand.errors import InputError

SETTING = re.compile(r"(spark\.[A-Za-z0-9_.-]*[A-Za-z0-9_-])=(.+)", re.DOTALL)
OURS = {
    "spark.master": "pass `--master URL`",
    "spark.remote": "pass `--remote URL`",
    "spark.api.mode": "pass `--remote URL` for a Connect server",
}
"""Settings that have their own command-line option, and the option to use."""


MASTER = re.compile(
    r"local(\[(\*|[1-9][0-9]*)(,[1-9][0-9]*)?\])?|local-cluster\[.+\]|spark://.+|k8s://.+|yarn"
)
REMOTE = re.compile(r"sc://.+")


def check_addresses(master: str | None, remote: str | None) -> None:
    """Raise InputError for an invalid Spark master or Connect address, before anything starts."""
    if master and remote:
        raise InputError(
            f"both a master and a Connect server: `{master}` and `{remote}`",
            hint="give a master or a Connect server, not both",
        )
    if master is not None and not MASTER.fullmatch(master):
        hint = "write `local[2]`, `spark://host:port` or `yarn`"
        raise InputError(f"not a Spark master: `{master}`", hint=hint)
    if remote is not None and not REMOTE.fullmatch(remote):
        raise InputError(f"not a Connect server: `{remote}`", hint="write `sc://host:port`")


def read_conf(texts: Sequence[str]) -> dict[str, str]:
    """Parse settings of the form `KEY=VALUE`, each key once. Spark would silently ignore a misspelt
    key."""
    found: dict[str, str] = {}
    for text in texts:
        match = SETTING.fullmatch(text)
        if match is None:
            hint = "write `--conf spark.executor.memory=2g`"
            raise InputError(f"not a setting of Spark: `{text}`", where="--conf", hint=hint)
        key, value = match.groups()
        if key in OURS:
            raise InputError(f"`{key}` is no setting here", where="--conf", hint=OURS[key])
        if found.setdefault(key, value) != value:
            problem = f"two values for `{key}`: `{found[key]}` and `{value}`"
            raise InputError(problem, where="--conf", hint="leave one of them out")
    return found
