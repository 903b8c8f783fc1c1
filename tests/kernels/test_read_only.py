"""An installation whose folders cannot be written works, and reports once that it keeps no code.

The package is copied to a folder that is read-only to the command and is its home folder too, so
that neither of Numba's places for machine code can be written. For root, permission bits mean
nothing: the test then mounts the folder read-only in a mount namespace of its own (`unshare`).
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import beforehand
from beforehand.cli import main

PACKAGE = Path(beforehand.__file__).parent
MOUNT = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" "$0" && exec "$@"'
TRACE = "a b 0 60\nb c 30 90\na c 80 120\n"
SECONDS_MAX = 300


def make_read_only(folder: Path) -> list[str]:
    """Return the words before a command to which the folder is read-only; else skip."""
    if os.geteuid() != 0:
        for path in [folder, *folder.rglob("*")]:
            path.chmod(path.stat().st_mode & ~0o222)
        return []
    if shutil.which("unshare") is None:
        pytest.skip("root may write anywhere, and there is no `unshare` for a read-only mount")
    before = ["unshare", "--mount", "sh", "-c", MOUNT, str(folder)]
    tried = subprocess.run([*before, "touch", str(folder / "new")], capture_output=True, text=True)
    if "Read-only file system" not in tried.stderr:
        pytest.skip(f"root may write anywhere, and mounting is refused: {tried.stderr.strip()}")
    return before


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Run a command of a read-only copy of the package; return the finished process."""
    folder = tmp_path_factory.mktemp("installed")
    shutil.copytree(
        PACKAGE, folder / "beforehand", ignore=shutil.ignore_patterns("__pycache__", "*.nb[ci]")
    )
    before = make_read_only(folder)
    temporary = tmp_path_factory.mktemp("temporary")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("NUMBA")},
        "PYTHONPATH": str(folder),
        "HOME": str(folder),
        "TMPDIR": str(temporary),
    }
    environment.pop("XDG_CACHE_HOME", None)

    def run(*arguments, **more):
        command = [*before, sys.executable, "-P", "-m", "beforehand", *arguments]
        return subprocess.run(
            command,
            env={**environment, **more},
            cwd=temporary,
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
        )

    trace, given = temporary / "trace.txt", temporary / "given.parquet"
    trace.write_text(TRACE)
    # With the code that this environment keeps: compiling it once more would take seconds.
    assert main(["simulate", str(trace), "--protocol", "causal", "--events", str(given)]) == 0
    yield run
    if not before:
        for path in [folder, *folder.rglob("*")]:
            path.chmod(path.stat().st_mode | 0o200)


@pytest.mark.parametrize(
    "arguments",
    [
        ("contacts", "trace.txt"),
        ("simulate", "trace.txt", "--protocol", "causal", "--events", "log.parquet"),
        ("verify", "given.parquet"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_command_of_a_read_only_installation_works_and_warns_once(installed, arguments):
    done = installed(*arguments)
    assert done.returncode in (0, 3), done.stderr
    assert done.stderr.count("compiled code cannot be kept") == 1, done.stderr
    assert "NotKept" not in done.stderr


def test_a_read_only_installation_keeps_code_in_the_folder_that_the_user_names(installed, tmp_path):
    done = installed("verify", "given.parquet", NUMBA_CACHE_DIR=str(tmp_path))
    assert done.returncode in (0, 3), done.stderr
    assert "cannot be kept" not in done.stderr
    assert any(tmp_path.rglob("*.nbi"))
