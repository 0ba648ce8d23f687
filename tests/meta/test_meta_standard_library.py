"""`run-visit` starts in a guest that has nothing but Python: its rooms import the standard library only.

import-linter reads the imports; this imports every module for real, without site-packages, so that
nothing which happens at import time (a registry, a lazy import called early) escapes.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class _Judge(Protocol):
    def __call__(self, findings: Sequence[str]) -> None: ...


_ROOMS = ("host", "filesystem", "engines", "probe", "visit", "model")
_MODULES_BESIDE = ("bedplate", "bedplate.errors", "bedplate.registry", "bedplate.units")

# Prints one line per module that cannot be imported, and per foreign module that came along.
_IMPORT_ALL = """
import importlib, sys
sys.path.insert(0, sys.argv[1])
for name in sys.argv[2:]:
    try:
        importlib.import_module(name)
    except Exception as error:
        print(f"{name}: {type(error).__name__}: {error}")
allowed = sys.stdlib_module_names | {"bedplate", "__main__"}
for name in sorted({module.partition(".")[0] for module in sys.modules} - allowed):
    print(f"{name}: is not of the standard library")
"""


def modules_of(source: Path) -> list[str]:
    """Every module of the rooms that a visit may enter, from the folder that holds `bedplate`."""
    found = []
    package = source / "bedplate"
    rooms = [package / room for room in _ROOMS]
    # An engine's table is read where there is pydantic, before a visit.
    files = [
        path
        for room in rooms
        for path in sorted(room.rglob("*.py"))
        if (room.name, path.name) != ("engines", "plan.py")
    ]
    # Of a workload what a visit runs, and with it what that imports.
    for file in ("model.py", "run.py", "run/*.py"):
        files += sorted(package.glob(f"workloads/*/{file}"))
    # Of cuts all but what has intervals beside it.
    files += [path for path in sorted(package.glob("cuts/*.py")) if path.name != "runs.py"]
    for path in files:
        parts = path.relative_to(source).with_suffix("").parts
        found.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return [*_MODULES_BESIDE, *found]


def import_findings(source: Path, modules: list[str]) -> list[str]:
    """What a Python without site-packages says when it imports `modules` from `source`."""
    completed = subprocess.run(
        [sys.executable, "-I", "-S", "-B", "-c", _IMPORT_ALL, str(source), *modules],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={"PATH": os.defpath},
    )
    return completed.stdout.splitlines()


def test_rooms_of_a_visit_import_the_standard_library_only(repository: Path, judge: _Judge) -> None:
    source = repository / "src"
    modules = modules_of(source)
    assert {f"bedplate.{room}" for room in _ROOMS} <= set(modules)
    judge(import_findings(source, modules))


def _plant(folder: Path, text: str) -> list[str]:
    room = folder / "bedplate" / "host"
    room.mkdir(parents=True)
    for path in (folder / "bedplate" / "__init__.py", room / "__init__.py"):
        path.write_text("", encoding="utf-8")
    (room / "planted.py").write_text(text, encoding="utf-8")
    modules = [name for name in modules_of(folder) if name not in _MODULES_BESIDE[1:]]
    assert modules == ["bedplate", "bedplate.host", "bedplate.host.planted"]
    return import_findings(folder, modules)


@pytest.mark.parametrize("library", ["click", "rich", "pydantic", "polars", "numpy"])
def test_a_planted_import_of_a_library_is_found(tmp_path: Path, library: str) -> None:
    # The library is there for this process, so only the clean interpreter can make it fail.
    pytest.importorskip(library)
    findings = _plant(tmp_path, f"import {library}\n")
    assert len(findings) == 1
    assert findings[0].startswith(f"bedplate.host.planted: ModuleNotFoundError: No module named '{library}'")


def test_a_planted_import_that_hides_its_failure_is_found(tmp_path: Path) -> None:
    (tmp_path / "foreign.py").write_text("", encoding="utf-8")
    planted = "try:\n    import foreign\nexcept ImportError:\n    foreign = None\n"
    assert _plant(tmp_path, planted) == ["foreign: is not of the standard library"]


def test_a_standard_import_passes(tmp_path: Path) -> None:
    assert _plant(tmp_path, "import sqlite3, tomllib, subprocess\n") == []
