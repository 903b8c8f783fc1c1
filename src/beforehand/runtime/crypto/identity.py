"""The identity of a member, which lives in its store: its key pair and its name bindings."""

from __future__ import annotations

from beforehand.protocols.contract.tables import Table
from beforehand.runtime.crypto.keys import MemberKey, new_member
from beforehand.runtime.crypto.trust import Trust
from beforehand.runtime.storage.group_commit import GroupCommit
from beforehand.runtime.storage.store import DiskStore

BINDINGS = Table("binding", str, bytes)
"""The public key that each known name is bound to."""
BLOCKED = Table("blocked", bytes, int)
"""The public keys that the application has blocked, and when, in microseconds."""
MEMBER = "member"


def identity(name: str, disk: DiskStore, group_commit: GroupCommit) -> tuple[MemberKey, Trust]:
    """Return the member's key pair and its `Trust`.

    The key pair is created once, together with the store. New bindings are saved with
    `group_commit`.
    """
    member = _member_of(disk)
    rows = disk.load((BINDINGS, BLOCKED))
    bound = rows[BINDINGS.name]
    return member, Trust(
        name,
        member,
        bound,
        lambda bound_name, public: group_commit.save([(BINDINGS.name, bound_name, public)]),
        rows[BLOCKED.name],
    )


def _member_of(disk: DiskStore) -> MemberKey:
    """Return the saved key pair; create and save it if the store has none."""
    seed = disk.note(MEMBER)
    if seed is not None:
        return MemberKey(seed)
    member = new_member()
    disk.keep(MEMBER, member.seed)
    return member
