"""The tables of plans, each in a module of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from bedplate import registry

SOURCES = Path(__file__).resolve().parents[3] / "src"
# In forks of one process, which has loaded what takes long.
EACH_FIRST = """
import importlib, os, sys, pydantic
for name in sys.argv[1:]:
    if os.fork() == 0:
        importlib.import_module(name)
        os._exit(0)
    print(name, os.wait()[1], flush=True)
"""


def test_each_type_can_be_imported_before_all_others() -> None:
    names = [f"{folder}.plan" for folder in registry.WORKLOADS.values()]
    done = subprocess.run(
        [sys.executable, "-c", EACH_FIRST, *names],
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert [f"{name} 0" for name in names] == done.stdout.splitlines(), done.stderr
