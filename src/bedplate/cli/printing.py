"""What every command prints its findings with: tables for a person, one JSON document for a program."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from contextlib import nullcontext, redirect_stdout
from itertools import islice
from pathlib import Path
from typing import Self

from bedplate.campaign.terminal_edge import json_text
from bedplate.errors import StudyError
from bedplate.near_names import near_paths

# `  time             about 9 min`: what follows the name of a line stands in a column of its own.
_NAME = re.compile(r"\s*\S+(?: \S+)*? {2,}")

# What is not parted at the end of a line: a number and its unit, a setting and its value.
_HELD = re.compile(r"(?<=\d) (?=%|(?:ms|s|min|h|B|kB|MB|GB|KiB|MiB|GiB)\b)|(?<=\w) (?== )|(?<= =) (?=\S)")

# A command is copied: whole where a line has room for it.
_COMMAND = re.compile(r"`[^`]+`")

_NO_BREAK = "\N{NO-BREAK SPACE}"

_COLUMNS_WITHOUT_TERMINAL = 80


def say(line: str = "") -> None:
    """One line of text; on a terminal broken between words, and continued below where its text begins.

    A terminal breaks a line wherever it ends, within a number too. What is read by a program stays one line.
    """
    width = _columns()
    if width is None or len(line) <= width:
        print(line)
        return
    name = _NAME.match(line)
    begin = len(name.group()) if name else len(line) - len(line.lstrip()) + 2
    indent = begin if begin <= width // 2 else 4
    filled = textwrap.fill(
        _held(line, width - indent),
        width,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    print(filled.replace(_NO_BREAK, " "))


def _held(line: str, room: int) -> str:
    """The line with no-break spaces where it is not to be parted."""
    whole = _COMMAND.sub(
        lambda found: found.group().replace(" ", _NO_BREAK) if len(found.group()) <= room else found.group(),
        line,
    )
    return _HELD.sub(_NO_BREAK, whole)


def _columns() -> int | None:
    """How wide the terminal is, or `COLUMNS` says; None where neither is known."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit():
        return max(shutil.get_terminal_size().columns, 20)
    return None


def columns() -> int:
    """How many columns a line may have: as many as the terminal has, 80 where there is none."""
    return _columns() or _COLUMNS_WITHOUT_TERMINAL


def print_json(document: object) -> None:
    """One JSON document on standard output."""
    print(json_text(document))


class JsonAnswer:
    """What a long command answers with --json; all else that it says goes to standard error then."""

    def __init__(self, *, is_wanted: bool) -> None:
        self.content: object = None
        self._is_wanted = is_wanted
        self._talk = redirect_stdout(sys.stderr) if is_wanted else nullcontext()

    def __enter__(self) -> Self:
        self._talk.__enter__()
        return self

    def __exit__(self, *failure: object) -> None:
        self._talk.__exit__(None, None, None)
        if self._is_wanted and self.content is not None:
            print_json(self.content)


def print_tables(tables: Sequence[object]) -> None:
    """Tables as wide as the terminal, through a pager too; `COLUMNS`, or 80 columns, where there is none."""
    from bedplate.campaign.terminal_console import TerminalConsole  # noqa: PLC0415

    console = TerminalConsole()
    for table in tables:
        console.print(table)


# A folder that somebody names by mistake may have very many entries.
_MOST_ENTRIES = 10_000

_MOST_NAMED = 12

_LEVELS_BELOW = 4


def require_studies(paths: Iterable[Path]) -> tuple[Path, ...]:
    """The studies that are meant: each path itself, or the only study one level below it.

    StudyError with a reason for each path that holds no study, or several, or one of another format.
    """
    from bedplate.study.layout import (  # noqa: PLC0415
        StudyLayout,
        require_known_format,
    )

    found: list[Path] = []
    reasons: list[str] = []
    for path in paths:
        try:
            found.append(study_at(path))
            require_known_format(StudyLayout(found[-1]))
        except StudyError as error:
            reasons += (f"{reason}{_hint(path)}" for reason in error.reasons)
    if reasons:
        raise StudyError(*reasons)
    return tuple(found)


def studies_below(directory: Path) -> tuple[Path, ...]:
    """Every study in a folder, at most some levels below it, by their paths; links are not followed, nor is a study entered.

    StudyError where there is none, with the way out.
    """
    found: list[Path] = []
    for place, folders, files in os.walk(directory):
        here = Path(place)
        if "study.json" in files:
            found.append(here)
        is_deep = len(here.relative_to(directory).parts) >= _LEVELS_BELOW
        folders[:] = [] if "study.json" in files or is_deep else sorted(folders)[:_MOST_ENTRIES]
    if not found:
        raise StudyError(
            f"{directory} holds no study within {_LEVELS_BELOW} levels, and links are not followed: name the folder that holds your studies"
        )
    return tuple(found)


def holds_several(path: Path) -> bool:
    """Whether it is a folder of studies: no study itself, nor a folder with only one, where a question puts it."""
    if _is_study(path) or len(_below(path)) == 1:
        return False
    try:
        return bool(studies_below(path))
    except StudyError:
        return False


def study_at(path: Path) -> Path:
    """The path itself, unless a study stands a level below it, where quickstart and a question put one. StudyError of several."""
    below = [] if _is_study(path) else _below(path)
    if len(below) > 1:
        listed = ", ".join(map(str, below[:_MOST_NAMED])) + (" …" if len(below) > _MOST_NAMED else "")
        raise StudyError(f"{path} holds several studies; name one: {listed}")
    return below[0] if below else path


def _hint(path: Path) -> str:
    """That it is a plan; or the studies beside it that are called nearly so, where there is nothing of that name."""
    if path.suffix == ".toml" and path.is_file():
        return f"; it is a plan: `bedplate run {path}` makes a study of it, in the folder {path.stem}"
    near = () if os.path.lexists(path) else near_paths(path)
    studies = [str(each) for each in near if _is_study(each) or _below(each)]
    return f"; did you mean {' or '.join(studies)}?" if studies else ""


def _is_study(path: Path) -> bool:
    from bedplate.study.layout import StudyLayout  # noqa: PLC0415

    return os.path.lexists(StudyLayout(path).facts)


def _below(path: Path) -> list[Path]:
    try:
        entries = (entry for entry in islice(path.iterdir(), _MOST_ENTRIES) if not entry.is_symlink())
        return sorted(entry for entry in entries if _is_study(entry))
    except (OSError, ValueError):
        return []
