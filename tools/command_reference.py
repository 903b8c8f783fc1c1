"""A hook of mkdocs: write the page of the commands from their parser.

The page is made when the site is built, so that it cannot differ from what `--help` prints.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from beforehand.commands.shell.dispatch import CODES, make_parser

PAGE = "reference/commands.md"
WIDTH = "96"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page to the site."""
    files.append(File.generated(config, PAGE, content="\n".join(page())))
    return files


def page() -> Iterator[str]:
    """Yield the lines of the page: each command with what its `--help` prints."""
    yield "# Commands\n"
    yield "The output of `beforehand COMMAND --help`, for every command.\n"
    yield f"Exit codes: {CODES}.\n"
    for name, parser in commands(make_parser()):
        yield f"## {name}\n"
        yield f"```text\n{parser.format_help().strip()}\n```\n"


def commands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield each command with its parser, and those below it."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                yield name, command
                yield from ((f"{name} {below}", p) for below, p in commands(command))
