"""The next step of a search, worked out from its study: blocks of visits, power cuts in what it would name, or its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.analysis.overview import overview
from bedplate.analysis.search.entrants import first_space
from bedplate.analysis.search.searched import question_of, searched, stages
from bedplate.analysis.search.sentences import progress_words
from bedplate.errors import PlanError, StudyError
from bedplate.model.figure import Status
from bedplate.model.search import SearchedBlock, SearchStep
from bedplate.model.visit import Outcome
from bedplate.near_names import did_you_mean
from bedplate.statistics.search.course import SearchEnd, following
from bedplate.units import format_count

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from bedplate.analysis.search.searched import Searched
    from bedplate.model.cell import Cell
    from bedplate.model.search import SearchRecord


def refuse_before_the_first_visit(record: SearchRecord, cells: Mapping[str, Cell], seed: int) -> None:
    """PlanError where the search could not visit a block: too few cells, or too little time for one."""
    numbers = {each.cell: number for number, each in enumerate(record.candidates)}
    budget_s = record.budget_s * record.at_once - (record.cut_seconds if record.cut_dataset else 0.0)
    try:
        space = first_space(record, cells)
        question = question_of(record, seed, numbers, budget_s=max(budget_s, 1e-9))
        following(space, question, (), at_once=record.at_once)
    except ValueError as error:
        raise PlanError(str(error)) from error


def next_step(study: Path) -> SearchStep:
    """What comes next; StudyError of a study that is no search, or whose runs have no such figure."""
    found = searched(overview(study))
    if found is None:
        raise StudyError(f"{study} is no search: it has no search.json")
    _refuse_a_figure_that_no_run_has(found)
    words = progress_words(found)
    try:
        after = found.after
    except ValueError as error:
        raise PlanError(str(error)) from error
    if after is None:
        return SearchStep(words, found.spent_s)
    if found.failed_alike:
        return SearchStep(words, found.spent_s, names_a_cell=False, has_failed=True)
    if isinstance(after, SearchEnd):
        return SearchStep(words, found.spent_s, cuts=_cuts(found), names_a_cell=bool(after.cells))
    blocks = tuple(
        SearchedBlock(
            block.block,
            tuple(found.id_of(number) for number in block.cells),
            block.proof,
            None if block.leader is None else found.id_of(block.leader),
            found.stage,
        )
        for block in after
    )
    return SearchStep(words, found.spent_s, blocks)


def _cuts(found: Searched) -> tuple[str, ...]:
    """The cells that the ends name in which no power was cut yet, the first of them first, as far as the budget goes."""
    record = found.record
    if record.cut_dataset is None or record.extended is not None:
        return ()
    asked = {
        visit.cell_id
        for visit in found.overview.study.schedule.visits
        if visit.dataset_id == record.cut_dataset
    }
    named = [each.id_of(number) for each in stages(found.overview) if each.end for number in each.end.cells]
    due = [cell for cell in dict.fromkeys(named) if cell not in asked]
    left = found.budget_s - found.spent_s
    # For the first one time was kept back.
    room = max(int(left // record.cut_seconds), int(not asked)) if record.cut_seconds else len(due)
    return tuple(due[:room])


def _refuse_a_figure_that_no_run_has(found: Searched) -> None:
    """A whole search would pass before anybody is told."""
    for name in found.record.runs:
        _refuse_a_figure_that_a_run_lacks(found, name)


def _refuse_a_figure_that_a_run_lacks(found: Searched, name: str) -> None:
    run = (found.record.dataset, name)
    runs = [m for cell in found.entrants.cells for m in found.overview.of(cell, run)]
    completed = [m for m in runs if m.outcome is Outcome.COMPLETED]
    metrics = (found.record.best, *(each.metric for each in found.record.not_worse))
    figures = [figure for m in completed for figure in m.by_metric.values()]
    having = sorted({figure.metric for figure in figures if figure.status is not Status.ABSENT})
    for metric in metrics:
        if completed and metric not in having:
            reasons = [each.reason.sentence for each in figures if each.metric == metric and each.reason]
            hint = did_you_mean(metric, having, otherwise=f"they have {', '.join(having) or 'no figures'}")
            raise StudyError(
                f"{format_count(len(completed), 'run')} of {name} so far, and none has {metric}{f' ({reasons[0]})' if reasons else ''}; {hint}",
                "begin another study with --best of these",
            )


class Course:
    """Both, as a start of a search asks for them."""

    def refuse(self, record: SearchRecord, cells: Mapping[str, Cell], seed: int) -> None:
        """PlanError where the search could not even begin."""
        refuse_before_the_first_visit(record, cells, seed)

    def next(self, study: Path) -> SearchStep:
        """The next step of a search that stands on disk."""
        return next_step(study)
