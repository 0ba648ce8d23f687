"""What stands beside every figure of a study whose cells a search chose."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bedplate.study.stored import Study

CHOSEN = (
    "a search chose which cells to visit and how often, so they are not sampled alike. The mean of a few visits to a cell that was chosen "
    "for them is too good. The model's figures and the proof are beside the means"
)
_EXTENDED = (
    "a search chose the cells of the first {blocks} blocks, and `extend` made all cells up to {repetitions} repetitions: what goes beyond them is of "
    "chosen cells"
)

NO_EFFECTS_OF_A_SEARCH = (
    (
        "a search chose the cells of this study, so that their means cannot say what a factor does: cells were visited because others like them "
        "were fast"
    ),
    (
        "the model says it of the figure that was searched for: `bedplate effects STUDY` without --workload, --metric and --cells; `bedplate extend` makes a "
        "factorial of the study"
    ),
)

NO_ADVICE_OF_A_SEARCH = (
    "the answer of a search is of all its cells in the run that was searched, and there is none before its first figure",
    "leave --cells, --workload and --durability out; `bedplate extend` makes a factorial of the study, of which there is advice",
)

DOUBTS_OF_A_SEARCH = "a search counts the runs whose doubts were accepted when it ran; `bedplate search` with one more --accept goes on and counts them"


def is_chosen(study: Study) -> bool:
    """Whether a search chose the cells, and nothing has made a factorial of it since."""
    return study.search is not None and study.search.extended is None


def is_chosen_visit(study: Study, repetition: int, *, canary: bool) -> bool:
    """Whether a search decided that a visit of this repetition was made."""
    record = study.search
    if record is None or canary or repetition > len(record.blocks):
        return False
    return record.extended is None or repetition > record.extended


def search_marks(study: Study) -> tuple[str, ...]:
    """One sentence of a search, or of a factorial that was one; none of any other study."""
    record = study.search
    if record is None:
        return ()
    if record.extended is None:
        return (CHOSEN,)
    return (_EXTENDED.format(blocks=len(record.blocks), repetitions=record.extended),)
