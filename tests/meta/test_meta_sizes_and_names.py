"""Functions and files stay small enough to read at once; a module's name says what it holds."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Protocol

import pytest
from tests.support.tools.syntax import nodes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_FUNCTION_LINES_MAX = 70
_FILE_LINES_MAX = 500
_MODULES_MAX = 30
# The locked requirements and the licence are not written by hand.
_LONG_FILES_ALLOWED = {
    "requirements/runtime.txt": "compiled",
    "requirements/development.txt": "compiled",
    "LICENSE": "not ours to shorten",
}
_SCRIPT_COLUMNS_MAX = 140
_CODE_SUFFIXES = frozenset({".py", ".c", ".h", ".sh", ".js", ".css", ".html", ".jinja"})
_EMPTY_NAMES = frozenset({"utils", "util", "helpers", "helper", "manager", "misc", "common"})


class _Judge(Protocol):
    def __call__(self, findings: Sequence[str]) -> None: ...


class _Source(Protocol):
    path: str
    text: str


def long_functions(path: str, text: str) -> list[str]:
    """Functions of more than 70 lines, decorators not counted."""
    return [
        f"{path}:{node.lineno} {node.name} has {lines} lines; split it at a step that has a name"
        f" (at most {_FUNCTION_LINES_MAX})"
        for node in nodes(text)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > _FUNCTION_LINES_MAX
    ]


def long_file(path: str, text: str) -> list[str]:
    """A code file of more than 500 lines, one whose suffix says code or that starts with #!."""
    lines = len(text.splitlines())
    is_code = PurePosixPath(path).suffix in _CODE_SUFFIXES or text.startswith("#!")
    if not is_code or path in _LONG_FILES_ALLOWED or lines <= _FILE_LINES_MAX:
        return []
    return [f"{path} has {lines} lines; give its second job a file of its own (at most {_FILE_LINES_MAX})"]


def long_lines(path: str, text: str) -> list[str]:
    """Lines of the page's script of more than 140 columns, which its formatter leaves where a text is long."""
    if PurePosixPath(path).suffix != ".js":
        return []
    return [
        f"{path}:{number} has {len(line)} columns; at most {_SCRIPT_COLUMNS_MAX}"
        for number, line in enumerate(text.splitlines(), start=1)
        if len(line) > _SCRIPT_COLUMNS_MAX
    ]


def crowded_folders(paths: Iterable[str]) -> list[str]:
    """Folders of the program with more than 30 modules, `__init__.py` not counted."""
    modules = (path for path in map(PurePosixPath, paths) if path.suffix in {".py", ".js"})
    counts = Counter(path.parent for path in modules if path.name != "__init__.py")
    return [
        f"{folder} has {count} modules; give those that belong together a folder (at most {_MODULES_MAX})"
        for folder, count in counts.items()
        if count > _MODULES_MAX and folder.is_relative_to("src/bedplate")
    ]


def empty_names(path: str) -> list[str]:
    """Folders and modules whose name says nothing, alone or as a part (`string_utils`)."""
    parts = PurePosixPath(path).with_suffix("").parts
    return [
        f"{path}: {word!r} names no job; name the module after the thing it holds (units, registry, mount)"
        for part in parts
        for word in part.lower().replace("-", "_").split("_")
        if word in _EMPTY_NAMES
    ]


def test_functions_are_short(python_sources: Sequence[_Source], judge: _Judge) -> None:
    judge([finding for source in python_sources for finding in long_functions(source.path, source.text)])


def test_files_are_short(sources: Sequence[_Source], judge: _Judge) -> None:
    judge([finding for source in sources for finding in long_file(source.path, source.text)])


def test_lines_of_the_script_are_short(sources: Sequence[_Source], judge: _Judge) -> None:
    judge([finding for source in sources for finding in long_lines(source.path, source.text)])


def test_no_folder_is_crowded(sources: Sequence[_Source], judge: _Judge) -> None:
    judge(crowded_folders(source.path for source in sources))


def test_module_names_say_what_they_hold(sources: Sequence[_Source], judge: _Judge) -> None:
    code = [
        source.path for source in sources if PurePosixPath(source.path).suffix in {".py", ".c", ".h", ".sh"}
    ]
    judge([finding for path in code for finding in empty_names(path)])


def test_a_planted_folder_of_31_modules_is_found() -> None:
    paths = ["src/bedplate/plan/__init__.py", *(f"src/bedplate/plan/m{number}.py" for number in range(30))]
    assert [] == crowded_folders(paths)
    assert 1 == len(crowded_folders([*paths, "src/bedplate/plan/one_more.py"]))


def test_a_planted_line_of_141_columns_is_found() -> None:
    assert ["a.js:2 has 141 columns; at most 140"] == long_lines("a.js", f"{'x' * 140}\n{'x' * 141}\n")
    assert [] == long_lines("a.py", "x" * 141)


@pytest.mark.parametrize("head", ["def planted():", "async def planted():"])
def test_a_planted_function_of_71_lines_is_found(head: str) -> None:
    body = "\n".join(["    x = 1"] * 70)
    findings = long_functions("a.py", f"{head}\n{body}\n")
    assert len(findings) == 1
    assert "a.py:1 planted has 71 lines; split it" in findings[0]


def test_a_function_of_70_lines_passes() -> None:
    body = "\n".join(["    x = 1"] * 69)
    assert long_functions("a.py", f"@property\ndef planted():\n{body}\n") == []


def test_a_planted_method_is_found_inside_its_class() -> None:
    body = "\n".join(["        x = 1"] * 80)
    assert len(long_functions("a.py", f"class A:\n    def planted(self):\n{body}\n")) == 1


@pytest.mark.parametrize("path", ["src/a.py", "drivers/a.c", "requirements/a.sh"])
def test_a_planted_file_of_501_lines_is_found(path: str) -> None:
    assert len(long_file(path, "x\n" * 501)) == 1
    assert long_file(path, "x\n" * 500) == []


def test_a_planted_script_without_a_suffix_is_found() -> None:
    assert len(long_file("launcher", "#!/bin/sh\n" + "x\n" * 500)) == 1


@pytest.mark.parametrize(
    "path",
    ["src/bedplate/utils.py", "src/bedplate/helpers/x.py", "src/a/string_utils.py", "drivers/common.c"],
)
def test_a_planted_empty_name_is_found(path: str) -> None:
    assert len(empty_names(path)) == 1


@pytest.mark.parametrize(
    "path", ["src/bedplate/host/mount.py", "src/a/commonality.py", "src/a/managerial.py"]
)
def test_a_name_that_merely_contains_the_letters_passes(path: str) -> None:
    assert empty_names(path) == []
