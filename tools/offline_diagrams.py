"""A hook of mkdocs: ship the Mermaid script with the site, so that diagrams need no network.

The package `mermaidx` of the extra `docs` carries the file `mermaid.min.js` of Mermaid 11.16.0,
unchanged. The site gets a copy. A page loads it only if it has a diagram. If the package is
missing or carries another file, the build says so, and the diagrams stay readable as text.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import re
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url

PACKAGE, SUFFIX = "mermaidx", "assets/mermaid.js"
SHA256 = "74d7c46dabca328c2294733910a8aa1ed0c37451776e8d5295da38a2b758fb9b"
"""Of `dist/mermaid.min.js` in the npm package mermaid 11.16.0."""
SCRIPT = "assets/mermaid.min.js"
PARTICIPANT_PX, CHART_PX = 115, {"flowchart": 480, "stateDiagram": 640}
"""The least widths of a participant of a sequence, and of charts: text stays readable."""
DIAGRAM = re.compile(r'<pre class="mermaid">(.*?)</pre>', re.DOTALL)


def find_script() -> tuple[Path | None, str]:
    """Return the path of the script, or None and the reason why the site cannot have it."""
    try:
        files = importlib.metadata.files(PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        return None, f"the package {PACKAGE} is not installed: pip install 'beforehand[docs]'"
    for file in files:
        path = Path(str(file.locate()))
        if str(file).endswith(SUFFIX) and path.is_file():
            if hashlib.sha256(path.read_bytes()).hexdigest() == SHA256:
                return path, ""
            return None, f"{path} is not Mermaid 11.16.0: install the version in constraints.txt"
    return (
        None,
        f"the package {PACKAGE} carries no {SUFFIX}: install the version in constraints.txt",
    )


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the script to the site, or say why it cannot be added."""
    path, reason = find_script()
    if path is None:
        sys.stderr.write(f"diagrams stay text: {reason}\n")
    else:
        files.append(File.generated(config, SCRIPT, abs_src_path=str(path)))
    return files


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let a page with diagrams load the script; without the script, show the diagrams as text."""
    if not DIAGRAM.search(html):
        return html
    if files.get_file_from_path(SCRIPT) is None:  # else the theme would load it from a server
        return DIAGRAM.sub(r'<pre class="diagram-source">\1</pre>', html)
    framed = DIAGRAM.sub(_framed, html)
    address = get_relative_url(SCRIPT, page.url)
    return f'{framed}<script src="{address}" defer></script>'


def _framed(diagram: re.Match[str]) -> str:
    """Return a diagram in a frame that scrolls where the diagram would become unreadably small."""
    text = diagram[1]
    participants = len(re.findall(r"^ *participant ", text, re.MULTILINE))
    chart_px = next((px for kind, px in CHART_PX.items() if kind in text), 0)
    least_px = participants * PARTICIPANT_PX or chart_px
    frame = f'<div class="diagram" style="--least-width: {least_px}px">'
    return f'{frame}<pre class="mermaid">{text}</pre></div>'
