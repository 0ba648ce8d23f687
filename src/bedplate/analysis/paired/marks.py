"""What stands beside every figure of a study that ended when it could tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bedplate.study.stored import Study

STOPPED_WHEN_TOLD = (
    "the study of pairs ended when it could tell, so the number of its repetitions is no accident. The interval of the answer holds at every "
    "look; those of tables and of `compare` are of one look and too narrow"
)


def paired_marks(study: Study) -> tuple[str, ...]:
    """One sentence of a study of pairs; none of any other."""
    return () if study.paired is None else (STOPPED_WHEN_TOLD,)
