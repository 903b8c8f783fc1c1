"""What a program says in one turn of the event loop is one step: it shares a transaction, and the
cost of its proofs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic

from beforehand.core.base import Chorus, FrameT, MessageId, Said
from beforehand.core.driver import SpeakerDriver
from beforehand.errors import LocalError


class Speaking(Generic[FrameT]):
    """Broadcasts on their way into the core."""

    def __init__(
        self,
        driver: SpeakerDriver[FrameT],
        begin: Callable[[], int],
        on_failure: Callable[[Exception], None],
    ) -> None:
        """begin: a step begins; the node's time."""
        self._driver = driver
        self._begin = begin
        self._on_failure = on_failure
        self._loop = asyncio.get_running_loop()
        self._waiting: list[tuple[Said, asyncio.Future[MessageId]]] = []
        self._refusal: Exception | None = None

    async def say(self, payload: bytes, lifetime_us: int | None) -> MessageId:
        """The id. Who is cancelled while waiting has said it all the same."""
        if self._refusal is not None:
            raise self._refusal
        answer: asyncio.Future[MessageId] = self._loop.create_future()
        if not self._waiting:
            self._loop.call_soon(self._speak)
        self._waiting.append(((payload, lifetime_us), answer))
        return await asyncio.shield(answer)

    def stop(self, error: Exception | None) -> None:
        """Nothing more is said, and what waits is not."""
        if self._refusal is None:
            self._refusal = error or LocalError("it was closed", hint="open it again")

    def _speak(self) -> None:
        waiting, self._waiting = self._waiting, []
        said = [one for one, _ in waiting]
        if len(said) > 1 and isinstance(self._driver.core, Chorus) and self._refusal is None:
            try:
                ids = self._driver.on_broadcasts(self._begin(), said)
            except LocalError:
                pass  # nothing was said: one by one, it shows which of them is wrong
            except Exception as error:
                self._on_failure(error)
            else:
                for id, (_, answer) in zip(ids, waiting, strict=True):
                    answer.set_result(id)
                return
        for one, answer in waiting:
            self._speak_one(one, answer)

    def _speak_one(self, said: Said, answer: asyncio.Future[MessageId]) -> None:
        try:
            if self._refusal is not None:
                raise self._refusal
            answer.set_result(self._driver.on_broadcast(self._begin(), *said))
        except Exception as error:
            answer.set_exception(error)
            answer.exception()  # whoever was cancelled does not ask for it
            if not isinstance(error, LocalError) and self._refusal is None:
                self._on_failure(error)
