"""Stories of bad cuts are kept beside a study's visits, which are not written to."""

from __future__ import annotations

import fcntl
import os
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest
from tests.unit.model.test_fault_of_a_cut import LOST

from bedplate.cuts.blame import STORIES_FILE, story_of
from bedplate.errors import StudyError
from bedplate.model import codec
from bedplate.study.power_cut_stories import keep_stories, read_stories

STORY = story_of(LOST, None)
RUN = Path("visits", "cell", "data", "1.1", "runs", "01")


def test_a_later_story_takes_the_place_of_a_former_one_and_of_the_visits_own(tmp_path: Path) -> None:
    run = tmp_path / "visits" / "cell" / "data" / "1.1" / "runs" / "01"
    run.mkdir(parents=True)
    assert {} == read_stories(tmp_path, run)
    own = story_of(replace(LOST, replays=5), None)
    (run / STORIES_FILE).write_text(codec.dumps(own, indent=None) + "\n")
    assert {7: own} == read_stories(tmp_path, run)
    other = story_of(replace(LOST, point=3), None)
    keep_stories(tmp_path, run, [STORY])
    path = keep_stories(tmp_path, run, [other])
    assert {3: other, 7: STORY} == read_stories(tmp_path, run)
    assert [run / STORIES_FILE] == [each for each in (tmp_path / "visits").rglob("*") if each.is_file()]
    path.write_text("{\n" + path.read_text())
    assert {3: other, 7: STORY} == read_stories(tmp_path, run)


@pytest.mark.parametrize(
    "link", ["blame", "blame/cell", "blame/cell/data/1.1/runs/01", "blame/cell/data/1.1/runs/01/blame.jsonl"]
)
def test_no_story_is_written_through_a_link_of_a_study(tmp_path: Path, link: str) -> None:
    """Root tells stories of studies that were copied from anywhere."""
    study, elsewhere = tmp_path / "study", tmp_path / "elsewhere"
    (study / RUN).mkdir(parents=True)
    elsewhere.mkdir()
    (elsewhere / "kept").write_text("not ours")
    place = study / link
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(elsewhere / "kept" if place.suffix == ".jsonl" else elsewhere)
    with pytest.raises(StudyError, match="is a link"):
        keep_stories(study, study / RUN, [STORY])
    assert ["kept"] == [path.name for path in elsewhere.iterdir()]
    assert "not ours" == (elsewhere / "kept").read_text()


def test_who_keeps_a_story_waits_for_another_one(tmp_path: Path) -> None:
    run = tmp_path / RUN
    run.mkdir(parents=True)
    path = keep_stories(tmp_path, run, [STORY])
    folder = os.open(path.parent, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    thread = Thread(
        target=keep_stories, args=(tmp_path, run, [replace(STORY, evidence=replace(LOST, point=3))])
    )
    thread.start()
    thread.join(0.5)
    try:
        assert thread.is_alive()
        other = story_of(replace(LOST, point=9), None)
        path.write_text(path.read_text() + codec.dumps(other, indent=None) + "\n")
    finally:
        os.close(folder)
        thread.join()
    assert [3, 7, 9] == sorted(read_stories(tmp_path, run))
