"""`beforehand chat` and `beforehand node` as processes on loopback."""

from __future__ import annotations

import re
import signal

import pytest

from beforehand.cli import main
from beforehand.commands.shell.terminal import printable
from beforehand.runtime.blocking import BlockingGroup
from beforehand.runtime.crypto.keys import new_group
from tests.runtime.fixtures.processes import Process, lines_of
from tests.waiting import SECONDS_MAX

HERE = ("--listen", "127.0.0.1:0", "--no-discover", "--durable", "os")


@pytest.fixture
def harbour(tmp_path):
    new_group("harbour").write(tmp_path / "harbour.key")
    return tmp_path


def beforehand(folder, *arguments):
    return Process("-m", "beforehand.cli", *arguments, *HERE, folder=folder)


def address_of(process):
    return re.search(r"127\.0\.0\.1:\d+", process.wait_for("127.0.0.1:"))[0]


def test_two_chats_link_and_print_a_summary_at_the_end(harbour):
    with beforehand(harbour, "chat", "harbour", "--name", "ann") as ann:
        peer = address_of(ann)
        with beforehand(harbour, "chat", "harbour", "--name", "bob", "--peer", peer) as bob:
            ann.wait_for("* bob is here")
            ann.type("fog at pier 4")
            assert bob.wait_for("ann: ") == "ann: fog at pier 4\n"
            bob.type("seen")
            assert ann.wait_for("bob: ") == "bob: seen\n"
            assert bob.stop(signal.SIGINT) == 0
            assert bob.wait_for("broadcast 1, shown 1; 0 wait for others")
        ann.wait_for("* bob is out of reach")
        assert ann.stop(signal.SIGTERM) == 0
        assert ann.wait_for("broadcast 1, shown 1")


def test_a_chat_prints_the_missing_causes_of_a_pending_message(harbour):
    """Bob has room for one message: his answer is there, and the question is not."""

    def member(name, *peers, **options):
        store, key = harbour / f"{name}.db", harbour / "harbour.key"
        options = {"listen": "127.0.0.1:0", "peers": peers, "discover": False, **options}
        return BlockingGroup("harbour", name=name, store=store, key=key, lifetime="20m", **options)

    with member("bob", capacity=1) as bob:
        peer = str(bob.addresses[0])
        with member("ann", peer) as ann:
            _, question = ann.broadcast(b"is it foggy?")
            assert bob.receive(10).payload == b"is it foggy?"
        bob.broadcast(b"it is")
        with beforehand(harbour, "chat", "harbour", "--name", "cid", "--peer", peer) as cid:
            told = cid.wait_for("* a message of bob waits for")
            assert f"waits for ann:{question}, 2" in told
            assert "it is" not in cid.text()
            with member("ann", address_of(cid)):
                cid.wait_for("bob: it is")
            text = cid.text()
            assert text.index("ann: is it foggy?") < text.index("bob: it is")


def test_a_member_with_a_taken_name_was_left_without_a_report(harbour):
    with beforehand(harbour, "chat", "harbour", "--name", "bob") as bob:
        peer = address_of(bob)
        with beforehand(harbour, "chat", "harbour", "--name", "ann", "--peer", peer):
            bob.wait_for("* ann is here")
        nobody = ("--peer", "127.0.0.1:9", "--peer", peer)
        arguments = ("--name", "ann", "--store", "other.db", *nobody)
        with beforehand(harbour, "chat", "harbour", *arguments) as other:
            assert "two members have one name" in other.wait_for("* bob: ")
            assert "no answer" in other.wait_for("* 127.0.0.1:9: ")
        bob.wait_for("`ann` is bound to another key; two members have one name")


def test_chat_wrote_no_event_log_so_its_group_could_not_be_verified(harbour, capsys):
    log = ("--log", "log")
    with beforehand(harbour, "chat", "harbour", "--name", "ann", *log) as ann:
        peer = address_of(ann)
        with beforehand(harbour, "chat", "harbour", "--name", "bob", "--peer", peer, *log) as bob:
            ann.wait_for("* bob is here")
            ann.type("fog at pier 4")
            bob.wait_for("ann: ")
            bob.type("seen")
            ann.wait_for("bob: ")
            assert bob.stop() == 0
        assert ann.stop() == 0
    assert main(["verify", str(harbour / "log")]) == 0, capsys.readouterr().out


def test_a_node_carries_broadcasts_from_a_pipe_to_a_later_member(harbour):
    with beforehand(harbour, "node", "harbour", "--name", "bus", "--json", "--log", "log") as bus:
        peer = address_of(bus)
        with beforehand(harbour, "chat", "harbour", "--name", "ann", "--peer", peer) as ann:
            ann.type("one")
            ann.process.stdin.write(b"two, without an end of line")
            ann.process.stdin.close()
            assert ann.process.wait(SECONDS_MAX) == 0, "the end of a pipe ends it"
        arguments = ("chat", "harbour", "--name", "eve", "--peer", peer)
        with beforehand(harbour, *arguments) as eve:
            assert eve.wait_for("ann: one")
            assert eve.wait_for("ann: two, without an end of line")
        assert bus.stop() == 0
        first, *_, last = lines_of(bus)
        assert (first["event"], last["event"], last["held"]) == ("start", "stop", 2)
        assert last["counters"]["messages"]["received"] == 2
    assert [path.suffix for path in (harbour / "log").iterdir()] == [".parquet"]


def test_bad_input_is_reported_before_anything_starts(harbour):
    with beforehand(harbour, "chat", "island", "--name", "ann") as ann:
        assert ann.process.wait(SECONDS_MAX) == 2
        assert "island.key" in ann.text()
    with beforehand(harbour, "node", "harbour", "--name", "bus", "--every", "often") as bus:
        assert bus.process.wait(SECONDS_MAX) == 2
        assert "not a duration" in bus.text()


def test_control_characters_of_a_message_do_not_reach_the_terminal():
    assert printable("bell \a, red \x1b[31m, fjord å".encode()) == "bell �, red �[31m, fjord å"
