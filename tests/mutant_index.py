"""Finds the function that a mutant changes and the test that must kill it, both by name.

A mutant names no file, so that code and tests can move without it:

- `Waiting.admit`, `read_trace` or `Net`: a function or class by its qualified name, functions
  inside of functions too (`outer.inner`). Where several modules define that name, the end of the
  module's name comes first: `waiting:Waiting.admit`, or `mobile.station:Station.hear`.
- `vector:`: code of a module outside of its functions.
- `test_a_name` or `test_a_name[parameter]`: a test. Where several files define that test, the end
  of the file's path comes first: `test_net::test_a_name`, or `check/test_fuzz::test_a_name`.
- `test_waiting_growth::`: all tests of a file.

Text is compared without the indentation that a function has because of where it stands.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Span(NamedTuple):
    """Whole lines of a file: `text[start:end]`, indented by `margin`."""

    start: int
    end: int
    margin: str


def spans(text: str) -> dict[str, list[Span]]:
    """Where each function and class stands, by qualified name; several with one name, as a property
    and its setter, are several spans. The whole file has the empty name."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = {"": [Span(0, len(text), "")]}

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            name = prefix
            if isinstance(child, DEFINITIONS):
                name = f"{prefix}{child.name}"
                first = min(line.lineno for line in (child, *child.decorator_list))
                start, end = starts[first - 1], starts[child.end_lineno or first]
                margin = " " * child.col_offset
                # The text of a string may stand further left than the code around it.
                lines = text[start:end].splitlines()
                if any(line.strip() and not line.startswith(margin) for line in lines):
                    margin = ""
                found.setdefault(name, []).append(Span(start, end, margin))
                name += "."
            visit(child, name)

    visit(ast.parse(text), "")
    return found


def dedented(text: str, span: Span) -> str:
    lines = text[span.start : span.end].splitlines(keepends=True)
    return "".join(line.removeprefix(span.margin) for line in lines)


def ends_with(path: str, suffix: str, separator: str) -> bool:
    return f"{separator}{path}".endswith(f"{separator}{suffix}")


class Index:
    """The functions below `src/` and the tests below `tests/` of a repository."""

    def __init__(self, repo: Path) -> None:
        self._repo = repo
        self._spans: dict[str, dict[str, list[Span]]] = {}

    @cached_property
    def modules(self) -> dict[str, str]:
        """Path from the top of the repository by dotted name, without the name of the package."""
        package = next(path.parent for path in (self._repo / "src").glob("*/__init__.py"))
        modules = {}
        for path in sorted(package.rglob("*.py")):
            parts = path.relative_to(package).with_suffix("").parts
            name = parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts
            modules[".".join(name)] = path.relative_to(self._repo).as_posix()
        return modules

    @cached_property
    def texts(self) -> dict[str, str]:
        return {module: (self._repo / path).read_text() for module, path in self.modules.items()}

    @cached_property
    def _names(self) -> dict[str, set[str]]:
        named = re.compile(r"^ *(?:async def|def|class) (\w+)", re.MULTILINE)
        return {module: set(named.findall(text)) for module, text in self.texts.items()}

    @cached_property
    def tests(self) -> dict[str, set[str]]:
        """Names of tests by the path of their file, from `tests/` and without suffix."""
        folder = self._repo / "tests"
        return {
            path.relative_to(folder).with_suffix("").as_posix(): set(
                re.findall(r"^ *(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE)
            )
            for path in sorted(folder.rglob("test_*.py"))
        }

    def defined(self, module: str) -> dict[str, list[Span]]:
        if module not in self._spans:
            self._spans[module] = spans(self.texts[module])
        return self._spans[module]

    def homes(self, place: str) -> Iterator[str]:
        """The modules that a place may mean."""
        suffix, colon, name = place.rpartition(":")
        last = name.rpartition(".")[2]
        for module, names in self._names.items():
            if colon and not ends_with(module, suffix, "."):
                continue
            # Only files that might define it are parsed.
            if not name or (last in names and name in self.defined(module)):
                yield module

    def mutate(self, place: str, before: str, after: str) -> tuple[str, str]:
        """(path of the file, its text after the change)"""
        homes = list(self.homes(place))
        assert homes, f"no function or class is called `{place}`"
        assert len(homes) == 1, f"`{place}` is in {' and '.join(homes)}: begin with `module:`"
        text = self.texts[homes[0]]
        places = self.defined(homes[0])[place.rpartition(":")[2]]
        count = sum(dedented(text, span).count(before) for span in places)
        assert count == 1, f"{count} times in `{place}`, and must be there once:\n{before}"
        [span] = [span for span in places if before in dedented(text, span)]
        changed = textwrap.indent(dedented(text, span).replace(before, after), span.margin)
        return self.modules[homes[0]], text[: span.start] + changed + text[span.end :]

    def killer(self, test: str) -> str:
        """Return the id of the test for pytest."""
        plain, bracket, parameter = test.partition("[")
        suffix, _, name = plain.rpartition("::")
        homes = [
            path
            for path, names in self.tests.items()
            if (not name or name in names) and (not suffix or ends_with(path, suffix, "/"))
        ]
        assert homes, f"no test is called `{test}`"
        assert len(homes) == 1, f"`{test}` is in {' and '.join(homes)}: begin with `file::`"
        return f"tests/{homes[0]}.py" + (f"::{name}{bracket}{parameter}" if name else "")
