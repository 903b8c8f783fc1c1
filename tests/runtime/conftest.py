"""Ports for members that must be found again after a restart."""

from __future__ import annotations

import math
import socket

import pytest

from beforehand.runtime.storage.group_commit import GroupCommit


@pytest.fixture
def free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]


@pytest.fixture
def slow_disk(monkeypatch):
    """Commits are a thread's work, as they are where the disk is slow."""
    make = GroupCommit.__init__

    def make_slow(self, *arguments, **options):
        make(self, *arguments, **options)
        self._apart_until = math.inf

    monkeypatch.setattr(GroupCommit, "__init__", make_slow)
