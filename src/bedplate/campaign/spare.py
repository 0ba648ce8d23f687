"""What the cache holds that nothing uses any more: environments, builds and own programs of engines, data of workloads, restored datasets.

An environment is used while a checkout that ever started with it still has the requirements that it was
made from (the launcher notes them in its file `used-by`), a build while this bedplate would answer with
it, data while their workload says so, an image of a loaded dataset or of an aged file system
for some days after its last visit. Whatever a process stands on is left alone.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from bedplate import registry
from bedplate.campaign.dataset_inputs import UNUSED_DAYS, inputs_by_workload
from bedplate.campaign.engine_preparation import preparations
from bedplate.filesystem import aged_image, kept_dataset
from bedplate.host.file_lock import file_lock_if_free
from bedplate.host.mount import holders
from bedplate.host.whole_folder import is_work_folder, lock_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from bedplate.campaign.engine_preparation import OwnPrograms
    from bedplate.host.command import Commands

# As requirements/environment.sh names and marks them.
_ENVIRONMENT = re.compile(r"(runtime|development|package)-.+")
_COMPLETE, _REQUIREMENTS, _USED_BY = "complete", "requirements.txt", "used-by"
_BLOCK_BYTES = 512
_DAY_S = 86_400.0


@dataclass(frozen=True)
class Spare:
    """A folder that nothing uses, and why; `held` says who stands on it all the same.

    `lock` is held by whoever makes such a folder, `mark` is the file that makes it count.
    """

    path: Path
    reason: str
    size_bytes: int
    lock: Path
    mark: str
    held: tuple[str, ...] = ()


def find_spare(
    cache: Path, *, checkout: Path, commands: Commands, days: float = UNUSED_DAYS
) -> tuple[Spare, ...]:
    """Every folder of `cache` that nothing uses. Changes nothing.

    `checkout` is this bedplate's own, whose requirements count even where no launcher noted them. What is
    kept for the next start is unused when nothing asked for it in more than `days`.
    """
    return (
        *_spare_environments(cache / "environments", checkout),
        *_spare_of_others(cache, commands, days),
        *_spare_images(
            kept_dataset.datasets_directory(cache),
            kept_dataset.RECORD,
            kept_dataset.is_whole,
            "a loaded dataset",
            days,
        ),
        *_spare_images(
            aged_image.aged_directory(cache),
            aged_image.RECORD,
            aged_image.is_whole,
            "an aged file system",
            days,
        ),
    )


def remove(spare: Spare) -> str | None:
    """Remove a folder, its mark first; None when it is gone, else a sentence that says why it is not."""
    with ExitStack() as stack:
        try:
            spare.lock.touch()
            if not stack.enter_context(file_lock_if_free(spare.lock)):
                return f"{spare.path} is being made at this moment"
            held = holders(spare.path)
            if held:
                return f"{spare.path} is in use: {held[0]}"
            (spare.path / spare.mark).unlink(missing_ok=True)
            shutil.rmtree(spare.path)
        except OSError as error:
            return f"{error.filename or spare.path}: {error.strerror or error}"
    return None


def _spare_environments(directory: Path, checkout: Path) -> Iterator[Spare]:
    own = [checkout / "requirements" / f"{name}.txt" for name in ("runtime", "development", "package")]
    for path in _folders(directory):
        name = _ENVIRONMENT.fullmatch(path.name)
        if name is None or path.samefile(sys.prefix):
            continue
        if not (path / _COMPLETE).exists():
            reason = "half made by a start that was ended"
        elif not _is_wanted(path, own):
            reason = "no checkout has the requirements that it was made from"
        else:
            continue
        yield _spare(path, reason, directory / f"{name[1]}.lock", _COMPLETE)


def _is_wanted(environment: Path, own: list[Path]) -> bool:
    made_from = _read(environment / _REQUIREMENTS)
    noted = [line for line in _read(environment / _USED_BY).split(b"\n") if line.startswith(b"/")]
    users = [*map(os.fspath, own), *map(os.fsdecode, noted)]
    return bool(made_from) and any(_read(user) == made_from for user in users)


def _spare_of_others(cache: Path, commands: Commands, days: float) -> Iterator[Spare]:
    """Builds of engines, programs of own ones, then data of workloads: each knows its own."""
    own: Mapping[str, OwnPrograms] = registry.engine_parts("own_programs")
    of_engines = (made.unused(cache, commands) for made in preparations().values())
    of_programs = (programs.unused(cache, days) for programs in own.values())
    of_workloads = (made.unused(cache, days) for made in inputs_by_workload().values())
    for unused in chain(*of_engines, *of_programs, *of_workloads):
        yield _spare(unused.path, unused.reason, unused.lock, unused.mark)


def _spare_images(
    directory: Path, record: str, whole: Callable[[Path], bool], what: str, at_most_days: float
) -> Iterator[Spare]:
    """Of folders that hold an image and the record that is touched by whoever uses it."""
    for path in _folders(directory):
        if is_work_folder(path):
            reason = "half made by a start that was ended"
        elif not whole(path):
            reason = f"not a whole image of {what}"
        else:
            days = (time.time() - (path / record).stat().st_mtime) / _DAY_S
            if days <= at_most_days:
                continue
            reason = f"no visit has asked for it for {days:.0f} days"
        yield _spare(path, reason, lock_of(path), record)


def _spare(path: Path, reason: str, lock: Path, mark: str) -> Spare:
    return Spare(path, reason, _size_bytes(path), lock, mark, holders(path))


def _folders(directory: Path) -> list[Path]:
    """Its folders in order; a link is somebody's own business."""
    if not directory.is_dir():
        return []
    return sorted(path for path in directory.iterdir() if path.is_dir() and not path.is_symlink())


def _size_bytes(directory: Path) -> int:
    """What the disk gets back: allocated blocks, a file with several names counted once."""
    seen: dict[tuple[int, int], int] = {}
    for folder, _, files in os.walk(directory):
        for name in (".", *files):
            try:
                found = os.lstat(os.path.join(folder, name))  # noqa: PTH118 -- thousands of files
            except FileNotFoundError:
                continue
            seen[found.st_dev, found.st_ino] = found.st_blocks * _BLOCK_BYTES
    return sum(seen.values())


def _read(path: Path | str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 -- a name as it was noted
            return file.read()
    except OSError:
        return b""
