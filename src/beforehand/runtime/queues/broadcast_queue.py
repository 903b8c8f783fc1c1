"""What a program says while a transaction is under way is one step: it has to wait for the end of
that one anyway, and so it shares the next one, and the cost of its proofs."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Generic

from beforehand.errors import LocalError
from beforehand.protocols.contract.base import BroadcastRequest, FrameT, MessageId
from beforehand.protocols.contract.driver import BroadcasterDriver
from beforehand.runtime.crypto.merkle import LEAVES_MAX
from beforehand.runtime.storage.group_commit import GroupCommit

Answers = list[tuple[MessageId, "asyncio.Future[MessageId]"]]


class BroadcastQueue(Generic[FrameT]):
    """Broadcasts on their way through the core to the disk."""

    def __init__(
        self,
        driver: BroadcasterDriver[FrameT],
        group_commit: GroupCommit,
        begin: Callable[[], int],
        on_failure: Callable[[Exception], None],
    ) -> None:
        """begin: a step begins; the node's time."""
        self._driver = driver
        self._group_commit = group_commit
        self._begin = begin
        self._on_failure = on_failure
        self._loop = asyncio.get_running_loop()
        self._waiting: list[tuple[BroadcastRequest, asyncio.Future[MessageId]]] = []
        self._unsaved: deque[Answers] = deque()
        """Said, and not on the disk yet."""
        self._refusal: Exception | None = None

    def say(self, payload: bytes, lifetime_us: int | None) -> asyncio.Future[MessageId]:
        """The id, when it is on the disk. Who is cancelled while waiting has said it even so."""
        if self._refusal is not None:
            raise self._refusal
        answer: asyncio.Future[MessageId] = self._loop.create_future()
        if not self._waiting:
            self._group_commit.before_next(self._speak)
        self._waiting.append(((payload, lifetime_us), answer))
        if len(self._waiting) == LEAVES_MAX:
            self._group_commit.hurry()  # more would not share a signature with these
        return answer

    def stop(self, error: Exception | None) -> None:
        """Nothing more is said than what was asked for already. With an error not even that, and
        what is not on the disk never gets there."""
        if error is None:
            self._speak()
        if self._refusal is None:
            self._refusal = error or LocalError("it was closed", hint="open it again")
        for _, answer in self._waiting:
            _refuse(answer, self._refusal)
        self._waiting.clear()
        while error is not None and self._unsaved:
            for _, answer in self._unsaved.popleft():
                _refuse(answer, error)

    def _speak(self) -> None:
        waiting, self._waiting = self._waiting, []
        if waiting and self._refusal is None:
            answers = self._broadcast_together(waiting) or self._broadcast_each(waiting)
            if answers:
                self._unsaved.append(answers)
                self._group_commit.after(self._settle)
        if (refusal := self._refusal) is not None:
            for _, answer in waiting:
                _refuse(answer, refusal)

    def _broadcast_together(
        self, waiting: list[tuple[BroadcastRequest, asyncio.Future[MessageId]]]
    ) -> Answers:
        """As one step; none if there is no such step, or one of them is wrong."""
        if len(waiting) == 1 or not self._driver.takes_batches:
            return []
        try:
            ids = self._driver.on_broadcasts(self._begin(), [request for request, _ in waiting])
        except LocalError:
            return []  # nothing was said: one by one, it shows which of them is wrong
        except Exception as error:
            self._on_failure(error)
            return []
        return [(id, answer) for id, (_, answer) in zip(ids, waiting, strict=True)]

    def _broadcast_each(
        self, waiting: list[tuple[BroadcastRequest, asyncio.Future[MessageId]]]
    ) -> Answers:
        answers: Answers = []
        for request, answer in waiting:
            try:
                if self._refusal is None:
                    answers.append((self._driver.on_broadcast(self._begin(), *request), answer))
            except LocalError as error:
                _refuse(answer, error)
            except Exception as error:
                self._on_failure(error)
        return answers

    def _settle(self) -> None:
        for id, answer in self._unsaved.popleft():
            if not answer.done():
                answer.set_result(id)


def _refuse(answer: asyncio.Future[MessageId], error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)
