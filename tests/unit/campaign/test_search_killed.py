"""A search whose process is killed by SIGKILL again and again comes to the same visits in the same order."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.studies.planted_executor import PlantedExecutor
from tests.support.studies.search_lab import search_lab, truth
from tests.support.tools.killed_process import killed_after

from bedplate.study.stored import read_study

if TYPE_CHECKING:
    import pytest


def test_killed_after_any_line_it_comes_to_the_same_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = tmp_path / "killed"
    killed.mkdir()
    # Lines of a start: it goes on, where the search is, then two for each visit.
    killed_after((1, 2, 3, 4, 9, 14, 15, 16, 30), "tests.support.studies.search_process", killed)
    whole = tmp_path / "whole"
    whole.mkdir()
    lab = search_lab(whole, monkeypatch)
    lab.play(PlantedExecutor(truth))
    first, second = read_study(killed / "study"), read_study(whole / "study")
    assert first.schedule.visits == second.schedule.visits
    assert first.search == second.search
    assert not first.set_aside
    assert [v.record.key for v in first.visits] == [v.record.key for v in second.visits]
