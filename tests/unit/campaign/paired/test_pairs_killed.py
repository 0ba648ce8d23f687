"""A study of pairs whose process is killed by SIGKILL again and again comes to the same visits and the same answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.studies.paired_lab import paired_lab, slower
from tests.support.studies.planted_executor import PlantedExecutor
from tests.support.tools.killed_process import killed_after

from bedplate.analysis.paired import looked_at
from bedplate.study.store import StudyStore
from bedplate.study.stored import read_study


def judged(study: Path) -> object:
    """What the lines say; how long visits took is no part of it."""
    return [
        (one.comparison.verdict, one.comparison.low, one.comparison.high) for one in looked_at(study).lines
    ]


def test_killed_after_any_line_it_comes_to_the_same_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = tmp_path / "killed"
    killed.mkdir()
    # Lines of a start: two for each visit of the first blocks, then where it is, and the next block's.
    killed_after((1, 4, 11, 3, 6), "tests.support.studies.paired_process", killed)
    whole = tmp_path / "whole"
    whole.mkdir()
    lab = paired_lab(whole, monkeypatch)
    lab.play(PlantedExecutor(slower(0.05), noise=0.04))
    first, second = read_study(killed / "pairs"), read_study(lab.study)
    assert first.schedule.visits == second.schedule.visits
    assert first.paired == second.paired
    assert not first.set_aside
    assert [v.record.key for v in first.visits] == [v.record.key for v in second.visits]
    assert judged(killed / "pairs") == judged(lab.study)


def test_killed_between_the_files_of_another_block_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(_: StudyStore) -> None:
        raise KeyboardInterrupt

    lab = paired_lab(tmp_path, monkeypatch)
    executor = PlantedExecutor(slower(0.05), noise=0.04)
    with monkeypatch.context() as patched:
        patched.setattr(StudyStore, "_roll_extension_forward", killed)
        with pytest.raises(KeyboardInterrupt):
            lab.play(executor)
    before = len(lab.order())
    assert lab.play(executor).has_ended
    assert before < len(lab.order())
