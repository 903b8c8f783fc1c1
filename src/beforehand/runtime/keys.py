"""The secret that makes a group, and the key that makes a member."""

from __future__ import annotations

from pathlib import Path

import msgspec


class GroupKey(msgspec.Struct, frozen=True):
    """Whoever holds it is in the group."""

    name: str
    secret: bytes

    @classmethod
    def read(cls, path: Path) -> GroupKey:
        raise NotImplementedError

    def write(self, path: Path) -> None:
        raise NotImplementedError

    def invite(self) -> str:
        raise NotImplementedError

    @classmethod
    def from_invite(cls, text: str) -> GroupKey:
        raise NotImplementedError

    def rotate(self) -> GroupKey:
        raise NotImplementedError


def new_group(name: str) -> GroupKey:
    raise NotImplementedError


class MemberKey:
    """An Ed25519 key. `MemberKey(seed)` gives back the one whose `seed` was saved."""

    def __init__(self, seed: bytes) -> None:
        self.seed = seed
        self.public: bytes

    def sign(self, data: bytes) -> bytes:
        raise NotImplementedError


def new_member() -> MemberKey:
    raise NotImplementedError
