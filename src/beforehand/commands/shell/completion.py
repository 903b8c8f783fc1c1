"""`beforehand completion`: print a script that completes commands and options in a shell."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping

from beforehand.commands.shell.console import Commands, add_command
from beforehand.errors import EXIT_VALID

EXAMPLE = "beforehand completion bash >> ~/.bashrc"

BASH = """\
_beforehand() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" words="{commands}"
    if [ "$COMP_CWORD" -gt 1 ]; then
        case "${{COMP_WORDS[1]}}" in
{cases}
            *) words="" ;;
        esac
    fi
    # Where nothing of ours fits, the shell completes files.
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _beforehand beforehand
"""
ZSH = "autoload -Uz compinit bashcompinit && compinit && bashcompinit\n"


def add_parser(commands: Commands) -> None:
    summary = "print the completion script for a shell"
    parser = add_command(commands, "completion", summary, EXAMPLE)
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))
    parser.set_defaults(run=run, parsers=commands.choices)


def run(args: argparse.Namespace) -> int:
    parsers: Mapping[str, argparse.ArgumentParser] = args.parsers
    sys.stdout.write(_fish(parsers) if args.shell == "fish" else _bash(parsers, args.shell))
    return EXIT_VALID


def _bash(parsers: Mapping[str, argparse.ArgumentParser], shell: str) -> str:
    cases = [
        f'            {name}) words="{" ".join([*_choices(parser), *_options(parser)])}" ;;'
        for name, parser in parsers.items()
    ]
    script = BASH.format(commands=" ".join(parsers), cases="\n".join(cases))
    return (ZSH if shell == "zsh" else "") + script


def _fish(parsers: Mapping[str, argparse.ArgumentParser]) -> str:
    lines = []
    for name, parser in parsers.items():
        about = _quoted(parser.description or "")
        lines.append(f"complete -c beforehand -n __fish_use_subcommand -f -a {name} -d {about}")
        seen = f'complete -c beforehand -n "__fish_seen_subcommand_from {name}"'
        lines += [f"{seen} -a {choice}" for choice in _choices(parser)]
        for option, action in _options(parser).items():
            lines.append(f"{seen} -l {option[2:]} -d {_quoted(action.help or '')}")
    return "\n".join(lines) + "\n"


def _options(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    """Return the options that the help shows, by their long names."""
    shown = [action for action in parser._actions if action.help != argparse.SUPPRESS]
    return {name: a for a in shown for name in a.option_strings if name.startswith("--")}


def _choices(parser: argparse.ArgumentParser) -> list[str]:
    """Return the choices of the positional arguments."""
    places = [action for action in parser._actions if not action.option_strings]
    return [str(choice) for action in places for choice in action.choices or ()]


def _quoted(text: str) -> str:
    plain = text.replace("%%", "%").replace("\\", "\\\\").replace("'", "\\'")
    return f"'{plain}'"
