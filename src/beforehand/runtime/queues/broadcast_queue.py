"""Batching of broadcasts: those made during a transaction form one batch in the next one.

They have to wait for the running transaction in any case. Batching amortises the fsync and the
signature over all of them.
"""

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
    """The broadcasts that are not yet durable: queued for the core, or waiting for their commit."""

    def __init__(
        self,
        driver: BroadcasterDriver[FrameT],
        group_commit: GroupCommit,
        begin: Callable[[], int],
        on_failure: Callable[[Exception], None],
    ) -> None:
        """begin: marks the beginning of a step and returns the node's time in microseconds.
        on_failure: called with an unexpected error of the core."""
        self._driver = driver
        self._group_commit = group_commit
        self._begin = begin
        self._on_failure = on_failure
        self._loop = asyncio.get_running_loop()
        self._waiting: list[tuple[BroadcastRequest, asyncio.Future[MessageId]]] = []
        self._unsaved: deque[Answers] = deque()
        """Batches that the core has broadcast and that wait for their commit."""
        self._refusal: Exception | None = None

    def add(self, payload: bytes, lifetime_us: int | None) -> asyncio.Future[MessageId]:
        """Queue a broadcast. The future yields its id once the message is durable.

        Cancelling the future does not withdraw the message. Raise the reason if the queue was
        stopped.
        """
        if self._refusal is not None:
            raise self._refusal
        answer: asyncio.Future[MessageId] = self._loop.create_future()
        if not self._waiting:
            self._group_commit.before_next(self._pass_on)
        self._waiting.append(((payload, lifetime_us), answer))
        if len(self._waiting) == LEAVES_MAX:
            self._group_commit.hurry()  # more would not share a signature with these
        return answer

    def stop(self, error: Exception | None) -> None:
        """Stop accepting broadcasts.

        Without an error, pass the queued broadcasts to the core first. With an error, fail them,
        and also those whose commit is outstanding, which will never be durable.
        """
        if error is None:
            self._pass_on()
        if self._refusal is None:
            self._refusal = error or LocalError("it was closed", hint="open it again")
        for _, answer in self._waiting:
            _refuse(answer, self._refusal)
        self._waiting.clear()
        while error is not None and self._unsaved:
            for _, answer in self._unsaved.popleft():
                _refuse(answer, error)

    def _pass_on(self) -> None:
        """Pass the queued broadcasts to the core, right before the next transaction."""
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
        """Broadcast them as one batch.

        Return nothing if the core takes no batches, or rejects this one because of one of its
        messages.
        """
        if len(waiting) == 1 or not self._driver.takes_batches:
            return []
        try:
            ids = self._driver.on_broadcasts(self._begin(), [request for request, _ in waiting])
        except LocalError:
            # The core has broadcast none of them. One by one, only the invalid ones fail.
            return []
        except Exception as error:
            self._on_failure(error)
            return []
        return [(id, answer) for id, (_, answer) in zip(ids, waiting, strict=True)]

    def _broadcast_each(
        self, waiting: list[tuple[BroadcastRequest, asyncio.Future[MessageId]]]
    ) -> Answers:
        """Broadcast one by one; fail the future of each that the core rejects."""
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
        """Resolve the futures of the oldest batch, which is durable now."""
        for id, answer in self._unsaved.popleft():
            if not answer.done():
                answer.set_result(id)


def _refuse(answer: asyncio.Future[MessageId], error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)
