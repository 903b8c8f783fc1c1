"""The lines that `beforehand host` prints about its cell."""

import asyncio
from types import SimpleNamespace

import pytest

from beforehand.commands.nodes import host as command
from beforehand.runtime.radio.datagrams import AirCounters


def told(monkeypatch, capsys, **air):
    """Return the line of a host in the cell of north with these counters."""
    monkeypatch.setattr(command, "LOOK_SECONDS", 0.001)
    counters = SimpleNamespace(air=AirCounters(**air))
    host = SimpleNamespace(name="ann", station="north", is_connected=True, counters=counters)
    terminal = command.Terminal(SimpleNamespace())
    terminal._host = host

    async def look():
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(terminal._look(), 0.05)

    asyncio.run(look())
    return capsys.readouterr().err.splitlines()


def test_a_host_prints_its_cell_once(monkeypatch, capsys):
    assert told(monkeypatch, capsys) == ["* in the cell of north"]


def test_a_restarted_station_is_reported_once(monkeypatch, capsys):
    (first, _) = told(monkeypatch, capsys, restarted=1)
    assert first == "* the station was restarted: messages that it kept for this host are lost"


@pytest.mark.parametrize(("count", "is_told"), [(3, False), (4, True)])
def test_another_host_with_the_same_name_is_reported_once(monkeypatch, capsys, count, is_told):
    lines = told(monkeypatch, capsys, namesakes=count)
    assert [line for line in lines if "uses the name ann" in line] == lines[: int(is_told)]
