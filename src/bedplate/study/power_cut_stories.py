"""The runs of power cuts of a study by name, and the stories of their bad cuts: a visit's own, and those that were made of its kept log later."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterable, Iterator, Mapping
from io import StringIO
from itertools import islice
from pathlib import Path

from bedplate.cuts.blame import STORIES_FILE, STORIES_FOLDER, Repeatability, Story
from bedplate.cuts.points import CONTROL, Cuts, cut_kind, is_bad_cut
from bedplate.cuts.records import POINTS_FILE, PointRecord
from bedplate.errors import StudyError
from bedplate.model import codec, limits
from bedplate.model.cell import type_of_cell
from bedplate.model.limits import MOST_LINES
from bedplate.study.layout import Folder, StudyLayout


def run_names(study: Path) -> dict[str, Path]:
    """The folders of all runs of power cuts by short names: `ext4`, or `xfs-1` and `xfs-2` where several are of a type, in the order of their paths."""
    visits = StudyLayout(study).visits
    by_type: dict[str, list[Path]] = {}
    for folder in limits.folders_below(visits, levels=5):
        if folder.parent.name == "runs" and limits.is_there(folder / POINTS_FILE):
            by_type.setdefault(type_of_cell(folder.relative_to(visits).parts[0]), []).append(folder)
    return {
        kind if len(folders) == 1 else f"{kind}-{number}": folder
        for kind, folders in by_type.items()
        for number, folder in enumerate(folders, start=1)
    }


def stories_path(study: Path, run_directory: Path) -> Path:
    """Where later stories of a run are kept: a finished visit is not written to."""
    below = run_directory.relative_to(StudyLayout(study).visits)
    return study / STORIES_FOLDER / below / STORIES_FILE


def read_stories(study: Path, run_directory: Path) -> Mapping[int, Story]:
    """By the number of the cut; a later story takes the place of a visit's own, and a damaged line is none."""
    files = (run_directory / STORIES_FILE, stories_path(study, run_directory))
    return {
        story.evidence.point: story for path in files if limits.is_there(path) for story in _stories(path)
    }


def stories_of(run_directory: Path) -> Mapping[int, Story]:
    """Why cuts of a run were bad, by their numbers: of those of which it was asked. None of a run that lies in no study."""
    # visits/CELL/DATASET/VISIT/runs/RUN (study/layout.py)
    above = run_directory.parents
    return read_stories(above[5], run_directory) if len(above) > 5 and above[4].name == "visits" else {}


def story_of_cut(record: PointRecord, stories: Mapping[int, Story]) -> Story | None:
    """That of a cut among those of its run: a control has a number that another cut may have."""
    story = stories.get(record.point.number)
    return story if story and story.evidence.control is record.point.control else None


def explaining_stories(study: Path, run_directory: Path, cuts: Cuts) -> list[Story]:
    """Those of the bad cuts of a run that were bad again when they were replayed."""
    bad_numbers = {
        record.point.number
        for record in (*cuts.points, *cuts.recuts)
        if is_bad_cut(record) and cut_kind(record) != CONTROL
    }
    return [
        story
        for number, story in read_stories(study, run_directory).items()
        if number in bad_numbers and story.evidence.steadiness is not Repeatability.NOT_BAD_AGAIN
    ]


def keep_stories(study: Path, run_directory: Path, stories: Iterable[Story]) -> Path:
    """Beside those that were kept before; a story of the same cut takes the place of the former one."""
    path = stories_path(study, run_directory)
    with Folder.of_directory(study) as top, top.below(path.parent, make=True) as folder:
        # Who tells other stories of the run waits: each writes anew what it has read.
        fcntl.flock(folder, fcntl.LOCK_EX)
        kept = {story.evidence.point: story for story in (_stories(path) if top.has(path) else ())}
        kept |= {story.evidence.point: story for story in stories}
        lines = (codec.dumps(kept[number], indent=None) for number in sorted(kept))
        top.write(path, "".join(f"{line}\n" for line in lines))
    return path


def _stories(path: Path) -> Iterator[Story]:
    text = StringIO(codec.read_bytes(path).decode(errors="replace"))
    for number, line in enumerate(islice(text, MOST_LINES), start=1):
        try:
            yield codec.from_json(Story, json.loads(line), path=f"{path}, line {number}")
        except (json.JSONDecodeError, StudyError):
            continue
