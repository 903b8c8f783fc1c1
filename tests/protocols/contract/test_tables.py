"""Rows go to storage as bytes and come back with their types, or not at all."""

import msgspec
import pytest

from beforehand.errors import InputError
from beforehand.protocols.contract.base import Message, MessageId, NodeId
from beforehand.protocols.contract.tables import Store, Table

SEQS = Table("seqs", NodeId, int)
MESSAGES = Table("messages", MessageId, Message)
FLAGS = Table("flags", str, bool)


def test_keys_and_values_come_back_with_their_types():
    store = Store()
    message = Message(("a", 1), (("b", 2), (3, -4)), b"x", b"proof")
    store.save([("messages", ("a", 1), message), ("seqs", 3, 7), ("seqs", "3", 8)])
    rows = store.load((MESSAGES, SEQS))
    assert rows == {"messages": {("a", 1): message}, "seqs": {3: 7, "3": 8}}
    assert type(rows["messages"]["a", 1]) is Message


def test_a_row_that_is_saved_again_is_replaced():
    store = Store()
    store.save([("seqs", "a", 1)])
    store.save([("seqs", "a", 2)])
    assert store.load((SEQS,)) == {"seqs": {"a": 2}}
    assert store.count() == 1


def test_none_deletes_a_row():
    store = Store()
    store.save([("seqs", "a", 1), ("seqs", "b", 1)])
    store.save([("seqs", "a", None), ("seqs", "nobody", None)])
    assert store.load((SEQS,)) == {"seqs": {"b": 1}}
    assert store.count() == 1


@pytest.mark.parametrize("value", [0, False, "", b"", (), -1])
def test_an_empty_value_does_not_delete_a_row(value):
    store = Store()
    store.save([("any", "k", value)])
    assert store.load((Table("any", str, type(value)),)) == {"any": {"k": value}}


def test_the_last_save_of_a_step_counts():
    store = Store()
    store.save([("seqs", "a", 1), ("seqs", "a", None), ("seqs", "b", None), ("seqs", "b", 2)])
    assert store.load((SEQS,)) == {"seqs": {"b": 2}}


def test_rows_come_back_in_the_order_in_which_they_were_first_saved():
    store = Store()
    store.save([("seqs", key, 0) for key in ("c", "a", "b")])
    store.save([("seqs", "c", 1)])
    assert list(store.load((SEQS,))["seqs"]) == ["c", "a", "b"]
    store.save([("seqs", "c", None), ("seqs", "c", 2)])
    assert list(store.load((SEQS,))["seqs"]) == ["a", "b", "c"]


def test_a_table_that_was_never_written_is_empty():
    assert Store().load((SEQS, FLAGS)) == {"seqs": {}, "flags": {}}


def test_tables_do_not_mix():
    store = Store()
    store.save([("seqs", "k", 1), ("flags", "k", True)])
    assert store.load((FLAGS,)) == {"flags": {"k": True}}


def test_saved_rows_do_not_alias_the_objects_they_were_made_of():
    store, value = Store(), [1]
    store.save([("lists", "k", value)])
    value.append(2)
    assert store.load((Table("lists", str, list[int]),)) == {"lists": {"k": [1]}}


@pytest.mark.parametrize(
    ("key", "value"), [("k", "no number"), (("a", 1), 1), ("k", 1.5)], ids=["value", "key", "kind"]
)
def test_a_row_that_does_not_fit_its_table_is_refused(key, value):
    store = Store()
    store.save([("seqs", key, value)])
    with pytest.raises(InputError, match="a saved row of `seqs` cannot be read") as caught:
        store.load((SEQS,))
    assert "another version" in caught.value.hint


def test_rows_of_another_process_are_plain_bytes():
    """A row in a database consists of msgpack only."""
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(Message(("a", 1), (), b""))) == [
        ["a", 1],
        [],
        b"",
        b"",
        0,
    ]


def test_a_message_that_was_saved_before_there_were_stamps_is_read():
    old = msgspec.msgpack.encode([["a", 1], [], b"hi", b"proof"])
    read = msgspec.msgpack.decode(old, type=Message)
    assert read == Message(("a", 1), (), b"hi", b"proof", stamp=0)


def test_callbacks_after_a_save_run_at_once():
    done = []
    Store().after(lambda: done.append(True))
    assert done
