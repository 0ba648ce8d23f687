"""What a study notes of trees and patches, beside its plan, and the paths that a plan has of them."""

from __future__ import annotations

import hashlib
import os
import pwd
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bedplate.model import no_links
from bedplate.model.limits import TEXT_LIMIT, read_at_most
from bedplate.model.source_commit import SOURCES

if TYPE_CHECKING:
    from collections.abc import Mapping

_LONGEST = 1000


def at_home(path: str, directory: Path) -> Path:
    """A path of a plan: from the root, from the plan, or from the home of whoever called, under sudo too."""
    if path == "~" or path.startswith("~/"):
        return Path(_home(), path[2:])
    return directory / path


def _home() -> str:
    uid = os.environ.get("SUDO_UID", "")
    if os.geteuid() == 0 and uid.isdecimal():
        try:
            return pwd.getpwuid(int(uid)).pw_dir
        except (KeyError, OverflowError):
            pass
    return str(Path.home())


def is_name(value: Any) -> bool:
    """Whether a value may be a path of a plan's."""
    return isinstance(value, str) and value.isprintable() and 0 < len(value) <= _LONGEST


def note_name(*words: str) -> str:
    """What a study calls its note of something that a plan names by these words."""
    return f"{SOURCES}/{hashlib.sha256(chr(0).join(words).encode('utf-8', 'replace')).hexdigest()[:16]}"


def kept_note(note: str, context: Mapping[str, Any]) -> str | None:
    """What the study keeps of it: the one that a plan goes on with, or the one whose own plan this is."""
    kept: Mapping[str, str] = context.get("kept") or {}
    return kept[note] if note in kept else own_note(note, context)


def own_note(note: str, context: Mapping[str, Any]) -> str | None:
    """The note that stands beside the plan of a study."""
    path = Path(context["directory"]) / note
    try:
        return read_at_most(path, TEXT_LIMIT.most_bytes).decode("utf-8") if no_links.is_file(path) else None
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"the study's note of it ({note}) cannot be read: {error}") from None
