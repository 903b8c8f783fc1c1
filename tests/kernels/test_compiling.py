"""Machine code is kept, and never outlives the source it was made from."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import beforehand
from beforehand.kernels.compiling import CodeFiles, forget_stale

SOURCE = Path(beforehand.__file__).parents[1]
DRAW = """
import numpy as np
from beforehand.kernels.random.laws import EXPONENTIAL, draw_us
print(draw_us(np.uint64(2**63), EXPONENTIAL, 1e6, 0.0), len(draw_us.stats.cache_hits))
"""


def draw(source):
    done = subprocess.run(
        [sys.executable, "-c", DRAW],
        env={**os.environ, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    value, cache_hits = map(int, done.stdout.split())
    return value, cache_hits


def test_a_change_in_a_file_that_is_called_into_is_noticed(tmp_path):
    source = tmp_path / "src"
    shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("*.nbi", "*.nbc", "*.egg-info"))
    first, cache_hits = draw(source)
    assert not cache_hits
    assert draw(source) == (first, 1)
    draws = source / "beforehand" / "kernels" / "random" / "draws.py"
    text = draws.read_text()
    assert text.count("* 2.0**-53") == 1
    draws.write_text(text.replace("* 2.0**-53", "* 2.0**-54"))
    value, cache_hits = draw(source)
    assert not cache_hits
    assert value < first


def test_only_cache_files_older_than_a_source_file_are_removed(tmp_path):
    kept = tmp_path / "__pycache__"
    kept.mkdir()
    names = ("a.nbi", "a.1.nbc", "b.nbi", "a.pyc")
    for age, name in enumerate(names):
        (kept / name).touch()
        os.utime(kept / name, ns=(age, age))
    (tmp_path / "a.py").touch()
    os.utime(tmp_path / "a.py", ns=(2, 2))
    forget_stale(tmp_path)
    assert {path.name for path in kept.iterdir()} == {"b.nbi", "a.pyc"}


def test_a_change_in_a_folder_reaches_the_folders_below_it(tmp_path):
    below = tmp_path / "overlay"
    kept = below / "__pycache__" / "run.nbi"
    kept.parent.mkdir(parents=True)
    kept.touch()
    (below / "run.py").touch()
    (tmp_path / "heap.py").touch()
    for age, path in enumerate((below / "run.py", kept, tmp_path / "heap.py")):
        os.utime(path, ns=(age, age))
    forget_stale(tmp_path)
    assert not kept.exists()


def test_a_folder_without_files_has_nothing_stale(tmp_path):
    forget_stale(tmp_path / "in-a-zip")


def code_files(folder, stamp=1):
    return CodeFiles(str(folder), "walk-1.py311", stamp)


def test_two_processes_that_compiled_two_signatures_at_once_swapped_their_code(tmp_path):
    one, other = code_files(tmp_path), code_files(tmp_path)
    other._load_index = dict  # it looked before the first one was listed
    save_data = one._save_data

    def save_late(name, data):
        other.save("int64", "code for int64")
        save_data(name, data)

    one._save_data = save_late
    one.save("int32", "code for int32")
    assert one.load("int64") == "code for int64"
    assert one.load("int32") == "code for int32"


def test_code_of_an_earlier_source_was_read_before_the_new_one_was_written(tmp_path):
    code_files(tmp_path).save("int32", "old code")
    changed, read = code_files(tmp_path, stamp=2), []
    save_data = changed._save_data

    def save_late(name, data):
        read.append(code_files(tmp_path, stamp=2).load("int32"))
        save_data(name, data)

    changed._save_data = save_late
    changed.save("int32", "new code")
    assert read == [None]
    assert changed.load("int32") == "new code"
