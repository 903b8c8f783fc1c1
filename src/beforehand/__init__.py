"""Causal broadcast for networks that come and go: use it, study it, prove it.

Applications import from here. `beforehand.protocols` is for programs that drive protocol cores,
`beforehand.lab` for simulations and experiments.
"""

from __future__ import annotations

from beforehand.lazy import importer

TYPE_CHECKING = False
"""Replaces `typing.TYPE_CHECKING`, which takes long to import."""
if TYPE_CHECKING:
    from beforehand.errors import BeforehandError, InputError, InputErrors, LocalError, RemoteError
    from beforehand.observe.stream import observe as observe_events
    from beforehand.protocols.contract.base import MessageId, MessageStatus
    from beforehand.runtime.blocking import BlockingGroup
    from beforehand.runtime.config import GroupOptions, MemberOptions
    from beforehand.runtime.crypto.keys import new_group
    from beforehand.runtime.group import Group
    from beforehand.runtime.host import Host
    from beforehand.runtime.member import Pending
    from beforehand.runtime.overlay import Overlay
    from beforehand.runtime.queues.inbox import GroupMessage
    from beforehand.runtime.station import Station
    from beforehand.runtime.transport.limits import Limits
    from beforehand.verify.causal_assertion import assert_causal
    from beforehand.verify.verdict import Verdict, verify_events

__version__ = "0.1.0"

__all__ = [
    "BeforehandError",
    "BlockingGroup",
    "Group",
    "GroupMessage",
    "GroupOptions",
    "Host",
    "InputError",
    "InputErrors",
    "Limits",
    "LocalError",
    "MemberOptions",
    "MessageId",
    "MessageStatus",
    "Overlay",
    "Pending",
    "RemoteError",
    "Station",
    "Verdict",
    "assert_causal",
    "new_group",
    "observe_events",
    "verify_events",
]

_MODULES = {
    "BeforehandError": "errors",
    "BlockingGroup": "runtime.blocking",
    "Group": "runtime.group",
    "GroupMessage": "runtime.queues.inbox",
    "GroupOptions": "runtime.config",
    "Host": "runtime.host",
    "InputError": "errors",
    "InputErrors": "errors",
    "Limits": "runtime.transport.limits",
    "MemberOptions": "runtime.config",
    "LocalError": "errors",
    "MessageId": "protocols.contract.base",
    "MessageStatus": "protocols.contract.base",
    "Overlay": "runtime.overlay",
    "Pending": "runtime.member",
    "RemoteError": "errors",
    "Station": "runtime.station",
    "Verdict": "verify.verdict",
    "assert_causal": "verify.causal_assertion",
    "new_group": "runtime.crypto.keys",
    "verify": "verify",
    "observe_events": "observe.stream:observe",
    "verify_events": "verify.verdict",
}

__getattr__ = importer("beforehand", globals(), _MODULES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
