"""Entry point of the command: handle SIGINT before the slow imports.

No module imports this one. At its top it imports only modules that Python has already loaded. Until
`main` runs, Python answers Ctrl-C with a traceback.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` takes milliseconds
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    arguments: None for those of this process; `main` then also replaces the process's SIGINT
    handler.
    """
    if arguments is None:
        _leave_on_interrupts()
    from beforehand.commands.shell.dispatch import dispatch

    return dispatch(arguments)


def _leave_on_interrupts() -> None:
    """Exit at once on SIGINT while modules load and, after the command, while the interpreter
    exits.

    The command installs its own handler in between. An ignored SIGINT (`nohup`) stays ignored.
    """
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _leave)


def _leave(*_: object) -> NoReturn:
    import os

    os.write(2, b"interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    sys.exit(main())
