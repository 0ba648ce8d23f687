"""What every command that reads studies asks first, before the libraries that read them are loaded."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import StudyError
from bedplate.near_names import near_paths

if TYPE_CHECKING:
    from collections.abc import Iterable

# A folder that somebody names by mistake may have very many entries.
_MOST_ENTRIES = 10_000
_MOST_NAMED = 12
_LEVELS_BELOW = 4


def require_studies(paths: Iterable[Path]) -> tuple[Path, ...]:
    """The studies that are meant: each path itself, or the only study one level below it.

    StudyError with a reason for each path that holds no study, or several, or one of another format.
    """
    from bedplate.study.layout import StudyLayout  # noqa: PLC0415
    from bedplate.study.version import require_known_format  # noqa: PLC0415

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


def study_at(path: Path) -> Path:
    """The path itself, unless a study stands a level below it, where quickstart and a question put one. StudyError of several."""
    below = [] if _is_study(path) else _below(path)
    if len(below) > 1:
        listed = ", ".join(map(str, below[:_MOST_NAMED])) + (" …" if len(below) > _MOST_NAMED else "")
        raise StudyError(f"{path} holds several studies; name one: {listed}")
    return below[0] if below else path


def _hint(path: Path) -> str:
    """The studies beside it that are called nearly so, where there is nothing of that name."""
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
