"""The stories of bad cuts: those that a visit told of its own, and those that were made of its kept log later."""

from __future__ import annotations

import fcntl
import json
import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from bedplate.errors import StudyError
from bedplate.model import codec
from bedplate.model.power_cut_blame import STORIES_FILE, STORIES_FOLDER, Story
from bedplate.study.layout import StudyLayout

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path


def stories_path(study: Path, run_directory: Path) -> Path:
    """Where later stories of a run are kept: a finished visit is not written to."""
    below = run_directory.relative_to(StudyLayout(study).visits)
    return study / STORIES_FOLDER / below / STORIES_FILE


def read_stories(study: Path, run_directory: Path) -> Mapping[int, Story]:
    """By the number of the cut; a later story takes the place of a visit's own, and a damaged line is none."""
    files = (run_directory / STORIES_FILE, stories_path(study, run_directory))
    return {story.evidence.point: story for path in files if path.exists() for story in _stories(path)}


def keep_stories(study: Path, run_directory: Path, stories: Iterable[Story]) -> Path:
    """Beside those that were kept before; a story of the same cut takes the place of the former one."""
    path = stories_path(study, run_directory)
    folder = _folder_in(study, path.parent.relative_to(study).parts)
    try:
        # Who tells other stories of the run waits: each writes anew what it has read.
        fcntl.flock(folder, fcntl.LOCK_EX)
        _refuse_link(folder, path)
        kept = {story.evidence.point: story for story in (_stories(path) if path.exists() else ())}
        kept |= {story.evidence.point: story for story in stories}
        lines = (codec.dumps(kept[number], indent=None) for number in sorted(kept))
        part = f".{path.name}.{os.getpid()}.part"
        # A new file: whatever stood there under that name is not written to.
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644, dir_fd=folder)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
        os.replace(part, path.name, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        os.close(folder)
    return path


def _folder_in(study: Path, names: Iterable[str]) -> int:
    """A descriptor of a folder below a study, made where it is missing.

    StudyError where a link stands in its place, as in a study that was copied: by it root would write elsewhere.
    """
    place = study
    folder = os.open(study, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for name in names:
        above, place = folder, place / name
        try:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=above)
            folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
        except OSError as error:
            raise StudyError(
                f"{place} is a link, or no folder: no story is written through it; remove it"
            ) from error
        finally:
            os.close(above)
    return folder


def _refuse_link(folder: int, path: Path) -> None:
    try:
        mode = os.stat(path.name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        raise StudyError(f"{path} is a link, or no file: no story is written through it; remove it")


def _stories(path: Path) -> Iterator[Story]:
    for number, line in enumerate(codec.read_bytes(path).decode(errors="replace").splitlines(), start=1):
        try:
            yield codec.from_json(Story, json.loads(line), path=f"{path}, line {number}")
        except (json.JSONDecodeError, StudyError):
            continue
