"""What a study of pairs does next, as a start asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.analysis.paired.looked import looked_at
from bedplate.analysis.paired.sentences import progress_words
from bedplate.statistics.paired_sequence import FIRST_LOOK
from bedplate.study.paired import PairedStep

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class UntilTold:
    """Blocks until every line tells, the condition is known, or time is gone.

    `first_blocks` run before the first look, unless a side lacks what is asked for in the first of them.
    """

    first_blocks: int = FIRST_LOOK

    def next(self, study: Path) -> PairedStep:
        """The next step of a study that stands on disk."""
        found = looked_at(study)
        # Before the first look a block says only whether there is anything to look at.
        is_last = found.is_last if found.blocks >= self.first_blocks else found.has_failed
        return PairedStep(progress_words(found, is_last=is_last), is_last=is_last)
