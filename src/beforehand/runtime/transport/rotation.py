"""Which secret a connection uses, and what happens to links when secrets change or end."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from beforehand.runtime.crypto.key_ring import KeyRing
from beforehand.runtime.crypto.keys import GroupSecret
from beforehand.runtime.transport.address import Address
from beforehand.runtime.transport.connection.link import Link


class SecretInfo(msgspec.Struct, frozen=True):
    """A secret of the group, as an application may show it."""

    id: str
    """A short name; it does not reveal the secret."""
    made_us: int
    ends_us: int | None
    """When it ends according to the key file; None for the newest secret of the file."""
    reported_ends_us: int | None
    """When it ends according to a peer. If the file says nothing, the file is out of date."""
    links: int
    """Links that are up under it."""


class Rotation:
    """The secrets of one node, and the links under each."""

    def __init__(
        self,
        ring: KeyRing,
        links: Mapping[str, Link],
        *,
        on_renewed: Callable[[], None],
        on_failure: Callable[[str], None],
    ) -> None:
        """on_renewed: called when other secrets are valid than before.
        on_failure: called with the problem when the key file has changed and cannot be used."""
        self.ring, self._links = ring, links
        self._on_renewed, self._on_failure = on_renewed, on_failure
        self._live = ring.live()
        self._announced: dict[Address, str] = {}
        self._refused: dict[Address, int] = {}

    def announce(self, address: Address, secret_id: str) -> None:
        """Note with which secret the announcement of an address was made."""
        self._announced[address] = secret_id

    def forget(self, address: Address) -> None:
        """Forget a discovered address."""
        self._announced.pop(address, None)
        self._refused.pop(address, None)

    def secret_for(self, address: Address) -> GroupSecret:
        """Return the secret to dial with.

        First that of the announcement, or the newest; after a refusal the others in turn.
        """
        live = self.ring.live()
        first = self._announced.get(address)
        live.sort(key=lambda secret: secret.id != first)  # stable: then the newest first
        return live[self._refused.get(address, 0) % len(live)]

    def on_dialed(self, address: Address, *, is_proven: bool) -> None:
        """Note whether the node at an address accepted our secret."""
        if is_proven:
            self._refused.pop(address, None)
        else:
            self._refused[address] = self._refused.get(address, 0) + 1

    def on_up(self, link: Link) -> None:
        """Tell a new peer when the secret of its link ends."""
        ends = {secret.id: secret.ends_us for secret in self.ring.live()}
        if (ends_us := ends.get(link.secret_id)) is not None:
            link.notice(ends_us)

    def on_notice(self, link: Link, ends_us: int) -> None:
        """Note when a secret ends that this node takes for valid."""
        if link.secret_id in [secret.id for secret in self._live]:
            self.ring.note_end(link.secret_id, ends_us)

    def check(self) -> None:
        """Read a changed key file, cut the links whose secret has ended, and announce anew."""
        if problem := self.ring.read_again():
            self._on_failure(problem)
        live = self.ring.live()
        ids = [secret.id for secret in live]
        for link in list(self._links.values()):
            if link.secret_id not in ids:
                link.end("rotated", "the secret of this link has ended")
        if live == self._live:
            return
        self._live = live
        for link in list(self._links.values()):
            self.on_up(link)
        self._on_renewed()

    def show(self) -> tuple[SecretInfo, ...]:
        """Return the valid secrets, the newest first, and then those that have ended."""
        counts: dict[str, int] = {}
        for link in self._links.values():
            counts[link.secret_id] = counts.get(link.secret_id, 0) + 1
        return tuple(
            SecretInfo(
                id=secret.id,
                made_us=secret.made_us,
                ends_us=secret.ends_us,
                reported_ends_us=self.ring.reported_ends_us.get(secret.id),
                links=counts.get(secret.id, 0),
            )
            for secret in (*self.ring.live(), *self.ring.ended())
        )
