"""The first messages of a connection, which are no records: cookie, hello and answer."""

from __future__ import annotations

from beforehand.runtime.crypto.handshake import (
    ANSWER_BYTES,
    COOKIE_BYTES,
    HELLO_BYTES,
    DialerHandshake,
    Introduction,
    ListenerHandshake,
    Opener,
    Sealer,
)
from beforehand.runtime.transport.connection.buffers import ReadBuffer


class HandshakeStream:
    """Cuts the bytes received into the messages of a handshake, and has the replies."""

    def __init__(self, handshake: DialerHandshake | ListenerHandshake) -> None:
        self._handshake = handshake
        self.is_dialer = isinstance(handshake, DialerHandshake)
        self.start = handshake.cookie if isinstance(handshake, ListenerHandshake) else b""
        """The bytes to send at once."""
        self.sealer: Sealer
        self.opener: Opener
        self.secret_id = ""
        """The id of the secret that the peer has proven to hold."""
        self.is_proven = False
        """Whether the peer has proven that it holds the secret. From then on there are records."""
        self._has_cookie = False

    def take(self, buffer: ReadBuffer) -> bytes | None:
        """Take the next message from the buffer; return the reply to send, or None if incomplete.

        Raise `Refused` if the message is not valid.
        """
        handshake = self._handshake
        if isinstance(handshake, ListenerHandshake):
            if (hello := _take_exactly(buffer, HELLO_BYTES)) is None:
                return None
            answer, self.sealer, self.opener = handshake.on_hello(hello)
            self.is_proven, self.secret_id = True, handshake.secret.id
            return answer
        if not self._has_cookie:
            if (cookie := _take_exactly(buffer, COOKIE_BYTES)) is None:
                return None
            self._has_cookie = True
            return handshake.on_cookie(cookie)
        if (answered := _take_exactly(buffer, ANSWER_BYTES)) is None:
            return None
        self.sealer, self.opener = handshake.on_answer(answered)
        self.is_proven, self.secret_id = True, handshake.secret.id
        return b""

    def meet(self) -> tuple[Introduction, bytes]:
        """Return the listener's introduction, and ours for it; only a dialer has both."""
        handshake = self._handshake
        assert isinstance(handshake, DialerHandshake), "can't happen: the caller has dialed"
        return handshake.peer(), handshake.introduction()

    def on_introduction(self, content: bytes) -> Introduction:
        """Return the dialer's introduction; raise `Refused` if it is not valid."""
        handshake = self._handshake
        assert isinstance(handshake, ListenerHandshake), "can't happen: only it waits for one"
        return handshake.on_introduction(content)


def _take_exactly(buffer: ReadBuffer, size: int) -> bytes | None:
    """Remove and return the next `size` bytes; None while they are not complete."""
    if len(buffer) < size:
        buffer.reserve(size)
        return None
    return buffer.take(size)
