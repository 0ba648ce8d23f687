"""The job of a stored run, which a stranger may have written: what it would mount and start is checked before anything is."""

from __future__ import annotations

import platform
import re
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import RequirementMissing, StudyError
from bedplate.filesystem.registry import filesystem_for
from bedplate.host.cache import cache_directory
from bedplate.host.facts import read_machine
from bedplate.model import codec
from bedplate.model.filesystem import TRAITS, unsafe_options
from bedplate.model.visit import VisitRecord
from bedplate.workloads.power_cut.run.bench import JOB_FILE, ReplayJob, cut_engine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bedplate.model.cell import FilesystemLevels
    from bedplate.visit.cut_engine import Subject

# What options of mounts are made of; nothing of it means anything to a shell.
_OPTION = re.compile(r"[A-Za-z0-9_.:=+%@^~-]+")
_OTHERS_WRITE = 0o022


def job_of(folder: Path) -> ReplayJob:
    """What the log of a run is replayed with.

    StudyError with each reason where a mount option or a setting is none that a plan may have, or a program is neither in bedplate's cache
    nor root's alone: a study that was copied from elsewhere could bring its own. PlanError for an engine that is not known,
    RequirementMissing where the running kernel lacks the file system: each image would seem to be lost.
    """
    job = codec.read(ReplayJob, folder / JOB_FILE)
    reasons = (*_mounting(job.filesystem), *_programs(job.subject), *_settings(job.subject))
    if reasons:
        raise StudyError(*(f"{folder / JOB_FILE}: {reason}" for reason in reasons))
    _require_in_kernel(job.filesystem.type)
    return job


def told_of_kernel(folder: Path) -> str | None:
    """That the cuts are recovered under another kernel than in the study; None under the same one, or where the study does not say."""
    recorded, here = (
        codec.read(VisitRecord, folder.parent.parent / "visit.json").provenance.get("kernel"),
        platform.release(),
    )
    if recorded in (None, here):
        return None
    return f"recorded and judged under kernel {recorded}, and recovered here under {here}: another verdict may be the kernel's"


def _require_in_kernel(kind: str) -> None:
    machine, types = read_machine(), TRAITS[kind].kernel_types
    if set(types) & set(machine.filesystems):
        return
    raise RequirementMissing(
        f"kernel {machine.kernel_release} has no {' or '.join(types)}, and cuts are recovered under the kernel that runs this: run it on a machine "
        "whose kernel has it; the study may be copied there"
    )


def _mounting(levels: FilesystemLevels) -> Iterator[str]:
    yield from unsafe_options(levels)
    for word in filesystem_for(levels.type).mount_options(levels):
        if not _OPTION.fullmatch(word):
            yield f"mount option {word!r} has characters that none has; nothing was mounted"


def _programs(subject: Subject) -> Iterator[str]:
    paths = [str(path) for path in subject.drivers.values()]
    if subject.build is not None:
        paths.append(subject.build.prefix)
    for path in paths:
        if not _is_trusted(Path(path)):
            yield (
                f"program {path!r} is not in {cache_directory()}, and others than root may write it; nothing was started. BEDPLATE_CACHE "
                "names another cache; a run of the plan makes the programs"
            )


def _settings(subject: Subject) -> Iterator[str]:
    for reason in cut_engine(subject.engine).refused_settings(subject.settings):
        yield f"{reason}; nothing was started"


def _is_trusted(path: Path) -> bool:
    """One that is gone is said to be gone by whoever starts it."""
    found = path.resolve()
    if not path.is_absolute() or found.is_relative_to(cache_directory().resolve()):
        return path.is_absolute()
    there = [place for place in (found, *found.parents) if place.exists()]
    return all(
        status.st_uid == 0 and not status.st_mode & _OTHERS_WRITE
        for status in (place.stat() for place in there)
    )
