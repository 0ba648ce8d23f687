"""Which format a study is of, asked before its records are read: a newer one has fields unknown here."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from bedplate.errors import StudyError
from bedplate.model import codec
from bedplate.model.limits import too_long
from bedplate.model.reason import because
from bedplate.model.visit import KNOWN_FORMATS
from bedplate.study.folder import Folder
from bedplate.study.records import StudyFacts

if TYPE_CHECKING:
    from bedplate.study.layout import StudyLayout

# Of a call that would run visits of a study whose visits others made.
IMPORTED_STUDY = "imported-study"
KNOWN_WORDS = " or ".join(map(str, KNOWN_FORMATS))


def require_known_format(layout: StudyLayout) -> None:
    """StudyError if there is no study, it is of a format that is not known, or something in it is none of a study's (`folder.py`).

    Whatever reads a study asks this first.
    """
    if not os.path.lexists(layout.facts):
        raise StudyError(f"{layout.directory} is not a study: it has no study.json")
    Folder.of_study(layout.directory).close()
    facts = codec.parse(codec.read_text(layout.facts), source=str(layout.facts))
    found = facts.get("format_version") if isinstance(facts, dict) else None
    if found not in KNOWN_FORMATS:
        raise StudyError(
            f"{layout.directory} is of format {found!r:.40}, this bedplate knows {KNOWN_WORDS}; "
            "use the bedplate that made it"
        )
    if wrong := tuple(too_long("the title", str(facts.get("title", "")))):
        raise StudyError(*(f"{layout.facts} is damaged: {words}" for words in wrong))


def refuse_imported(layout: StudyLayout) -> None:
    """StudyError where the study was imported: nothing of it can be run here, nor be added to it."""
    if codec.read(StudyFacts, layout.facts).is_imported:
        raise StudyError(
            because(
                IMPORTED_STUDY,
                f"{layout.directory} was imported: others made its runs, and none is added; "
                "run a plan into a directory of its own",
            )
        )
