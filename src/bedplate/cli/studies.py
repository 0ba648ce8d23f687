"""What every command that reads studies asks first, before the libraries that read them are loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.errors import StudyError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def require_studies(paths: Iterable[Path]) -> None:
    """StudyError with a reason for each path that holds no study, or one of another format."""
    from bedplate.study.layout import StudyLayout  # noqa: PLC0415
    from bedplate.study.version import require_known_format  # noqa: PLC0415

    reasons: list[str] = []
    for path in paths:
        try:
            require_known_format(StudyLayout(path))
        except StudyError as error:
            reasons += error.reasons
    if reasons:
        raise StudyError(*reasons)
