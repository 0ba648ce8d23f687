"""The job of a stored run, which a stranger may have written: what it would mount and start is checked before anything is."""

from __future__ import annotations

import os
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
from bedplate.plan.platforms import QEMU
from bedplate.workloads.power_cut.run.bench import JOB_FILE, ReplayJob, cut_engine

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from bedplate.model.cell import FilesystemLevels, KernelLevels
    from bedplate.visit.cut_engine import Subject

# What options of mounts are made of; nothing of it means anything to a shell.
_OPTION = re.compile(r"[A-Za-z0-9_.:=+%@^~-]+")
# As useradd(8) takes it.
_NAME = re.compile(r"[a-z_][a-z0-9_-]{0,31}")
_OTHERS_WRITE = 0o022


def job_of(folder: Path, *, in_guest: bool = False) -> ReplayJob:
    """What the log of a run is replayed with, here or `in_guest`.

    StudyError with each reason where a mount option or a setting is none that a plan may have, or a program is neither in bedplate's cache
    nor root's alone: a study that was copied from elsewhere could bring its own. PlanError for an engine that is not known,
    RequirementMissing where it is here, and the running kernel lacks the file system: each image would seem to be lost.
    """
    job = codec.read(ReplayJob, folder / JOB_FILE)
    reasons = (
        *_mounting(job.filesystem),
        *_programs(job.subject),
        *_settings(job.subject),
        *_account(job.subject),
    )
    if reasons:
        raise StudyError(*(f"{folder / JOB_FILE}: {reason}" for reason in reasons))
    if not in_guest and (lacking := lacking_here(job.filesystem.type)) is not None:
        raise RequirementMissing(
            f"{lacking}, and cuts are recovered under the kernel that runs this: run it on a machine whose kernel has it; the study may be copied "
            "there. What was recorded in a guest needs no such machine"
        )
    return job


def record_of_visit(folder: Path) -> VisitRecord:
    """The record of the visit that a run is a part of."""
    return codec.read(VisitRecord, folder.parent.parent / "visit.json")


def is_for_guest(folder: Path, *, anyway: bool = False) -> bool:
    """Whether the cuts of a run are recovered in a guest, as the visit was in one: `anyway`, or as the running kernel lacks the file system."""
    record = record_of_visit(folder)
    return record.executor == QEMU and (anyway or lacking_here(record.cell.filesystem.type) is not None)


def require_trusted_kernel(levels: KernelLevels, study: Path) -> None:
    """StudyError where a study names a kernel by a path that may be a stranger's: a guest reads what its caller may read."""
    if not levels.is_path:
        return
    named = Path(str(levels.release))
    if named.resolve().is_relative_to(study.resolve()) or not _is_trusted(named, (0, os.geteuid())):
        raise StudyError(
            f"kernel {str(named)!r} may be a stranger's, and no guest was started: it may not lie in the study, and none but root and you may "
            "write it or the folders above it"
        )


def told_of_kernel(folder: Path, here: str | None = None, digest: str | None = None) -> str | None:
    """That the cuts are recovered under another kernel than in the study: under `here`, by default the running one.

    None under the same one, or where the study does not say. The `digest` of a guest's kernel tells builds of one release apart.
    """
    provenance = record_of_visit(folder).provenance
    recorded, here = provenance.get("kernel"), here or platform.release()
    if recorded is None or (recorded == here and digest in (None, provenance.get("kernel_digest"))):
        return None
    build = "another build of it" if recorded == here else here
    return f"recorded and judged under kernel {recorded}, and recovered here under {build}: another verdict may be the kernel's"


def lacking_here(kind: str) -> str | None:
    """That the running kernel lacks a file system; None where it has it."""
    machine, types = read_machine(), TRAITS[kind].kernel_types if kind in TRAITS else (kind,)
    if set(types) & set(machine.filesystems):
        return None
    return f"kernel {machine.kernel_release} has no {' or '.join(types)}"


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
    for reason in cut_engine(subject.engine).refused_settings(subject):
        yield f"{reason}; nothing was started"


def _account(subject: Subject) -> Iterator[str]:
    account = subject.account
    if account is not None and (account.uid == 0 or not _NAME.fullmatch(account.name)):
        yield f"account {account.name!r} ({account.uid}) is none that servers run as; nothing was started"


def _is_trusted(path: Path, owners: Collection[int] = (0,)) -> bool:
    """Whether none but its owners may write it. One that is gone is said to be gone by whoever starts it."""
    found = path.resolve()
    if not path.is_absolute() or found.is_relative_to(cache_directory().resolve()):
        return path.is_absolute()
    there = [place for place in (found, *found.parents) if place.exists()]
    return all(
        status.st_uid in owners and not status.st_mode & _OTHERS_WRITE
        for status in (place.stat() for place in there)
    )
