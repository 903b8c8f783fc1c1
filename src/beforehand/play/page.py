"""Write one HTML file: the template, the style, the modules and the pack of a run.

The file asks nothing of the network: its content security policy lets nothing else load.
"""

from __future__ import annotations

import base64
import json
import re
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from beforehand.errors import InputError
from beforehand.files import write_text
from beforehand.play.encode import PLAIN, encode
from beforehand.play.run import Run

PARTS = files("beforehand.play.web")
ENTRY = "main.js"
KIND = "kind"
"""The module that each kind of run replaces by its own."""
PAGE_BYTES_MAX = 25_000_000
IMPORT = re.compile(r'^import (.*) from "\./(.*)\.js";$', re.M)
UNREAD = re.compile(r"^ *(?://.*|/\*\*(?:[^*]|\*(?!/))*\*/)\n|^ +", re.M)
"""Comments and indentation. A page leaves them out: they are a seventh of its code."""
EXPORT = re.compile(r"^export (?:async )?(?:function\*?|class|const) ([\w$]+)", re.M)


def write_page(run: Run, path: Path) -> int:
    """Write the page of a run, and return its length in bytes."""
    page = build_page(run)
    size = len(page.encode())
    if size > PAGE_BYTES_MAX:
        raise InputError(
            f"the page would have {size / 1e6:.0f} MB, and 25 MB is the most that opens quickly",
            where=str(path),
            hint="show a part of the run: `--from 8h --to 9h`, or `--nodes a,b,c`",
        )
    write_text(path, page)
    return size


def build_page(run: Run) -> str:
    """Return the page of a run. Names of nodes reach it as JSON only, never as markup."""
    head, body = encode(run)
    return fill_page(head, body)


def fill_page(head: dict[str, Any], body: bytes) -> str:
    return Template((PARTS / "index.html").read_text()).substitute(
        title=escape(f"{head['title']}: {head['name']}"),
        style=(PARTS / "play.css").read_text(),
        head=_embedded_json(head),
        pack=base64.b64encode(body).decode(),
        script=bundle(ENTRY, str(head["kind"])),
    )


def _embedded_json(value: object) -> str:
    """Return JSON that cannot end the script element that it is in, whatever names it holds."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def bundle(entry: str, kind: str = PLAIN) -> str:
    """Return the modules as one script: each in a function, after those that it imports.

    kind: the module that takes the place of `kind.js`. A page has the code of its kind only.
    """
    done: dict[str, str] = {}
    kinds = {KIND: kind} if kind != PLAIN else {}

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise ValueError(f"modules import each other: {' -> '.join((*above, name))}")
        if name in done:
            return
        text = UNREAD.sub("", (PARTS / name).read_text())
        for _, other in IMPORT.findall(text):
            visit(f"{kinds.get(other, other)}.js", (*above, name))
        text = IMPORT.sub(
            lambda m: f"const {m[1].replace(' as ', ': ')} = ${kinds.get(m[2], m[2])};", text
        )
        exported = EXPORT.findall(text)
        if len(exported) < len(re.findall("^export ", text, re.M)):
            raise ValueError(f"{name} exports something without a single name")
        names = ", ".join(exported)
        text = re.sub(r"^export ", "", text, flags=re.M)
        module = f"${Path(name).stem}"
        done[name] = f"const {module} = (() => {{\n{text}\nreturn {{ {names} }};\n}})();"

    visit(entry, ())
    return "\n".join(done.values())
