"""Where a command begins: Ctrl-C is heard before anything that takes its time is imported.

Nobody imports this module, and it imports nothing at its top that Python has not loaded by then:
until `main` is called, Ctrl-C is answered with a traceback by Python itself.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` takes milliseconds
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code. arguments: None for those of this process, which is then ours to the end."""
    if arguments is None:
        _leave_on_interrupts()
    from beforehand.commands.dispatch import dispatch

    return dispatch(arguments)


def _leave_on_interrupts() -> None:
    """While modules are loaded and, after the command, while the interpreter ends: in between they
    are its own. Where they are ignored, as with `nohup`, they stay so."""
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _leave)


def _leave(*_: object) -> NoReturn:
    import os

    os.write(2, b"interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    sys.exit(main())
