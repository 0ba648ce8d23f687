"""A module's name says what it holds; lines of the page's script fit a screen.

Sizes of functions, files and folders have no limit: a reader wants a thing whole, not a file short.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

_SCRIPT_COLUMNS_MAX = 140
_EMPTY_NAMES = frozenset({"utils", "util", "helpers", "helper", "manager", "misc", "common"})


class _Judge(Protocol):
    def __call__(self, findings: Sequence[str]) -> None: ...


class _Source(Protocol):
    path: str
    text: str


def long_lines(path: str, text: str) -> list[str]:
    """Lines of the page's script of more than 140 columns, which its formatter leaves where a text is long."""
    if PurePosixPath(path).suffix != ".js":
        return []
    return [
        f"{path}:{number} has {len(line)} columns; at most {_SCRIPT_COLUMNS_MAX}"
        for number, line in enumerate(text.splitlines(), start=1)
        if len(line) > _SCRIPT_COLUMNS_MAX
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


def test_lines_of_the_script_are_short(sources: Sequence[_Source], judge: _Judge) -> None:
    judge([finding for source in sources for finding in long_lines(source.path, source.text)])


def test_module_names_say_what_they_hold(sources: Sequence[_Source], judge: _Judge) -> None:
    code = [
        source.path for source in sources if PurePosixPath(source.path).suffix in {".py", ".c", ".h", ".sh"}
    ]
    judge([finding for path in code for finding in empty_names(path)])


def test_a_planted_line_of_141_columns_is_found() -> None:
    assert ["a.js:2 has 141 columns; at most 140"] == long_lines("a.js", f"{'x' * 140}\n{'x' * 141}\n")
    assert [] == long_lines("a.py", "x" * 141)


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
