"""The whole exception tree, and the exit code each branch means.

    BeforehandError            2
    ├── InputError             2   a file, a flag, a scenario or a disk is wrong
    │   └── InputErrors        2   several of them, shown together
    ├── LocalError             4   the calling program, here the command, misused a core
    └── RemoteError            4   a peer sent something that the protocol does not allow

A broken invariant of our own is an `assert`, never one of these; as any other exception, it gives
the exit code 4. A violation (1) is a verdict and no error.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import ClassVar

OBEYED = ("Cc", "Cs", "Zl", "Zp")
"""Kinds of characters that no name has: a terminal obeys them, or no stream takes them."""
TURNS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""What makes text run the other way, so that one thing is written and another one seen."""

EXIT_VALID = 0
EXIT_VIOLATION = 1
EXIT_BAD_INPUT = 2
EXIT_UNKNOWN = 3
EXIT_CRASH = 4
EXIT_INTERRUPTED = 130
EXIT_NO_READER = 141
EXIT_TERMINATED = 143
"""The last three as shells have them for what a signal ends: Ctrl-C, a reader who is gone, a polite
kill."""


class BeforehandError(Exception):
    """What is wrong, where, and what to do about it."""

    exit_code: ClassVar[int] = EXIT_BAD_INPUT

    def __init__(self, problem: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(problem)
        self.problem, self.where, self.hint = problem, where, hint

    def render(self) -> str:
        lines = [f"error: {visible(self.problem)}"]
        lines += [f"  at {visible(self.where)}"] if self.where else []
        lines += ["", f"hint: {visible(self.hint)}"] if self.hint else []
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword arguments do not survive the default pickling; a worker process raises these too.
        return (_rebuild, (type(self), self.problem, self.where, self.hint))


def _rebuild(kind: type[BeforehandError], problem: str, where: str, hint: str) -> BeforehandError:
    return kind(problem, where=where, hint=hint)


class InputError(BeforehandError):
    """The user's input is refused before any work starts."""


class InputErrors(InputError):
    """Every problem of one input, so that a user mends them in one go."""

    def __init__(self, errors: Sequence[InputError]) -> None:
        super().__init__(f"{len(errors)} problems")
        self.errors = tuple(errors)

    def render(self) -> str:
        return "\n\n".join(error.render() for error in self.errors)

    def __reduce__(self) -> tuple[object, ...]:
        return (InputErrors, (self.errors,))


class LocalError(BeforehandError):
    """The calling program asked a core for something that it does not do."""

    exit_code = EXIT_CRASH


class RemoteError(BeforehandError):
    """A peer broke the protocol. The input that carried it changed nothing."""

    exit_code = EXIT_CRASH


def visible(text: str, keep: str = "") -> str:
    """Text of others, with a mark in the place of what a terminal would obey: a name with a line
    break in it must not be taken for a line of ours. keep: what stays in any case."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        "\N{REPLACEMENT CHARACTER}"
        if char not in keep and (unicodedata.category(char) in OBEYED or char in TURNS)
        else char
        for char in text
    )


def closest(word: str, known: Iterable[str]) -> str:
    """A guess at what was meant, as a question; empty where nothing is like it."""
    import difflib

    found = difflib.get_close_matches(word, list(known), n=1)
    return f"did you mean `{found[0]}`?" if found else ""


def list_some(names: Sequence[str], most: int = 5) -> str:
    """The first of them, and how many more there are."""
    shown = ", ".join(f"`{name}`" for name in names[:most])
    return f"{shown} and {len(names) - most:,} more" if len(names) > most else shown


def choose(word: str, known: Iterable[str]) -> str:
    """A hint where one name of several was expected."""
    names = list(known)
    listed = ", ".join(f"`{name}`" for name in names)
    return f"{closest(word, names)} choose one of {listed}".strip()
