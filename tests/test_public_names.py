"""What users import is decided here, not by accident."""

import importlib.metadata

import beforehand


def test_the_public_names_are_pinned():
    assert beforehand.__all__ == [
        "Barrier",
        "BeforehandError",
        "Core",
        "Counters",
        "Epidemic",
        "Fate",
        "InputError",
        "Lifetimes",
        "LocalError",
        "Message",
        "MessageId",
        "Needs",
        "NodeId",
        "Outbox",
        "RemoteError",
        "Unordered",
        "Vector",
    ]
    assert all(hasattr(beforehand, name) for name in beforehand.__all__)


def test_the_version_is_the_packages():
    assert beforehand.__version__ == importlib.metadata.version("beforehand")
