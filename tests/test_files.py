"""Files are written completely or not at all, never in place of something else, and a failure is an
error."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from beforehand.errors import InputError
from beforehand.files import (
    check_file_target,
    check_folder_target,
    read_parquet,
    read_text,
    replaced,
    write_text,
)


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "a" / "x.txt"
    with replaced(path) as partial:
        partial.write_text("old")

    def fail_halfway():
        with replaced(path) as partial:
            partial.write_text("half of the n")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_halfway()
    assert path.read_text() == "old"
    assert [file.name for file in path.parent.iterdir()] == ["x.txt"]


def test_a_full_disk_is_reported_and_leaves_no_partial_file(tmp_path):
    def fill():
        with replaced(tmp_path / "x.txt") as partial:
            partial.write_text("half of it")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(InputError, match="cannot write it: No space left on device") as told:
        fill()
    assert told.value.where == str(tmp_path / "x.txt")
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_write_leaves_nothing_behind(tmp_path):
    def interrupt():
        with replaced(tmp_path / "x.txt") as partial:
            partial.write_text("half of it")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupt()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_a_device_a_pipe_and_links_to_them_are_never_replaced(tmp_path):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name, target in (("to-folder", "folder"), ("to-device", "/dev/null"), ("to-pipe", "pipe")):
        (tmp_path / name).symlink_to(target)
    before = sorted(tmp_path.iterdir())
    for name in ("folder", "pipe", "to-folder", "to-device", "to-pipe", "/dev/null", "/dev/full"):
        with pytest.raises(InputError, match=r"a folder, where|not a regular file"):
            write_text(tmp_path / name, "x")
        with pytest.raises(InputError, match=r"a folder, where|not a regular file"):
            check_file_target(tmp_path / name)
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "to-device").is_symlink()


def test_a_write_to_a_link_replaces_its_target(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there/x.txt")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there" / "x.txt").read_text() == "new"


def test_places_where_nothing_can_be_written_are_refused_before_any_work(tmp_path):
    (tmp_path / "file").write_text("")
    for path, problem in (
        (tmp_path / "none" / "x", "no such folder"),
        (tmp_path / "file" / "x", "no such folder"),
    ):
        with pytest.raises(InputError, match=problem):
            check_file_target(path)
    for path in (tmp_path / "file", tmp_path / "file" / "deep" / "er"):
        with pytest.raises(InputError, match="not a folder"):
            check_folder_target(path)
    check_folder_target(tmp_path / "a" / "b" / "c")
    assert not (tmp_path / "a").exists()


def test_a_folder_that_is_read_only_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)  # for root every folder can be written to
    with pytest.raises(InputError, match="cannot be written to"):
        check_file_target(tmp_path / "x")
    with pytest.raises(InputError, match="cannot be written to"):
        check_folder_target(tmp_path / "x")


@pytest.mark.parametrize("name", [".", "/", "new", "there"])
def test_a_folder_is_tried_from_inside_and_the_root_of_the_system_has_no_other_error(
    tmp_path, monkeypatch, name
):
    """`report /` ended as a fault of this program, and `--out .` wrote into the folder above."""
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path)
    tried = []
    monkeypatch.setattr("beforehand.files._refuse_read_only", lambda _: None)
    monkeypatch.setattr("beforehand.files._try_to_write", lambda file, _: tried.append(file.parent))
    check_folder_target(Path(name))
    inside = {"/": Path("/"), "there": tmp_path / "there"}
    assert tried == [inside.get(name, tmp_path)]


def test_a_byte_that_changed_in_a_parquet_file_is_noticed(tmp_path):
    path = tmp_path / "x.parquet"
    table = pa.table({"a": list(range(1000))})
    pq.write_table(table, path, compression="none", use_dictionary=False, write_page_checksum=True)
    assert read_parquet(path).equals(table)
    content = bytearray(path.read_bytes())
    content[1000] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match="not a Parquet file, or a broken one") as told:
        read_parquet(path)
    assert told.value.where == str(path)


def test_an_unreadable_file_is_reported_with_its_path(tmp_path):
    (tmp_path / "latin.txt").write_bytes("caf\xe9".encode("latin-1"))
    for name, problem in (
        ("none.txt", "no such file"),
        ("latin.txt", "not UTF-8 text: byte 0xe9 at 3"),
        (".", "cannot read it: Is a directory"),
    ):
        with pytest.raises(InputError, match=problem) as told:
            read_text(tmp_path / name)
        assert told.value.where == str(tmp_path / name)
