"""Completion, in the shells that this machine has."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from beforehand.cli import main
from beforehand.commands.shell.dispatch import COMMANDS

ASK = """
{script}
COMP_WORDS=(beforehand {words}) COMP_CWORD={at}
_beforehand
echo "${{COMPREPLY[@]}}"
"""


def script_for(shell, capsys):
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("words", "at", "expected"),
    [
        ("ver", 1, "verify"),
        ("run --no", 2, "--no-report"),
        ("run city.toml --dr", 3, "--dry-run"),
        ("completion z", 2, "zsh"),
        ("group ro", 2, "rotate"),
        ("nonsense --x", 2, ""),
    ],
)
def test_bash_completes_commands_options_and_choices(capsys, words, at, expected):
    asked = ASK.format(script=script_for("bash", capsys), words=words, at=at)
    done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True)
    assert (done.stdout.strip(), done.stderr) == (expected, "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_and_its_options_are_in_the_script(capsys, shell):
    script = script_for(shell, capsys)
    for name in [command.__name__.rpartition(".")[2] for command in COMMANDS]:
        assert name in script
    assert ("-l dry-run" if shell == "fish" else "--dry-run") in script
    if shutil.which(shell):
        checked = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True)
        assert (checked.returncode, checked.stderr) == (0, "")


def test_another_shell_is_refused(capsys):
    assert main(["completion", "tcsh"]) == 2
    assert "choose one of `bash`, `zsh`, `fish`" in capsys.readouterr().err
