"""The documentation site is built without a warning, and names every public name and command."""

import html
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import beforehand
import beforehand.lab
import beforehand.protocols
from beforehand.commands.shell.dispatch import COMMANDS

REPO = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the built site. Its configuration makes every warning an error."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "COLUMNS": "96"}
    done = subprocess.run(command, cwd=REPO, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_the_site_documents_every_public_name(site):
    page = (site / "reference" / "api.html").read_text()
    headings = set(re.findall(r'id="(beforehand[\w.]*)"', page))
    for module in (beforehand, beforehand.lab, beforehand.protocols):
        names = {f"{module.__name__}.{name}" for name in module.__all__}
        assert names - headings == set()


def test_the_site_shows_the_help_of_every_command(site):
    page = html.unescape((site / "reference" / "commands.html").read_text())
    for command in COMMANDS:
        name = command.__name__.rpartition(".")[2]
        assert f"usage: beforehand {name} " in page, name


def test_every_page_of_the_site_loads_nothing_from_elsewhere(site):
    """A reader without a network sees the whole page; diagrams are the exception."""
    for page in sorted(site.rglob("*.html")):
        text = page.read_text()
        loaded = re.findall(r'<(?:script|img|iframe)[^>]+src="(https?:[^"]+)"', text)
        loaded += re.findall(r'<link[^>]+rel="stylesheet"[^>]+href="(https?:[^"]+)"', text)
        assert loaded == [], page.name
