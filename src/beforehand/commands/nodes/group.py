"""`beforehand group`: create, hand over and rotate the key of a group."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from beforehand.commands.shell.console import Commands, add_command, add_json, note, print_json
from beforehand.errors import EXIT_VALID, InputError
from beforehand.units import format_duration, parse_duration

if TYPE_CHECKING:
    from beforehand.runtime.crypto.keys import GroupKey

EXAMPLE = "beforehand group new harbour"
SUFFIX = ".key"
OVERLAP_US_MAX = 365 * 86_400_000_000


def add_parser(commands: Commands) -> None:
    parser = add_command(
        commands, "group", "create, hand over and rotate the key of a group", EXAMPLE
    )
    actions = parser.add_subparsers(title="actions", required=True, metavar="ACTION")

    new = add_command(
        actions, "new", "make a group: write a key file that only its owner can read", EXAMPLE
    )
    new.add_argument("name", help="name of the group, the same for all members")
    new.add_argument("--out", type=Path, metavar="FILE", help="the key file (default: NAME.key)")
    _finish(new, _new)

    summary = "print a key as one word, to hand over on a private channel"
    invite = add_command(actions, "invite", summary, "beforehand group invite harbour.key")
    invite.add_argument("key", type=Path, help="the key file")
    _finish(invite, _invite)

    example = "beforehand group join beforehand1-kqdoYXJ... --out harbour.key"
    join = add_command(actions, "join", "write the key file of an invite", example)
    join.add_argument("invite", help="the word that `beforehand group invite` printed")
    join.add_argument("--out", type=Path, metavar="FILE", help="the key file (default: NAME.key)")
    join.add_argument(
        "--replace", action="store_true", help="replace the group's key file after a rotation"
    )
    _finish(join, _join)

    summary = "give a group a new secret: members with only the old one are excluded"
    example = "beforehand group rotate harbour.key --overlap 7d"
    rotate = add_command(actions, "rotate", summary, example)
    rotate.add_argument("key", type=Path, help="the key file; it is replaced")
    rotate.add_argument(
        "--overlap",
        default="0s",
        metavar="TIME",
        help="accept members with the present secret for so long; default: 0s, as after a theft",
    )
    rotate.add_argument(
        "--no-answer",
        action="store_true",
        help="forget the secrets that have ended: their holders are not told",
    )
    _finish(rotate, _rotate)


def _finish(parser: argparse.ArgumentParser, run: object) -> None:
    add_json(parser)
    parser.set_defaults(run=run)


def _new(args: argparse.Namespace) -> int:
    from beforehand.runtime.crypto.keys import new_group

    path = _write(new_group(args.name), args)
    note(
        f"hand it over with `beforehand group invite {path}`; every holder of the key is a "
        "member of the group"
    )
    return EXIT_VALID


def _join(args: argparse.Namespace) -> int:
    from beforehand.runtime.crypto.keys import GroupKey

    key = GroupKey.from_invite(args.invite)
    path: Path = args.out or _default_path(key.name)
    if not args.replace:
        _write(key, args)
        return EXIT_VALID
    if (old := GroupKey.read(path)).name != key.name:
        problem = f"the key of the group `{old.name}`, not of `{key.name}`"
        raise InputError(problem, where=str(path), hint="choose another file with `--out`")
    key.write(path, replace=True)
    _print_key(key, path, args)
    return EXIT_VALID


def _invite(args: argparse.Namespace) -> int:
    from beforehand.runtime.crypto.keys import GroupKey

    key = GroupKey.read(args.key)
    if args.json:
        print_json({"name": key.name, "invite": key.invite()})
    else:
        print(key.invite())
    note("it holds the whole secret: send it only over a private channel")
    return EXIT_VALID


def _rotate(args: argparse.Namespace) -> int:
    from beforehand.runtime.crypto.keys import GroupKey

    overlap_us = parse_duration(args.overlap, where="--overlap")
    if overlap_us > OVERLAP_US_MAX:
        raise InputError(f"too long: `{args.overlap}`", where="--overlap", hint="at most 365d")
    key = GroupKey.read(args.key).rotate(overlap_us, is_quiet=args.no_answer)
    key.write(args.key, replace=True)
    _print_key(key, args.key, args)
    until = f"in {format_duration(overlap_us)}" if overlap_us else "from now on"
    note(
        "hand it to the remaining members: `beforehand group invite`, and `group join --replace` "
        "at theirs. Nodes read a changed file while they run; restart stations and hosts. "
        f"Nodes with the old key alone are refused {until}"
    )
    return EXIT_VALID


def _write(key: GroupKey, args: argparse.Namespace) -> Path:
    path: Path = args.out or _default_path(key.name)
    key.write(path)
    _print_key(key, path, args)
    return path


def _default_path(name: str) -> Path:
    if Path(name).name != name or name.startswith("."):
        raise InputError(f"`{name}` cannot be the name of a file", hint="choose one with `--out`")
    return Path(f"{name}{SUFFIX}")


def _print_key(key: GroupKey, path: Path, args: argparse.Namespace) -> None:
    if args.json:
        print_json({"name": key.name, "file": str(path)})
    else:
        print(path)
