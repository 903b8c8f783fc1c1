"""The store of one member: typed rows in their order, and faults of the disk."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.waiting import SECONDS_MAX

from beforehand.errors import InputError
from beforehand.protocols.contract.base import Message, MessageId
from beforehand.protocols.contract.tables import Store, Table
from beforehand.runtime.storage.group_commit import Batch, collect
from beforehand.runtime.storage.row_batches import checksum_of
from beforehand.runtime.storage.store import APPLICATION_ID, DiskStore
from beforehand.runtime.storage.wal import log_of

MESSAGES = Table("message", MessageId, Message)
COUNTS = Table("delivered", str, int)
HELLO = Message(("ann", 7), (("bob", 3),), b"hello", b"proof")


def opened(path: Path, group: str = "harbour", name: str = "ann", **options) -> DiskStore:
    return DiskStore(path, group=group, name=name, batched=MESSAGES, **options)


def write(store: DiskStore, *batch, **options) -> None:
    store.stage(*batch, **options)
    store.commit()


def saved(path: Path, *rows: tuple[str, object, object]) -> None:
    store = opened(path)
    write(store, {(table, key): value for table, key, value in rows})
    store.close()


def test_rows_come_back_typed(tmp_path):
    saved(tmp_path / "a.db", ("message", HELLO.id, HELLO), ("delivered", "ann", 7))
    store = opened(tmp_path / "a.db")
    assert store.load((MESSAGES, COUNTS)) == {"message": {HELLO.id: HELLO}, "delivered": {"ann": 7}}
    store.close()


def as_message(row: tuple[str, int, int | None]) -> tuple[str, object, object]:
    _, seq, value = row
    id = ("ann", seq)
    return "message", id, None if value is None else Message(id, (), bytes(20 * value))


NUMBERS = st.tuples(st.sampled_from("ab"), st.integers(0, 5), st.none() | st.integers(0, 9))
ROWS = NUMBERS | NUMBERS.map(as_message)


@settings(max_examples=60)
@given(steps=st.lists(st.lists(ROWS, max_size=6), max_size=12), cuts=st.sets(st.integers(0, 11)))
def test_the_store_equals_the_one_in_memory_for_any_batching(tmp_path_factory, steps, cuts):
    tables = (Table("a", int, int), Table("b", int, int), MESSAGES)
    model, path = Store(), tmp_path_factory.mktemp("store") / "a.db"
    store, batch = opened(path, durable="os"), Batch()
    for index, step in enumerate(steps):
        model.save(step)
        collect(batch, step)
        if index in cuts:
            write(store, batch.rows, batch.again, sync=False)
            batch = Batch()
    write(store, batch.rows, batch.again)
    store.close()
    again = opened(path)
    found, wanted = again.load(tables), model.load(tables)
    again.close()
    assert {name: list(rows.items()) for name, rows in found.items()} == {
        name: list(rows.items()) for name, rows in wanted.items()
    }


def test_many_rows_are_one_transaction(tmp_path):
    path = tmp_path / "a.db"
    saved(path, *(("delivered", f"n{i}", i) for i in range(1500)))
    saved(path, *(("delivered", f"n{i}", None) for i in range(0, 1500, 2)))
    store = opened(path)
    assert list(store.load((COUNTS,))["delivered"].values()) == list(range(1, 1500, 2))
    store.close()


def messages(count: int, size: int = 200) -> dict[tuple[str, MessageId], Message]:
    all_of = [Message(("ann", seq), (), bytes(size)) for seq in range(count)]
    return {("message", message.id): message for message in all_of}


def bundles(path: Path) -> list[int]:
    """How many messages each row of the file has."""
    with closing(sqlite3.connect(path)) as database:
        found = database.execute("SELECT value FROM rows WHERE kind = 'message' ORDER BY place")
        return [len(msgspec.msgpack.decode(content)) for (content,) in found]


@pytest.mark.parametrize(("size", "rows"), [(200, [64, 64, 22]), (20_000, [3] * 50)])
def test_messages_of_a_transaction_share_rows_that_are_not_too_long(tmp_path, size, rows):
    store = opened(tmp_path / "a.db")
    write(store, messages(150, size))
    assert store.load((MESSAGES,))["message"] == {
        id: m for (_, id), m in messages(150, size).items()
    }
    store.close()
    assert bundles(store.path) == rows


@pytest.mark.parametrize("is_loaded", [True, False])
def test_messages_are_removed_one_by_one_from_shared_rows(tmp_path, is_loaded):
    saved(tmp_path / "a.db", *((kind, id, m) for (kind, id), m in messages(150).items()))
    store = opened(tmp_path / "a.db")
    if is_loaded:
        store.load((MESSAGES,))
    write(store, {("message", ("ann", seq)): None for seq in (0, 3, *range(64, 128), 500)})
    write(store, {("message", ("ann", 0)): HELLO})  # what was the first of the first comes again
    left = [*(seq for seq in range(1, 150) if seq != 3 and not 64 <= seq < 128), 0]
    assert [seq for _, seq in store.load((MESSAGES,))["message"]] == left
    store.close()
    assert bundles(store.path) == [62, 22, 1]


def test_a_corrupted_message_is_detected_when_another_of_its_row_is_removed(tmp_path):
    path = tmp_path / "a.db"
    other = Message(("ann", 8), (), b"other")
    saved(path, ("message", HELLO.id, HELLO), ("message", other.id, other))
    store = opened(path)
    store.load((MESSAGES,))
    store._database.execute(
        "UPDATE rows SET value = CAST(replace(value, 'hello', 'jello') AS BLOB)"
    )
    with pytest.raises(InputError, match="a saved row of `message` has changed on the disk"):
        write(store, {("message", other.id): None})
    store.close()


def test_only_its_owner_can_read_it(tmp_path):
    saved(tmp_path / "a.db")
    assert (tmp_path / "a.db").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["a.db"], "nothing is left beside it"


def test_a_second_process_is_refused_while_the_store_is_open(tmp_path):
    store = opened(tmp_path / "a.db")
    script = (
        "import sys; from pathlib import Path; from beforehand.runtime.storage.store import "
        "DiskStore\n"
        "DiskStore(Path(sys.argv[1]), group='harbour', name='ann')"
    )
    other = subprocess.run(
        [sys.executable, "-c", script, str(store.path)], capture_output=True, text=True
    )
    with pytest.raises(InputError, match="open elsewhere"):
        opened(tmp_path / "a.db")
    write(store, {("delivered", "ann"): 1})
    store.close()
    assert "open elsewhere" in other.stderr
    opened(tmp_path / "a.db").close()


@pytest.mark.parametrize(
    ("owner", "problem"),
    [
        ({"group": "island"}, "the store of the group `harbour`, not of `island`"),
        ({"name": "bob"}, "the store of the name `ann`, not of `bob`"),
    ],
)
def test_a_store_of_another_member_is_refused(tmp_path, owner, problem):
    saved(tmp_path / "a.db")
    with pytest.raises(InputError, match=problem):
        opened(tmp_path / "a.db", **owner)


def write_noise(path: Path) -> None:
    path.write_bytes(os.urandom(8192))


def write_nothing(path: Path) -> None:
    path.write_bytes(b"")


def write_another_database(path: Path) -> None:
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE photographs (name TEXT)")
    database.close()


def write_a_newer_one(path: Path) -> None:
    saved(path)
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version=99")
    database.close()


def cut_it_short(path: Path) -> None:
    saved(path, *(("delivered", f"n{i}", i) for i in range(3000)))
    os.truncate(path, path.stat().st_size // 2 // 4096 * 4096)


def spoil_a_page(path: Path) -> None:
    saved(path, *(("delivered", f"n{i}", i) for i in range(3000)))
    with path.open("r+b") as opened:
        opened.seek(3 * 4096)
        opened.write(os.urandom(4096))


def flip_a_bit_in_a_row(path: Path) -> None:
    saved(path, ("message", HELLO.id, HELLO))
    content = path.read_bytes()
    assert content.count(b"hello") == 1
    path.write_bytes(content.replace(b"hello", b"jello"))


def change_a_type(path: Path) -> None:
    saved(path, ("message", HELLO.id, ["not", "a message"]))


def killed(path: Path, count: int) -> None:
    """A process that is killed after so many transactions leaves its log behind."""
    script = f"""
import os, signal
from pathlib import Path
from beforehand.runtime.storage.store import DiskStore
store = DiskStore(Path({str(path)!r}), group="harbour", name="ann")
for index in range({count}):
    store.stage({{("delivered", f"n{{index}}"): index}})
    store.commit()
os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", script], check=False, timeout=SECONDS_MAX)


def test_a_flipped_bit_in_the_log_silently_lost_all_later_rows(tmp_path):
    path = tmp_path / "a.db"
    killed(path, 30)
    log = log_of(path)
    whole, begun = log.read_bytes(), path.read_bytes()
    for at in (20, 60, len(whole) // 4, len(whole) // 2):
        log.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(InputError, match=r"transactions in `a\.db-wal` cannot be read"):
            opened(path)
        assert path.read_bytes() == begun, "it was left alone"
    for cut in (10, 40, len(whole) // 2 + 100, len(whole) - 1, len(whole)):
        path.write_bytes(begun)
        log.write_bytes(whole[:cut])  # as a crash may leave it
        opened(path).close()
    path.write_bytes(begun)
    log.write_bytes(whole)
    store = opened(path)
    assert len(store.load((COUNTS,))["delivered"]) == 30
    store.close()


def test_the_log_of_a_deleted_store_was_replayed_into_the_next_one(tmp_path):
    path = tmp_path / "a.db"
    killed(path, 3)
    path.unlink()
    with pytest.raises(InputError, match="the store is gone, and its log is still there") as told:
        opened(path)
    assert "a.db-wal" in told.value.hint
    log_of(path).unlink()
    store = opened(path)
    assert store.load((COUNTS,)) == {"delivered": {}}
    store.close()


def test_a_forked_process_checkpointed_the_log_of_its_parent(tmp_path):
    script = f"""
import gc, os
from pathlib import Path
from beforehand.errors import LocalError
from beforehand.runtime.storage.store import DiskStore
store = DiskStore(Path({str(tmp_path / "a.db")!r}), group="harbour", name="ann")
if os.fork() == 0:
    try:
        store.stage({{}})
    except LocalError:
        store.close()
        del store
        gc.collect()
        os._exit(7)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 7
store.stage({{("delivered", "ann"): 1}})
store.commit()
os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", script], timeout=SECONDS_MAX, check=False)
    assert done.returncode == -9
    store = opened(tmp_path / "a.db")
    assert store.load((COUNTS,)) == {"delivered": {"ann": 1}}
    store.close()


@pytest.mark.parametrize(
    ("harm", "problem"),
    [
        (write_noise, "not a store of beforehand"),
        (spoil_a_page, "malformed|broken|not a database"),
        (write_nothing, "an empty file, and no store"),
        (write_another_database, "not a store of beforehand"),
        (write_a_newer_one, "a newer version: its schema is 99"),
        (cut_it_short, "malformed|broken"),
        (flip_a_bit_in_a_row, "a saved row of `message` has changed on the disk"),
        (change_a_type, "a saved row of `message` cannot be read"),
        (lambda path: path.mkdir(), "cannot be used"),
    ],
)
def test_an_incomplete_store_file_is_refused_and_unchanged(tmp_path, harm, problem):
    path = tmp_path / "a.db"
    harm(path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(InputError, match=problem) as told:
        opened(path).load((MESSAGES, COUNTS))
    assert str(path) in told.value.where
    assert told.value.hint
    if harm is not flip_a_bit_in_a_row and harm is not change_a_type:
        assert (path.read_bytes() if path.is_file() else b"") == before


def test_a_killed_first_start_blocked_the_next_process_with_its_pid(tmp_path):
    """In a container every process has the same one."""
    (tmp_path / f".a.db.{os.getpid()}").write_bytes(b"half")
    opened(tmp_path / "a.db").close()


def test_a_link_to_a_store_that_did_not_exist_yet_failed(tmp_path):
    (tmp_path / "disk").mkdir()
    link, path = tmp_path / "a.db", tmp_path / "disk" / "ann.db"
    link.symlink_to(path)
    opened(link).close()
    assert link.is_symlink()
    killed(link, 3)
    path.unlink()
    with pytest.raises(InputError, match="its log is still there"):
        opened(link)


def test_a_missing_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be used"):
        opened(tmp_path / "nowhere" / "a.db")


def as_version_2(path: Path, *rows: tuple[str, object, object]) -> None:
    """A row for each message."""
    saved(path)
    encode = msgspec.msgpack.encode
    encoded = [(kind, encode(key), encode(value)) for kind, key, value in rows]
    with closing(sqlite3.connect(path)) as database:
        database.executemany(
            "INSERT INTO rows (kind, key, value, checksum) VALUES (?, ?, ?, ?)",
            [(*row, checksum_of(*row)) for row in encoded],
        )
        database.execute("ALTER TABLE about DROP COLUMN checksum")
        database.execute("PRAGMA user_version=2")
        database.commit()


def test_a_store_of_version_2_is_migrated_and_keeps_everything(tmp_path):
    path = tmp_path / "a.db"
    other = Message(("bob", 8), (), b"other")
    as_version_2(path, ("message", HELLO.id, HELLO), ("message", other.id, other))
    saved(path, ("message", HELLO.id, None), ("delivered", "ann", 7))
    store = opened(path)
    assert store.load((MESSAGES, COUNTS)) == {"message": {other.id: other}, "delivered": {"ann": 7}}
    store.close()


def test_a_store_of_version_2_that_has_changed_on_the_disk_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "a.db"
    as_version_2(path, ("message", HELLO.id, HELLO))
    content = path.read_bytes()
    assert content.count(b"hello") == 1
    path.write_bytes(content.replace(b"hello", b"jello"))
    for _ in range(2):
        with pytest.raises(InputError, match="a saved row of `message` has changed on the disk"):
            opened(path)


def test_a_store_of_version_1_is_migrated_and_keeps_everything(tmp_path):
    path = tmp_path / "a.db"
    database = sqlite3.connect(path)
    database.executescript(
        f"""
        PRAGMA application_id={APPLICATION_ID};
        PRAGMA user_version=1;
        CREATE TABLE about (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
        CREATE TABLE rows (place INTEGER PRIMARY KEY, kind TEXT NOT NULL, key BLOB NOT NULL,
                           value BLOB NOT NULL, UNIQUE (kind, key));
        INSERT INTO about VALUES
            ('group', CAST('harbour' AS BLOB)), ('name', CAST('ann' AS BLOB)), ('member', x'01');
        """
    )
    rows = [("message", HELLO.id, HELLO), ("delivered", "bob", 3), ("delivered", "ann", 7)]
    encode = msgspec.msgpack.encode
    database.executemany(
        "INSERT INTO rows (kind, key, value) VALUES (?, ?, ?)",
        [(table, encode(key), encode(value)) for table, key, value in rows],
    )
    database.commit()
    database.close()
    saved(path, ("delivered", "bob", 4))
    store = opened(path)
    assert store.load((MESSAGES,)) == {"message": {HELLO.id: HELLO}}
    assert list(store.load((COUNTS,))["delivered"].items()) == [("bob", 4), ("ann", 7)]
    assert store.note("member") == b"\x01"
    store.close()


def test_a_flipped_bit_in_the_seed_opened_as_another_key(tmp_path):
    path, seed = tmp_path / "a.db", bytes(range(7, 39))
    store = opened(path)
    store.keep("member", seed)
    store.close()
    content = path.read_bytes()
    assert content.count(seed) == 1
    path.write_bytes(content.replace(seed, bytes([seed[0] ^ 1]) + seed[1:]))
    store = opened(path)
    with pytest.raises(InputError, match="a saved row of `about` has changed on the disk"):
        store.note("member")
    store.close()
    path.write_bytes(content.replace(b"harbour", b"harbous"))
    with pytest.raises(InputError, match="`about` has changed"):
        opened(path)


def test_a_store_of_version_3_gets_checksums_for_its_facts(tmp_path):
    path = tmp_path / "a.db"
    store = opened(path)
    store.keep("member", b"seed")
    store.close()
    database = sqlite3.connect(path)
    database.execute("ALTER TABLE about DROP COLUMN checksum")
    database.execute("PRAGMA user_version=3")
    database.commit()
    database.close()
    for _ in range(2):
        store = opened(path)
        assert store.note("member") == b"seed"
        store.close()


def test_a_new_store_needed_a_folder_that_can_be_opened_which_windows_has_not(
    tmp_path, monkeypatch
):
    open_file = os.open

    def refuse_folders(path, *options, **named):
        if os.path.isdir(path):
            raise PermissionError(13, "Permission denied")
        return open_file(path, *options, **named)

    monkeypatch.setattr(os, "open", refuse_folders)
    monkeypatch.delattr(os, "O_DIRECTORY")
    opened(tmp_path / "a.db").close()


@pytest.fixture
def small_disk(tmp_path):
    """A disk of one megabyte."""
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], capture_output=True
    )
    if made.returncode:
        pytest.skip("may not mount a disk here")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(store: DiskStore) -> tuple[int, InputError]:
    """Return how many large messages were written, and the error of the next one."""
    for index in range(100):
        try:
            write(store, {("message", ("ann", index)): Message(("ann", index), (), bytes(50_000))})
        except InputError as error:
            return index, error
    raise AssertionError("the disk is larger than it should be")


def test_a_full_disk_is_reported_and_earlier_saves_are_intact(small_disk):
    store = opened(small_disk / "a.db")
    whole, told = fill(store)
    assert whole > 3
    assert "full" in told.problem
    assert "make room" in told.hint
    store.close()
    subprocess.run(["mount", "-o", "remount,size=8m", str(small_disk)], check=True)
    store = opened(small_disk / "a.db")
    assert list(store.load((MESSAGES,))["message"]) == [("ann", i) for i in range(whole)]
    store.close()


def test_an_unwritable_disk_is_reported_at_the_start(small_disk):
    saved(small_disk / "a.db")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(InputError, match="cannot be used"):
        opened(small_disk / "a.db")
    with pytest.raises(InputError, match="cannot be used"):
        opened(small_disk / "new.db")
