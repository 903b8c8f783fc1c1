"""Cores that remember: a step that was taken before is looked up, and not computed again.

A core is a pure state machine, so its state and an input determine its next state and its effects.
In an exploration the same core takes the same step in thousands of nets that differ elsewhere.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, Generic, TypeVar

import msgspec

from beforehand.core.base import Core
from beforehand.core.outbox import Outbox
from beforehand.errors import LocalError

INPUTS = {
    "on_message": 3,
    "on_timer": 2,
    "on_link": 3,
    "on_broadcast": 2,
    "on_broadcasts": 2,
    "on_leave": 1,
    "restore": 2,
}
"""What changes a core, and which of its arguments is the outbox."""

T = TypeVar("T", bound=Hashable)
Step = tuple[int, Any, list[tuple[str, list[Any]]]]
"""The state after it, what it answers (or raises), and its effects as far as there are any."""


class Pool(Generic[T]):
    """Things by number: equal things have one number, and are kept once."""

    def __init__(self) -> None:
        self._numbers: dict[T, int] = {}
        self._things: list[T] = []

    def number(self, thing: T) -> int:
        number = self._numbers.setdefault(thing, len(self._things))
        if number == len(self._things):
            self._things.append(thing)
        return number

    def __getitem__(self, number: int) -> T:
        return self._things[number]


class Memory:
    """All states of all cores by number, and the steps between them."""

    def __init__(self, forget_counts: Callable[[Any], None]) -> None:
        self._forget_counts = forget_counts
        self._states: Pool[bytes] = Pool()
        self._cores: dict[int, Any] = {}
        self._bare: dict[int, int] = {}
        self._steps: dict[tuple[Any, ...], Step] = {}

    def stand_in(self, core: Core[Any]) -> StandIn:
        return StandIn(self, self._number(core))

    def core(self, number: int) -> Any:
        """To look at, not to be changed."""
        if number not in self._cores:
            self._cores[number] = pickle.loads(self._states[number])
        return self._cores[number]

    def without_counts(self, number: int) -> int:
        """Counts of the past would keep equal states apart."""
        if number not in self._bare:
            core = pickle.loads(self._states[number])
            self._forget_counts(core)
            self._bare[number] = self._number(core)
        return self._bare[number]

    def step(self, number: int, name: str, before: tuple[Any, ...], after: tuple[Any, ...]) -> Step:
        """before, after: the arguments before and after the outbox."""
        if name == "restore":  # from rows, which are rarely the same and cannot be looked up
            return self._take(number, name, before, after)
        key = (number, name, before, after)
        step = self._steps.get(key)
        if step is None:
            step = self._steps[key] = self._take(number, name, before, after)
        return step

    def _take(
        self, number: int, name: str, before: tuple[Any, ...], after: tuple[Any, ...]
    ) -> Step:
        core = pickle.loads(self._states[number])
        out: Outbox[Any] = Outbox()
        try:
            answer = getattr(core, name)(*before, out, *after)
        except LocalError as error:
            answer = error
        effects = [(kind, done) for kind, done in msgspec.structs.asdict(out).items() if done]
        return self._number(core), answer, effects

    def _number(self, core: Core[Any]) -> int:
        # With the pickler's memory: inside a core, one object may be in two registries.
        return self._states.number(pickle.dumps(core))


class StandIn:
    """In the place of a core: to look at it is to look at the core, and so is to ask what it is."""

    __slots__ = ("_memory", "number")

    def __init__(self, memory: Memory, number: int) -> None:
        self._memory = memory
        self.number = number

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._memory.core(self.number), name)
        return partial(self._step, name) if name in INPUTS else found

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self._memory.core(self.number))

    def _step(self, name: str, *arguments: Any) -> Any:
        at = INPUTS[name]
        step = self._memory.step(self.number, name, arguments[:at], arguments[at + 1 :])
        self.number, answer, effects = step
        for kind, done in effects:
            getattr(arguments[at], kind).extend(done)
        if isinstance(answer, LocalError):
            raise answer
        return answer
