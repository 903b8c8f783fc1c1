"""What users import is decided here, not by accident."""

import importlib.metadata
import subprocess
import sys

import pytest

import beforehand


def test_the_public_names_are_pinned():
    assert beforehand.__all__ == [
        "EVERYBODY",
        "Barrier",
        "BeforehandError",
        "BlockingGroup",
        "Broadcaster",
        "BroadcasterDriver",
        "Codec",
        "Core",
        "Counters",
        "Dial",
        "Driver",
        "Epidemic",
        "Group",
        "GroupMessage",
        "Guarantees",
        "Host",
        "InputError",
        "Lifetimes",
        "Link",
        "Linked",
        "LocalError",
        "Message",
        "MessageId",
        "MessageStatus",
        "Needs",
        "NodeId",
        "Observer",
        "Options",
        "Order",
        "Outbox",
        "Overlay",
        "Port",
        "Proofs",
        "RemoteError",
        "Spec",
        "StampClock",
        "Stamped",
        "Store",
        "Table",
        "Timer",
        "Unordered",
        "VCube",
        "Vector",
        "observe_events",
        "run_one",
        "simulate_runs",
        "verify_events",
        "verify_runs",
    ]
    assert all(hasattr(beforehand, name) for name in beforehand.__all__)


def test_the_version_is_the_packages():
    assert beforehand.__version__ == importlib.metadata.version("beforehand")


def test_the_names_that_need_more_than_the_cores_are_imported_when_they_are_asked_for():
    script = (
        "import sys, beforehand; early = {'numpy', 'pyspark', 'pyarrow'} & set(sys.modules); "
        "beforehand.run_one; print(early or 'none', 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "none True", done.stderr
    with pytest.raises(AttributeError, match="no attribute `nonsense`"):
        beforehand.nonsense  # noqa: B018


def test_what_is_not_installed_is_told_with_the_extra_that_brings_it():
    code = "import sys; sys.modules['nacl'] = None\nfrom beforehand import Group"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "`beforehand.Group` needs `nacl`: pip install 'beforehand[runtime]'" in done.stderr
