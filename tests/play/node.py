"""The modules of the page in Node, without a browser: decode a pack, ask the model."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from beforehand.play.encode import encode
from beforehand.play.page import PARTS
from beforehand.play.run import Run

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="Node is not installed")
SCRIPT = """
import { readFileSync } from "node:fs";
import { readPack } from "./pack.js";
import { Model } from "./model.js";
const { head, body, code } = JSON.parse(readFileSync(0, "utf8"));
const columns = await readPack(head, body);
const model = head.names ? new Model(head, columns) : null;
// Anything that a kind does to the page is accepted; what it answers is asked.
const page = new Proxy(function () {}, {
  get: (_, name) => (name === Symbol.iterator ? () => [].values() : page),
  apply: () => page,
  set: () => true,
});
globalThis.document = page;
const kind = model && head.kind !== "plain" ? await import(`./${head.kind}.js`) : null;
kind?.KIND.setup(model);
const answer = new Function("columns", "model", "kind", `return (${code});`)(columns, model, kind);
console.log(JSON.stringify(answer));
"""


def ask_node(folder: Path, head: dict[str, Any], body: bytes, code: str) -> Any:
    """Return the value of a JavaScript expression over `columns`, `model` and `kind`."""
    assert NODE
    for part in PARTS.iterdir():
        if part.name.endswith(".js"):
            (folder / part.name).write_text(part.read_text())
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "ask.js").write_text(SCRIPT)
    given = {"head": head, "body": base64.b64encode(body).decode(), "code": code}
    answer = subprocess.run(
        [NODE, "ask.js"],
        cwd=folder,
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


def ask_model(folder: Path, run: Run, code: str) -> Any:
    return ask_node(folder, *encode(run), code)
