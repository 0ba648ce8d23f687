"""`patches` of a plan: the texts of patches, which a study keeps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bedplate.model.source_commit import patch_level
from bedplate.plan.trees.notes import at_home, is_name, note_name, own_note
from bedplate.plan.words import joined, shown
from bedplate.text_encoding import decode_text
from bedplate.units import MIB, format_size

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping

    from bedplate.plan.trees.commits import Revisions

_MOST_PATCHES = 100
_PATCH_BYTES_MOST = 8 * MIB


def patch_levels(value: Any, context: Mapping[str, Any]) -> tuple[str, ...]:
    """The levels of a list of patches, in the order in which they are applied; ValueError with all reasons."""
    if not isinstance(value, list) or len(value) > _MOST_PATCHES:
        raise ValueError(
            'allowed is a list of files, such as ["v3-0001-x.patch"]; vary takes a list of such lists'
        )
    levels: list[str] = []
    reasons: list[str] = []
    for name in value:
        try:
            levels.append(_patch(name, context))
        except ValueError as error:
            reasons.append(f"{shown(name)}: {error}")
    if reasons:
        raise ValueError(joined(reasons))
    return tuple(levels)


def _patch(name: Any, context: Mapping[str, Any]) -> str:
    if not is_name(name):
        raise ValueError("allowed is the path of a patch")
    note = f"{note_name(name)}.patch"
    text = own_note(note, context)
    path = at_home(name, Path(context["directory"]))
    if text is None and not path.exists():
        # A patch that changed is another plan; one that is gone is the study's.
        text = (context.get("kept") or {}).get(note)
    if text is None:
        text = _read(path)
        # Nothing but a patch is copied into a study, which is then shared.
        revisions: Revisions | None = context.get("revisions")
        if revisions is None or not revisions.is_patch(text):
            raise ValueError(
                "the file has no diff in it; allowed is a patch of git format-patch, git diff or diff -u"
            )
    level = patch_level(Path(name).name, text)
    files: MutableMapping[str, str] = context["files"]
    files[note] = text
    context["patches"][level] = text
    return level


def _read(path: Path) -> str:
    try:
        if not path.is_file():
            raise ValueError(f"there is no such file ({path})")
        if path.stat().st_size > _PATCH_BYTES_MOST:
            raise ValueError(f"the file is larger than {format_size(_PATCH_BYTES_MOST)}")
        return decode_text(path.read_bytes())
    except OSError as error:
        raise ValueError(f"the file cannot be read: {error.strerror}") from None
