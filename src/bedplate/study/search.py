"""That a study is a search: `search.json`, whole in itself and beside the schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.errors import StudyError
from bedplate.model import codec, no_links
from bedplate.model.search import WANTED, SearchRecord
from bedplate.study.schedule import read_schedule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bedplate.study.layout import StudyLayout
    from bedplate.study.records import StudySchedule

SEARCH_VERSION = 1


def read_order(layout: StudyLayout) -> tuple[StudySchedule, SearchRecord | None]:
    """The schedule, and what a search asks and came to; None of a study that is none. StudyError names what does not fit.

    The search first: a block is in the schedule before it is in `search.json`, so a reader beside the writer finds both.
    """
    found = codec.read(SearchRecord, layout.search) if no_links.is_there(layout.search) else None
    schedule = read_schedule(layout)
    if found is None:
        return schedule, None
    if found.version != SEARCH_VERSION:
        raise StudyError(
            f"{layout.search} has format {found.version}, this bedplate knows {SEARCH_VERSION}; "
            "read it with the version that wrote it"
        )
    if wrong := tuple(dict.fromkeys(_wrong(found, schedule))):
        raise StudyError(*(f"{layout.search} is damaged: {words}" for words in wrong))
    return schedule, found


def _wrong(found: SearchRecord, schedule: StudySchedule) -> Iterator[str]:
    if found.durable not in WANTED:
        yield f"it asks for the durability {found.durable!r:.200}, which does not exist"
    for dataset in filter(None, (found.dataset, found.cut_dataset)):
        if dataset not in schedule.datasets:
            yield f"it is of the dataset {dataset!r:.200}, which the schedule does not have"
    candidates = [each.cell for each in found.candidates]
    if len(set(candidates)) < len(candidates):
        yield "a cell is among its candidates twice"
    for cell in (*candidates, *(each.cell for each in found.left_out)):
        if cell not in schedule.cells:
            yield f"it names the cell {cell!r:.200}, which the schedule does not have"
    of_blocks = {cell for block in found.blocks for cell in block.cells}
    of_blocks |= {cell for cell in (found.baseline, *(b.leader for b in found.blocks)) if cell is not None}
    for cell in sorted(of_blocks - set(candidates)):
        yield f"its blocks name {cell!r:.200}, which is none of its candidates"
    if [block.number for block in found.blocks] != list(range(len(found.blocks))):
        yield "its blocks are not numbered from 0 on"
    scheduled = {
        (v.cell_id, v.repetition) for v in schedule.visits if v.dataset_id == found.dataset and not v.canary
    }
    for block in found.blocks:
        if not all((cell, block.number + 1) in scheduled for cell in block.cells):
            yield f"block {block.number} has cells that repetition {block.number + 1} of the schedule lacks"
    for each in found.candidates:
        if not each.seconds > 0:
            yield f"a visit of {each.cell!r:.200} is reckoned to take {each.seconds} s"
    if not found.budget_s > 0 or not 0 < found.margin < 1:
        yield f"its budget is {found.budget_s} s and its margin {found.margin}"
