"""Ports for members that must be found again after a restart."""

from __future__ import annotations

import socket

import pytest


@pytest.fixture
def free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]
