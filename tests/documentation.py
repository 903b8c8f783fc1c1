"""Build the documentation site, for the tests that read it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).parent.parent


def build_site(folder: Path, config: Path = REPO / "mkdocs.yml", **environment: str) -> str:
    """Build the site into a folder, with every warning an error. Return what the build printed."""
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet"]
    command += ["--config-file", str(config), "--site-dir", str(folder)]
    variables = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "COLUMNS": "96", **environment}
    done = subprocess.run(command, cwd=REPO, env=variables, capture_output=True, text=True)
    printed = done.stdout + done.stderr
    assert done.returncode == 0, printed
    return printed
