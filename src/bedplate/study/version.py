"""Which format a study is of, asked before its records are read: a newer one has fields unknown here."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from bedplate.errors import StudyError
from bedplate.model import codec
from bedplate.model.visit import FORMAT_VERSION

if TYPE_CHECKING:
    from bedplate.study.layout import StudyLayout


def require_known_format(layout: StudyLayout) -> None:
    """StudyError if there is no study, it cannot be read, or it is of another format than ours."""
    if not os.path.lexists(layout.facts):
        raise StudyError(f"{layout.directory} is not a study: it has no study.json")
    facts = codec.parse(codec.read_text(layout.facts), source=str(layout.facts))
    found = facts.get("format_version") if isinstance(facts, dict) else None
    if found != FORMAT_VERSION:
        raise StudyError(
            f"{layout.directory} is of format {found!r:.40}, this bedplate knows {FORMAT_VERSION}; "
            "use the bedplate that made it"
        )
