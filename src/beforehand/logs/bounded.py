"""Match regular expressions of users in a process of its own, so that their time is bounded.

A regular expression that comes with a file or a profile may take exponential time on a line. Python
cannot interrupt a match in its own thread, but it can end a process.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys

from beforehand.errors import InputError

SECONDS_MIN, SECONDS_PER_MIB = 10.0, 4.0
CHILD = """
import json, re, sys
asked = json.loads(sys.stdin.buffer.read())
found = re.compile(asked["pattern"], re.MULTILINE)
answer = [
    [[m.start(), m.end(), m.groupdict()] for m in found.finditer(text)] for text in asked["texts"]
]
sys.stdout.buffer.write(json.dumps(answer).encode())
"""

Match = tuple[int, int, dict[str, str | None]]
"""Start, end and named groups."""


def compile_user(pattern: str, where: str) -> re.Pattern[str]:
    """Compile a regular expression; named groups may be written as in JavaScript, `(?<name>`."""
    try:
        return re.compile(re.sub(r"\(\?<(?![=!])", "(?P<", pattern), re.MULTILINE)
    except (re.error, OverflowError, RecursionError) as error:
        hint = "regular expressions are those of Python, with named groups"
        raise InputError(f"not a regular expression: {error}", where=where, hint=hint) from error


def find_all(pattern: re.Pattern[str], text: str, where: str) -> list[Match]:
    """Return all matches that are not empty; raise InputError if that takes too long."""
    (found,) = find_in_each(pattern, [text], where)
    return [match for match in found if match[1] > match[0]]


def find_in_each(pattern: re.Pattern[str], texts: list[str], where: str) -> list[list[Match]]:
    """Return all matches in each text; raise InputError if that takes too long."""
    if not texts:
        return []
    asked = json.dumps({"pattern": pattern.pattern, "texts": texts}).encode()
    seconds = SECONDS_MIN + SECONDS_PER_MIB * len(asked) / (1 << 20)
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", CHILD],
            input=asked,
            capture_output=True,
            timeout=seconds,
            check=True,
        )
    except subprocess.TimeoutExpired as error:
        problem = f"the regular expression took more than {seconds:.0f} s"
        hint = "avoid repetitions inside repetitions, such as `(a*)*`"
        raise InputError(problem, where=where, hint=hint) from error
    except subprocess.CalledProcessError as error:
        problem = "the regular expression could not be matched"
        raise InputError(problem, where=where, hint=error.stderr.decode()[-200:]) from error
    return [[(start, end, groups) for start, end, groups in one] for one in json.loads(done.stdout)]
