"""What a study of pairs says in place of which cell to take: the change was asked about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.analysis.headline.placing import HeadlineLine
from bedplate.analysis.paired.looked import looked
from bedplate.analysis.paired.sentences import answer_lines

if TYPE_CHECKING:
    from bedplate.analysis.overview import Overview


def pair_lines(found: Overview) -> tuple[HeadlineLine, ...]:
    """Its answer; empty of any other study, and of a selection of its cells."""
    told = looked(found)
    if told is None:
        return ()
    first, *rest = answer_lines(told)
    return (HeadlineLine("Change", first, 0), *(HeadlineLine("", line.strip(), 1) for line in rest))
