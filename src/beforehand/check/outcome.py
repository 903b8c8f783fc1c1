"""What one seed of a fuzzer showed."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Outcome:
    """The same seed and protocol always give the same."""

    seed: int
    protocol: str
    problems: tuple[str, ...]
    deliveries: int
    waited: int
    """Deliveries later than their reception: a swarm in which nothing waits proves nothing."""
    story: str = ""
    described: str = field(default="", compare=False)

    @property
    def replay(self) -> str:
        return f"beforehand fuzz --protocol {self.protocol} --replay {self.seed}"
