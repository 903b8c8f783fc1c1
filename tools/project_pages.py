"""A hook of mkdocs: choose the pages of the site, and add the documents of the repository to it.

The site links to them as `project/NAME.md`. In the repository the pages link to `../NAME.md`.
"""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

FOLDER = "project"
NAMES = ("BENCHMARKS.md", "CHANGELOG.md", "CONTRIBUTING.md", "DESIGN.md")
OUTSIDE = re.compile(rf"\]\((?:\.\./)+({'|'.join(map(re.escape, NAMES))})")
IN_DOCS = re.compile(r"\]\(docs/")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the documents, with their links as they are seen from their place on the site."""
    root = Path(config.config_file_path).parent
    for name in NAMES:
        text = IN_DOCS.sub("](../", (root / name).read_text(encoding="utf-8"))
        files.append(File.generated(config, f"{FOLDER}/{name}", content=text))
    return files


def on_post_build(config: MkDocsConfig) -> None:
    """Remove the page for missing addresses: only a server at the root of a domain can use it."""
    (Path(config.site_dir) / "404.html").unlink(missing_ok=True)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links that leave `docs/` to the pages of the site."""
    depth = page.file.src_uri.count("/")
    return OUTSIDE.sub(rf"]({'../' * depth}{FOLDER}/\1", markdown)
