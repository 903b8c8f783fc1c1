"""Who a member is, for as long as its store lives: its key, and whose key is whose."""

from __future__ import annotations

from beforehand.protocols.contract.tables import Table
from beforehand.runtime.crypto.keys import MemberKey, new_member
from beforehand.runtime.crypto.trust import Trust
from beforehand.runtime.storage.group_commit import GroupCommit
from beforehand.runtime.storage.store import DiskStore

BINDINGS = Table("binding", str, bytes)
"""Whose key is whose."""
MEMBER = "member"


def identity(name: str, disk: DiskStore, group_commit: GroupCommit) -> tuple[MemberKey, Trust]:
    """The key is made once, with the store."""
    member = _member_of(disk)
    bound = disk.load((BINDINGS,))[BINDINGS.name]
    return member, Trust(
        name, member, bound, lambda who, public: group_commit.save([(BINDINGS.name, who, public)])
    )


def _member_of(disk: DiskStore) -> MemberKey:
    seed = disk.note(MEMBER)
    if seed is not None:
        return MemberKey(seed)
    member = new_member()
    disk.keep(MEMBER, member.seed)
    return member
