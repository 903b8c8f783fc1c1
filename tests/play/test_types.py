"""The modules of the page have consistent types, by the TypeScript compiler and their JSDoc."""

import shutil
import subprocess

import pytest

from beforehand.play.page import PARTS

TSC = shutil.which("tsc")
OPTIONS = (
    *("--allowJs", "--checkJs", "--noEmit", "--target", "es2024", "--lib", "esnext,dom"),
    *("--module", "es2022", "--types", "", "--pretty", "false", "--strict"),
)
WHOLLY_TYPED = ("orders.js", "pack.js")
"""Modules in which every parameter has a type; in the others some may be of any type."""
LOOSE = ("--noImplicitAny", "false", "--strictNullChecks", "false", "--useUnknownInCatchVariables")


@pytest.mark.skipif(TSC is None, reason="the TypeScript compiler is missing: npm i -g typescript")
@pytest.mark.parametrize("modules", [(), WHOLLY_TYPED], ids=["all", "wholly typed"])
def test_the_types_of_the_modules_agree(modules):
    assert TSC
    files = modules or sorted(path.name for path in PARTS.iterdir() if path.name.endswith(".js"))
    options = OPTIONS if modules else (*OPTIONS, *LOOSE, "false")
    command = [TSC, *options, *(str(PARTS / name) for name in files)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (found.returncode, found.stdout) == (0, "")
