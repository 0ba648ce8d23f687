"""Which format a study is of, asked before its records are read: a newer one has fields unknown here."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from bedplate.errors import StudyError
from bedplate.model.visit import FORMAT_VERSION

if TYPE_CHECKING:
    from bedplate.study.layout import StudyLayout


def require_known_format(layout: StudyLayout) -> None:
    """StudyError if there is no study, it cannot be read, or it is of another format than ours."""
    try:
        facts = json.loads(layout.facts.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise StudyError(f"{layout.directory} is not a study: it has no study.json") from None
    except OSError as error:
        raise StudyError(f"{layout.facts} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise StudyError(f"{layout.facts} is not JSON: {error}") from error
    found = facts.get("format_version") if isinstance(facts, dict) else None
    if found != FORMAT_VERSION:
        raise StudyError(
            f"{layout.directory} is of format {found}, this bedplate knows {FORMAT_VERSION}; "
            "use the bedplate that made it"
        )
