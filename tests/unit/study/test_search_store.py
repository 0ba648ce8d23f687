"""A search writes down its blocks all or not at all, whatever interrupts it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.studies.synthetic_search import SearchRecipe, write_search

from bedplate.model.plan import ScheduledVisit, SearchedBlock
from bedplate.study.layout import Folder
from bedplate.study.records import read_order
from bedplate.study.store import StudyStore
from bedplate.study.stored import read_study

if TYPE_CHECKING:
    from bedplate.model.plan import SearchRecord


class Killed(Exception):
    """What a test has in place of a SIGKILL."""


def one_more(store: StudyStore) -> tuple[SearchRecord, list[ScheduledVisit]]:
    record, schedule = store.search, store.schedule
    assert record is not None
    block = SearchedBlock(len(record.blocks), tuple(each.cell for each in record.candidates[:2]))
    begun = len(schedule.visits)
    visits = [
        ScheduledVisit(begun + at, cell, record.dataset, block.number + 1)
        for at, cell in enumerate(block.cells)
    ]
    return replace(record, blocks=(*record.blocks, block)), visits


def test_a_block_is_in_schedule_and_search_and_leaves_no_mark(tmp_path: Path) -> None:
    directory = write_search(tmp_path / "study", SearchRecipe(blocks=2))
    with StudyStore.open(directory) as store:
        record, visits = one_more(store)
        store.search_on(record, visits, change="more")
    study = read_study(directory)
    assert record == study.search
    assert tuple(visits) == study.schedule.visits[-2:]
    assert () == study.changed
    assert "more" == study.facts.history[-1].what


@pytest.mark.parametrize("moved", [0, 1, 2, 3])
def test_killed_while_it_writes_a_block_the_next_start_has_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moved: int
) -> None:
    directory = write_search(tmp_path / "study", SearchRecipe(blocks=2))
    moves = 0
    real = Folder.move
    store = StudyStore.open(directory)
    record, visits = one_more(store)

    def killed_after(folder: Folder, path: Path, target: Path) -> None:
        nonlocal moves
        if target != store.layout.extension:
            if moves == moved:
                raise Killed
            moves += 1
        real(folder, path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Folder, "move", killed_after)
        if moved < 3:
            with pytest.raises(Killed):
                store.search_on(record, visits)
        else:
            store.search_on(record, visits)
    # Whoever reads meanwhile finds a study, with the block or without.
    schedule, found = read_order(store.layout)
    assert found is not None
    assert len(found.blocks) in {2, 3}
    assert len(schedule.visits) >= sum(len(block.cells) for block in found.blocks)
    store.close()
    with StudyStore.open(directory) as again:
        assert record == again.search
        assert tuple(visits) == again.schedule.visits[-2:]
    assert () == read_study(directory).changed


def test_killed_before_it_was_whole_the_next_start_has_none_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = write_search(tmp_path / "study", SearchRecipe(blocks=2))
    before = {path.name: path.read_bytes() for path in directory.glob("*.json")}
    store = StudyStore.open(directory)
    record, visits = one_more(store)

    def killed(_folder: Folder, _path: Path, _target: Path) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Folder, "move", killed)
        with pytest.raises(Killed):
            store.search_on(record, visits)
    store.close()
    StudyStore.open(directory).close()
    assert before == {path.name: path.read_bytes() for path in directory.glob("*.json")}
    assert [] == list(directory.glob(".extension*"))
