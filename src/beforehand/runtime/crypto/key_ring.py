"""The secrets that a running node uses. Its key file is read again when it changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from beforehand.errors import InputError
from beforehand.runtime.crypto.keys import GroupKey, GroupSecret


class KeyRing:
    """The key of a node, and when its secrets end."""

    def __init__(
        self, key: GroupKey, clock_us: Callable[[], int], path: Path | None = None
    ) -> None:
        """clock_us: returns the time in microseconds since the epoch.
        path: the key file; without one the key does not change."""
        self.key, self._clock_us, self._path = key, clock_us, path
        self.reported_ends_us: dict[str, int] = {}
        """When peers said that a secret ends, by the id of the secret; only secrets of the key."""
        self._stamp = self._stamp_now()

    def live(self) -> list[GroupSecret]:
        """Return the secrets that are valid now, the newest first."""
        return self.key.live(self._clock_us())

    def ended(self) -> list[GroupSecret]:
        """Return the secrets that are known and have ended."""
        return self.key.ended(self._clock_us())

    def now_us(self) -> int:
        return self._clock_us()

    def note_end(self, secret_id: str, ends_us: int) -> None:
        """Note that a peer says when a secret ends."""
        self.reported_ends_us[secret_id] = ends_us

    def read_again(self) -> str:
        """Read the key file if it has changed. Return why its content cannot be used, or "".

        The node keeps its present key if the file is gone, incomplete or of another group.
        """
        stamp = self._stamp_now()
        if self._path is None or stamp in (None, self._stamp):
            return ""
        self._stamp = stamp
        try:
            key = GroupKey.read(self._path)
        except InputError as error:
            return str(error)
        if key.name != self.key.name:
            return f"{self._path}: the key of the group `{key.name}`, not of `{self.key.name}`"
        self.key = key
        ids = {secret.id for secret in (key.newest, *key.older)}
        self.reported_ends_us = {
            id_: ends_us for id_, ends_us in self.reported_ends_us.items() if id_ in ids
        }
        return ""

    def _stamp_now(self) -> tuple[int, int, int] | None:
        """Return what differs between two versions of the file; None if there is no file."""
        if self._path is None:
            return None
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino, found.st_size
