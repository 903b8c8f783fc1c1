"""The examples on a group do what they say."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import re
import shlex
from pathlib import Path

import pytest
from tests.runtime.fixtures.processes import Process

from beforehand.commands.shell.dispatch import make_parser
from beforehand.runtime.crypto.keys import new_group

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_two_chat(tmp_path):
    new_group("harbour").write(tmp_path / "harbour.key")
    script = EXAMPLES / "chat.py"
    with Process(script, "harbour", "ann", "-", folder=tmp_path) as ann:
        address = ann.wait_for("listening at").split()[-1]
        with Process(script, "harbour", "bob", address, folder=tmp_path) as bob:
            ann.type("who is there?")
            assert bob.wait_for("ann: ") == "ann: who is there?\n"
            bob.type("bob")
            assert ann.wait_for("bob: ") == "bob: bob\n"


def test_three_editors_of_one_text_never_park_an_operation(tmp_path):
    editors = asyncio.run(load("shared_text").main(tmp_path))
    (text,) = {str(editor.text) for editor in editors}
    assert all(words in text for words in ("Fog at pier 4.", "Bring a lamp.", "ferry"))
    assert [editor.put_aside for editor in editors] == [0, 0, 0]


def command_of_unit():
    text = (EXAMPLES / "beforehand-node.service").read_text()
    return shlex.split(re.search(r"^ExecStart=/usr/bin/env beforehand (.*)$", text, re.M)[1])


def command_of_container():
    text = (EXAMPLES / "Containerfile").read_text()
    parts = [json.loads(found) for found in re.findall(r"^(?:ENTRYPOINT|CMD) (.*)$", text, re.M)]
    assert parts[0][0] == "beforehand"
    return [*parts[0][1:], *parts[1]]


@pytest.mark.parametrize("command", [command_of_unit, command_of_container])
def test_the_commands_of_unit_and_container_files_exist(command):
    args = make_parser().parse_args(command())
    assert args.group == "harbour"
    assert args.listen == [":7400"]
