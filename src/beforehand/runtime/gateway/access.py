"""Which requests a gateway answers: those with its token, and with its own name as their host."""

from __future__ import annotations

import hmac
import secrets

TOKEN_BYTES = 32
LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "::1")


def new_token() -> str:
    """Return a random token."""
    return secrets.token_urlsafe(TOKEN_BYTES)


class Access:
    """The checks of one gateway."""

    def __init__(self, token: str, host: str) -> None:
        """host: the name or address under which clients reach the gateway, besides loopback."""
        self._token = token.encode()
        self._hosts = {*LOOPBACK, host.lower()}

    def knows_token(self, token: object) -> bool:
        """Return whether this is the token."""
        given = token.encode() if isinstance(token, str) else b""
        return hmac.compare_digest(given, self._token)

    def may_read(self, authorization: str) -> bool:
        """Return whether the header `Authorization` has the token."""
        scheme, _, token = authorization.partition(" ")
        return scheme.lower() == "bearer" and self.knows_token(token.strip())

    def is_own_host(self, host: str) -> bool:
        """Return whether the header `Host` names this gateway.

        A web page of another site can make its own name resolve to this machine (DNS rebinding).
        Then the header has that name.
        """
        return _without_port(host.lower()) in self._hosts

    def is_own_origin(self, origin: str | None) -> bool:
        """Return whether the header `Origin` is missing, or names a page of this gateway."""
        if origin is None:
            return True
        scheme, separator, host = origin.partition("://")
        return bool(separator) and scheme in ("http", "https") and self.is_own_host(host)


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() and (":" not in name or name.endswith("]")) else host
