"""Define the promises of protocols about the order of deliveries, and the violations of each.

The verifier, the checkers and the reports take from here what they judge.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Promise:
    """One promise. The kinds of violations are those of the oracle: late, twice, unknown."""

    label: str
    """The promise in the tables of commands."""
    broken_by: tuple[str, ...]
    """The kinds of violations that break it. The others are allowed: they are counted and shown."""
    allowed: str = ""
    """The reason why late deliveries are allowed, for tables; empty if they are not."""
    orders: bool = True
    """Whether the protocol delays deliveries for the sake of an order."""

    @property
    def is_sure(self) -> bool:
        """Return whether no delivery is ever late."""
        return "late" in self.broken_by

    def describe_late(self, late: int, deliveries: int) -> str:
        """Return what a verdict has to say about the late deliveries; empty if nothing."""
        if self.is_sure or not (late or self.orders):
            return ""
        if not self.orders:
            return f"{late:,} late, but no order was promised"
        share = 100 * late / deliveries if deliveries else 0
        return f"{late:,} late ({share:.2g} % of the deliveries): {self.allowed}"


PROMISES = {
    "causal": Promise("causal order", ("late", "twice", "unknown")),
    "probable": Promise(
        "causal order with probability",
        ("twice", "unknown"),
        "order promised with probability only",
    ),
    "none": Promise("no order", ("twice", "unknown"), "no order promised", orders=False),
}
"""The promises by their names in event logs. Lifetimes do not change the order: a message that
expires is not delivered, and the others are delivered in causal order."""
DEFAULT_PROMISE, LEAST_PROMISE = "causal", "none"


def label_of(promise: str) -> str:
    """Return the label of a promise; a promise that is not known is its own label."""
    return PROMISES[promise].label if promise in PROMISES else promise
