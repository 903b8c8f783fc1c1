"""The format of the event log: its facts are written once, and files on disk depend on them."""

import ast
import json

from beforehand import events
from tests.test_tidy import PACKAGE, read_modules


def lists_of_names(text):
    for node in ast.walk(ast.parse(text)):
        items = getattr(node, "elts", None) or getattr(node, "keys", None) or ()
        yield {item.value for item in items if isinstance(item, ast.Constant)}


def test_codes_in_stores_and_logs_keep_their_meaning():
    assert events.KINDS[:5] == events.NODE_KINDS[:5]
    assert [events.KINDS[code] for code in (events.EXPIRE, events.SEND, events.RECOVER)] == [
        *("expire", "send", "recover")
    ]
    assert (events.NODE_KINDS[events.START], events.NODE_KINDS[events.STOP]) == ("start", "stop")
    assert (events.BROADCAST, events.DELIVER, events.START, events.STOP) == (0, 2, 5, 6)


def test_metadata_contain_the_given_facts_only():
    written = events.metadata_of("r", events.About(events=0, names=("ä",)))
    assert written == {
        "beforehand": json.dumps({"runs": {"r": {"events": 0, "names": ["ä"]}}}),
    }


def test_kinds_of_events_and_their_metadata_key_are_written_once():
    # `logs` names the kinds of events of other systems, and `diagram` has a sign for each of
    # theirs too. These are no facts of this format.
    others = ("logs.", "diagram.")
    modules = {n: text for n, text in read_modules(PACKAGE).items() if not n.startswith(others)}
    found = [
        name
        for name, text in modules.items()
        if any({"receive", "deliver"} <= names for names in lists_of_names(text))
        or 'METADATA = "' in text
    ]
    assert found == ["events"]
