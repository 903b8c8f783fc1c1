"""The transition cache: a step that a core took before is looked up, not computed again.

A core is a pure state machine, so its state and an input determine its next state and its effects.
In an exploration the same core takes the same step in thousands of nets that differ elsewhere.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Hashable, Iterable
from functools import partial
from typing import Any, Generic, TypeVar

import msgspec

from beforehand.check.explore.canonical_core import canonical_form
from beforehand.check.explore.names import NamedPayload, NodeName, Renaming, renamed_core
from beforehand.errors import LocalError
from beforehand.protocols.contract.base import Core
from beforehand.protocols.contract.outbox import Outbox

INPUTS = {
    "on_message": 3,
    "on_timer": 2,
    "on_link": 3,
    "on_broadcast": 2,
    "on_broadcasts": 2,
    "on_leave": 1,
    "on_room": 3,
    "on_open": 2,
    "on_saved": 2,
    "on_progress": 2,
    "restore": 2,
}
"""The inputs of all cores -> the position of the outbox among the arguments."""

PEERS = ("on_message", "on_link", "on_room", "on_progress")
"""The inputs whose second argument is the id of a node."""

T = TypeVar("T", bound=Hashable)
Key = tuple[int, str, tuple[Any, ...], tuple[Any, ...]]
"""A core's number, an input, and its arguments before and after the outbox."""
Step = tuple[int, Any, list[tuple[str, list[Any]]]]
"""The core's number after the step, the return value or exception, and the nonempty effects."""


class Pool(Generic[T]):
    """Numbers hashable objects: equal objects have the same number, and are stored once."""

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


class TransitionCache:
    """The transition cache: all states of all cores by number, and the steps between them."""

    def __init__(
        self,
        canonicalise: Callable[[Any, int], None],
        canonical_frame: Callable[[Any], Any],
        *,
        has_names: bool = False,
    ) -> None:
        """Create an empty cache.

        - canonicalise: removes from a core everything that no later step depends on, and moves its
          instants into the past by the given number of µs.
        - canonical_frame: does the same for a frame.
        - has_names: node ids are `NodeName`s, and can be renamed."""
        self._canonicalise = canonicalise
        self._canonical_frame = canonical_frame
        self.has_names = has_names
        self._states: list[bytes] = []
        """Number -> one pickled core with this canonical form."""
        self._numbers: dict[bytes, int] = {}
        """Every pickled core that occurred -> its number."""
        self._forms: dict[Hashable, int] = {}
        self._cores: dict[int, Any] = {}
        self._bare: dict[tuple[int, int], int] = {}
        self._steps: dict[Key, Step] = {}
        self._renamed: dict[tuple[int, Renaming], int] = {}

    def stand_in(self, core: Core[Any]) -> StandIn:
        return StandIn(self, self._number(core))

    def core(self, number: int) -> Any:
        """Return the core with this number. The caller must not change it."""
        if number not in self._cores:
            self._cores[number] = pickle.loads(self._states[number])
        return self._cores[number]

    def without_history(self, number: int, us: int) -> int:
        """Return the number of the canonical core. us: how far its instants are moved back."""
        if (number, us) not in self._bare:
            core = pickle.loads(self._states[number])
            self._canonicalise(core, us)
            self._bare[number, us] = self._number(core)
        return self._bare[number, us]

    def step(self, number: int, name: str, before: tuple[Any, ...], after: tuple[Any, ...]) -> Step:
        """Return a step, from the cache if possible.

        before, after: the arguments before and after the outbox."""
        # Saved rows are rarely equal and are not hashable, so this is not cached.
        if name == "restore":
            return self.take(number, name, before, after)
        key = (number, name, before, after)
        step = self._steps.get(key)
        if step is None:
            step = self._steps[key] = self.take(number, name, before, after)
        return step

    def with_names(self, name: str, before: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments of an input with ids and payloads that can be renamed."""
        if not self.has_names:
            return before
        now_us, what, *rest = before
        if name in PEERS:
            what = NodeName(what)
        elif name == "on_broadcast":
            what = NamedPayload(what)
        return (now_us, what, *rest)

    def steps(self) -> Iterable[tuple[Key, Step]]:
        """Return all cached steps."""
        return self._steps.items()

    def renamed(self, number: int, renaming: Renaming) -> int:
        """Return the number of the core with all nodes renamed."""
        if (number, renaming) not in self._renamed:
            core = renamed_core(self.core(number), renaming)
            self._renamed[number, renaming] = self._number(core)
        return self._renamed[number, renaming]

    def take(self, number: int, name: str, before: tuple[Any, ...], after: tuple[Any, ...]) -> Step:
        """Compute a step, without the cache."""
        core = pickle.loads(self._states[number])
        out: Outbox[Any] = Outbox()
        try:
            answer = getattr(core, name)(*before, out, *after)
        except LocalError as error:
            answer = error
        out.sends = [(peer, self._canonical_frame(frame)) for peer, frame in out.sends]
        effects = [(kind, done) for kind, done in msgspec.structs.asdict(out).items() if done]
        return self._number(core), answer, effects

    def _number(self, core: Core[Any]) -> int:
        # The pickler keeps its memo: inside a core, one object may be in two registries.
        pickled = pickle.dumps(core)
        number = self._numbers.get(pickled)
        if number is None:
            number = self._forms.setdefault(canonical_form(core), len(self._states))
            if number == len(self._states):
                self._states.append(pickled)
            self._numbers[pickled] = number
        return number


class StandIn:
    """A proxy for a core: it has the attributes and the class of the core with its number."""

    __slots__ = ("_memory", "number")

    def __init__(self, memory: TransitionCache, number: int) -> None:
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
        before = self._memory.with_names(name, arguments[:at])
        step = self._memory.step(self.number, name, before, arguments[at + 1 :])
        self.number, answer, effects = step
        for kind, done in effects:
            getattr(arguments[at], kind).extend(done)
        if isinstance(answer, LocalError):
            raise answer
        return answer
