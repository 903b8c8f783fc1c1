"""The package as a zip file, as `--ship` sends it to executors."""

from __future__ import annotations

import subprocess
import sys

from beforehand.spark.executors import code_here
from beforehand.spark.ship import pack

CHECK = """
import sys
sys.path.insert(0, sys.argv[1])
from beforehand.spark import executors, ship
import beforehand.observe.task
assert executors.__file__.startswith(sys.argv[1])
print(executors.code_here())
"""


def test_a_package_in_a_zip_file_has_the_digest_of_its_folder(tmp_path):
    archive = pack(tmp_path)
    command = [sys.executable, "-c", CHECK, str(archive)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == code_here()
    assert code_here().startswith("sources ")
    assert "numpy 2." in code_here()
    assert "numba 0." in code_here()
