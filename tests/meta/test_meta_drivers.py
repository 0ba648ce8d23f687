"""The native drivers follow the house too: short functions, and no warning from the compiler."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_FUNCTION_LINES_MAX = 70
_WARNINGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread")
_INCLUDE = re.compile(r"^#include <([\w./-]+)>", re.MULTILINE)
# A definition starts in the first column with a name and has its parameters; a structure, an
# initialiser (`= {`) and a macro do not.
_START = re.compile(r"^[A-Za-z_].*\(")


class _Judge(Protocol):
    def __call__(self, findings: Sequence[str]) -> None: ...


class _Source(Protocol):
    path: str
    text: str


def long_c_functions(path: str, text: str) -> list[str]:
    """Functions of more than 70 lines, found by the layout: head and closing brace in column one."""
    findings = []
    head: tuple[int, str] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("}") and head is not None:
            start, name = head
            if number - start + 1 > _FUNCTION_LINES_MAX:
                findings.append(
                    f"{path}:{start} {name} has {number - start + 1} lines; split it at a step that has a name"
                )
            head = None
        elif head is None and _START.match(line) and not line.rstrip().endswith(";"):
            head = (number, line.partition("(")[0].split()[-1].lstrip("*"))
    return findings


def compiler_findings(path: Path) -> str:
    """What gcc says about the file; empty when it says nothing. Nothing is written."""
    completed = subprocess.run(
        ["gcc", *_WARNINGS, "-o", "/dev/null", "-c", str(path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return completed.stderr if completed.returncode or completed.stderr else ""


def _missing_headers(text: str) -> list[str]:
    """System headers of a library that is not installed here; a driver's builder names its package."""
    missing = []
    for header in _INCLUDE.findall(text):
        probe = subprocess.run(
            ["gcc", "-E", "-o", "/dev/null", "-x", "c", "-"],
            input=f"#include <{header}>\n",
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        if probe.returncode:
            missing.append(header)
    return missing


needs_compiler = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a compiler: package gcc")


def test_c_functions_are_short(sources: Sequence[_Source], judge: _Judge) -> None:
    ours = [source for source in sources if source.path.endswith((".c", ".h"))]
    judge([finding for source in ours for finding in long_c_functions(source.path, source.text)])


@needs_compiler
def test_drivers_compile_without_a_warning(sources: Sequence[_Source], repository: Path) -> None:
    skipped = []
    for source in sources:
        if source.path.startswith("drivers/") and source.path.endswith(".c"):
            findings = compiler_findings(repository / source.path)
            if findings and (missing := _missing_headers(source.text)):
                skipped.append(f"{source.path} needs {', '.join(missing)}")
                continue
            assert findings == "", source.path
    if skipped:
        pytest.skip("; ".join(skipped))


def _planted(lines: int) -> str:
    body = "\n".join(["    x++;"] * (lines - 3))
    return f"static int\nplanted(int x)\n{{\n{body}\n}}\n"


def test_a_planted_long_function_is_found() -> None:
    findings = long_c_functions("a.c", _planted(71))
    assert findings == ["a.c:2 planted has 71 lines; split it at a step that has a name"]
    assert long_c_functions("a.c", _planted(70)) == []


def test_a_planted_long_function_with_its_brace_on_the_head_is_found() -> None:
    body = "\n".join(["    x++;"] * 80)
    assert len(long_c_functions("a.c", f"int f(void);\nstatic void *planted(int x) {{\n{body}\n}}\n")) == 1


def test_a_long_table_is_no_function() -> None:
    rows = "\n".join(["    {1, 2},"] * 100)
    assert long_c_functions("a.c", f"static const struct row rows[] = {{\n{rows}\n}};\n") == []


@needs_compiler
def test_a_planted_warning_is_found(tmp_path: Path) -> None:
    planted = tmp_path / "planted.c"
    planted.write_text("int f(void) { int unused; return 0; }\n", encoding="utf-8")
    assert "unused" in compiler_findings(planted)
    planted.write_text("int f(void);\nint f(void) { return 0; }\n", encoding="utf-8")
    assert compiler_findings(planted) == ""
