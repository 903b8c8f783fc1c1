"""The exception hierarchy, and the exit code of each class.

    BeforehandError            2
    ├── InputError             2   a file, a flag, a scenario or a disk is wrong
    │   └── InputErrors        2   several of them, shown together
    ├── LocalError             4   the calling program, here the command, misused a core
    └── RemoteError            4   a peer sent something that the protocol does not allow

A broken internal invariant is an `assert`, never one of these classes. Like any other exception, it
gives exit code 4. A violation (exit code 1) is a verdict and not an error.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import ClassVar

OBEYED = ("Cc", "Cs", "Zl", "Zp")
"""Unicode categories that `visible` replaces: control characters, surrogates, line separators."""
TURNS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""Bidirectional control characters, which make text look different from what it contains."""

EXIT_VALID = 0
EXIT_VIOLATION = 1
EXIT_BAD_INPUT = 2
EXIT_UNKNOWN = 3
EXIT_CRASH = 4
EXIT_INTERRUPTED = 130
EXIT_NO_READER = 141
EXIT_TERMINATED = 143
"""The last three follow the shell convention for signals: SIGINT (Ctrl-C), SIGPIPE, SIGTERM."""


class BeforehandError(Exception):
    """An error with the problem, its location, and a hint how to fix it.

    `str(error)` holds all three, on a line each.
    """

    exit_code: ClassVar[int] = EXIT_BAD_INPUT

    def __init__(self, problem: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(problem)
        self.problem, self.where, self.hint = problem, where, hint

    def __str__(self) -> str:
        lines = [visible(self.problem)]
        lines += [f"  at {visible(self.where)}"] if self.where else []
        lines += [f"hint: {visible(self.hint)}"] if self.hint else []
        return "\n".join(lines)

    def render(self) -> str:
        lines = [f"error: {visible(self.problem)}"]
        lines += [f"  at {visible(self.where)}"] if self.where else []
        lines += ["", f"hint: {visible(self.hint)}"] if self.hint else []
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        # Default pickling loses keyword arguments, and worker processes raise these errors too.
        return (_rebuild, (type(self), self.problem, self.where, self.hint))


def _rebuild(kind: type[BeforehandError], problem: str, where: str, hint: str) -> BeforehandError:
    return kind(problem, where=where, hint=hint)


class InputError(BeforehandError):
    """Invalid user input, refused before any work starts."""


class InputErrors(InputError):
    """All problems of one input together, so that the user can fix them at once."""

    def __init__(self, errors: Sequence[InputError]) -> None:
        super().__init__(f"{len(errors)} problems")
        self.errors = tuple(errors)

    def __str__(self) -> str:
        return "\n\n".join([visible(self.problem), *map(str, self.errors)])

    def render(self) -> str:
        return "\n\n".join(error.render() for error in self.errors)

    def __reduce__(self) -> tuple[object, ...]:
        return (InputErrors, (self.errors,))


class LocalError(BeforehandError):
    """The calling program used a core in a way that the core does not support."""

    exit_code = EXIT_CRASH


class RemoteError(BeforehandError):
    """A peer violated the protocol. The input in question changed no state."""

    exit_code = EXIT_CRASH


def visible(text: str, keep: str = "") -> str:
    """Replace terminal control characters in untrusted text by a replacement character.

    For example, a name that contains a line break must not look like a line of our output. keep:
    characters that are never replaced.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        "\N{REPLACEMENT CHARACTER}"
        if char not in keep and (unicodedata.category(char) in OBEYED or char in TURNS)
        else char
        for char in text
    )


def closest(word: str, known: Iterable[str]) -> str:
    """Return the most similar known word as a question; empty if none is similar."""
    import difflib

    found = difflib.get_close_matches(word, list(known), n=1)
    return f"did you mean `{found[0]}`?" if found else ""


def list_some(names: Sequence[str], most: int = 5) -> str:
    """Return the first names, and how many more there are."""
    shown = ", ".join(f"`{name}`" for name in names[:most])
    return f"{shown} and {len(names) - most:,} more" if len(names) > most else shown


def choose(word: str, known: Iterable[str]) -> str:
    """Return the hint for a wrong name where one of several was expected."""
    names = list(known)
    listed = ", ".join(f"`{name}`" for name in names)
    return f"{closest(word, names)} choose one of {listed}".strip()
