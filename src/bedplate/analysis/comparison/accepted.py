"""Doubts that the asker takes upon himself: runs that nothing else speaks against take part in verdicts.

A run on a throttled device is suspect where other programs were at work, though the device alone was the limit. Whoever
knows that may say so; what was accepted then stands beside every verdict.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bedplate.model.visit import Outcome, Validity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bedplate.analysis.overview import Measurement, Overview
    from bedplate.model.reason import Reason


def accepting(overviews: Sequence[Overview], words: Sequence[str]) -> tuple[Overview, ...]:
    """The studies with those runs trusted, suspect or of unknown validity, of which every doubt has one of `words` as its code or in its sentence; small letters do.

    Only what stands for single runs is changed, and the marks: summaries keep what they were made of. Words that are in no
    doubt accept nothing; what is still left out is counted beside the verdicts as ever.
    """
    wanted = tuple(word.casefold() for word in words)
    if not wanted:
        return tuple(overviews)
    return tuple(_accepting(found, wanted, words) for found in overviews)


def _accepting(found: Overview, wanted: Sequence[str], words: Sequence[str]) -> Overview:
    accepted = {number for number, m in enumerate(found.measurements) if _is_accepted(m, wanted)}
    if not accepted:
        return found
    named = " or ".join(f"“{word}”" for word in words)
    runs = "a run in doubt counts" if len(accepted) == 1 else f"{len(accepted)} runs in doubt count"
    return replace(
        found,
        measurements=tuple(
            replace(m, validity=Validity.VALID) if number in accepted else m
            for number, m in enumerate(found.measurements)
        ),
        marks=(*found.marks, f"{runs} here, as all that speaks against them was accepted: {named}"),
    )


def _is_accepted(m: Measurement, wanted: Sequence[str]) -> bool:
    if m.outcome is not Outcome.COMPLETED or m.validity.is_trusted or not m.reasons:
        return False
    return not left_doubts(m.reasons, wanted)


def left_doubts(reasons: Sequence[Reason], words: Sequence[str]) -> tuple[Reason, ...]:
    """Those that none of the words accepts."""
    wanted = [word.casefold() for word in words]
    return tuple(reason for reason in reasons if not any(_is_meant(reason, word) for word in wanted))


def _is_meant(reason: Reason, word: str) -> bool:
    """The word is the asker's own, so that it is looked for in the sentence that the asker has read."""
    return word == reason.code or word in reason.sentence.casefold()
