"""The documentation site is built without a warning, and names every public name and command."""

import html
import re
import sys
from urllib.parse import unquote, urldefrag

import beforehand
import beforehand.lab
import beforehand.protocols
from beforehand.commands.shell.dispatch import COMMANDS
from tests.documentation import REPO, build_site


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
    """A reader without a network sees the whole page. tests/browser asks a browser the same."""
    for page in sorted(site.rglob("*.html")):
        text = page.read_text()
        loaded = re.findall(r'<(?:script|img|iframe)[^>]+src="(https?:[^"]+)"', text)
        loaded += re.findall(r'<link[^>]+rel="stylesheet"[^>]+href="(https?:[^"]+)"', text)
        assert loaded == [], page.name


def dead_links(site):
    """Yield each page with a link to a file or a place in a page that is not there."""
    texts = {page: page.read_text() for page in site.rglob("*.html") if page.name != "404.html"}
    places = {page: {*re.findall(r' id="([^"]+)"', text), ""} for page, text in texts.items()}
    for page, text in texts.items():
        for link in re.findall(r'<a [^>]*href="([^"]*)"', text):
            path, place = urldefrag(html.unescape(link))
            if re.match(r"[a-z]+:", path):
                continue
            target = (page.parent / unquote(path)).resolve() if path else page
            if not target.is_file() or unquote(place) not in places.get(target, {place}):
                yield page.name, link


def test_no_link_of_the_site_is_dead(site):
    assert list(dead_links(site)) == []


def test_a_dead_link_is_found(tmp_path):
    links = ("here.html", "gone.html", "here.html#top", "here.html#gone", "#gone", "https://a.b/")
    page = '<p id="top">' + "".join(f'<a class="x" href="{link}">' for link in links)
    (tmp_path / "here.html").write_text(page)
    assert [link for _, link in dead_links(tmp_path)] == ["gone.html", "here.html#gone", "#gone"]


def test_without_the_script_diagrams_stay_text_and_the_build_warns(tmp_path):
    """The theme would otherwise load the script from a server."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("```mermaid\nsequenceDiagram\n    a->>b: m\n```\n")
    (tmp_path / "mkdocs.yml").write_text(
        f"INHERIT: {REPO / 'mkdocs.yml'}\nplugins: [search]\nextra_css: []\nnav: [index.md]\n"
        f"docs_dir: docs\nhooks: [{REPO / 'tools' / 'offline_diagrams.py'}]\n"
    )
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "sitecustomize.py").write_text(
        "import importlib.metadata as metadata\n"
        "files = metadata.files\n"
        "metadata.files = lambda name: [] if name == 'mermaidx' else files(name)\n"
    )
    path = ":".join([str(tmp_path / "hidden"), *filter(None, sys.path)])
    printed = build_site(tmp_path / "site", tmp_path / "mkdocs.yml", PYTHONPATH=path)
    assert "diagrams stay text: the package mermaidx carries no assets/mermaid.js" in printed
    page = (tmp_path / "site" / "index.html").read_text()
    assert "sequenceDiagram" in page
    assert 'class="mermaid"' not in page
    assert "mermaid.min.js" not in page
