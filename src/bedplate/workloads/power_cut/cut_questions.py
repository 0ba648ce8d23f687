"""What is asked of cuts of a kept log, answered here; or, as a program, in a guest whose kernel has the file system.

A log comes with a job that says what it is replayed with; a stranger's is refused before anything is mounted or started.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from bedplate.cuts.blame import BlameEvidence, Found, Repeatability
from bedplate.cuts.points import read_cuts
from bedplate.cuts.records import LOG_FILE, RECORDING_FILE, CutPoint, PointRecord
from bedplate.errors import EXIT_DONE, EXIT_SOME_RUNS_FAILED, BedplateError, RequirementMissing, StudyError
from bedplate.filesystem.registry import filesystem_for
from bedplate.host.facts import read_machine
from bedplate.host.files import cache_directory
from bedplate.model import codec, limits
from bedplate.model.cell import FilesystemLevels, KernelLevels
from bedplate.model.durability import with_kept_journal
from bedplate.model.filesystem import TRAITS, unsafe_options
from bedplate.model.levels import Scalar
from bedplate.model.visit import Durability, VisitRecord
from bedplate.plan.rules import QEMU
from bedplate.visit.cuts import Subject
from bedplate.visit.life import EventStream
from bedplate.workloads.power_cut.bench import JOB_FILE, ReplayJob, cut_engine, inquire, judge_alone, replayed
from bedplate.workloads.power_cut.log import LOG_BYTES_MOST, UnpackedLog, free_bytes, unpack_log, unpacked

_Question = TypeVar("_Question")

PROGRAM = "bedplate.workloads.power_cut.cut_questions"

# The name of the event that has a part of an answer as JSON, and of its value; and whether it is the last part.
ANSWER, IS_LAST = "answer", "last"

# A line of the channel has an end, and a story of thousands of writes is longer. An escaped character takes six.
_PART_CHARACTERS = 100_000


@dataclass(frozen=True)
class CutQuestion:
    """Why these points of the run in `folder` are bad, each by `most` replays at most; without `most`, what comes of each.

    Of the latter the points may be others than the job has.
    """

    folder: str
    job: ReplayJob
    points: tuple[CutPoint, ...]
    most: int | None = None


def inquests(question: CutQuestion, most: int) -> Iterator[Found]:
    """Why each point is bad, one after the other; the log is unpacked once."""
    folder = Path(question.folder)
    with unpacked(folder) as unpacked_log:
        for point in question.points:
            yield inquest(folder, question.job, point, unpacked_log, most=most)


def inquest(folder: Path, job: ReplayJob, point: CutPoint, unpacked_log: UnpackedLog, *, most: int) -> Found:
    """Why a point of the run in `folder`, whose log is `unpacked_log`, is bad."""
    return inquire(
        unpacked_log.log,
        job,
        point,
        most=most,
        memory=unpacked_log.memory,
        ledger=unpacked_log.ledger,
        recording_file=folder / RECORDING_FILE,
        recoveries=recoveries_of(point, folder, unpacked_log),
    )


def outcomes(question: CutQuestion, report: Callable[[str], None]) -> Iterator[PointRecord]:
    """The record of each point as it comes: first of those that cut the recording, then of those that cut a recovery.

    `report` hears what workers say besides.
    """
    folder = Path(question.folder)
    of_recording = tuple(point for point in question.points if point.recovery_of is None)
    with unpacked(folder) as unpacked_log:
        if of_recording:
            job = replace(question.job, points=of_recording, recuts=())
            yield from replayed(
                unpacked_log.log, job, report, memory=unpacked_log.memory, ledger=unpacked_log.ledger
            )
        for point in question.points:
            if recoveries := recoveries_of(point, folder, unpacked_log):
                yield judge_alone(
                    unpacked_log.log,
                    question.job,
                    point,
                    memory=unpacked_log.memory,
                    ledger=unpacked_log.ledger,
                    recoveries=recoveries,
                )


def recoveries_of(point: CutPoint, folder: Path, unpacked_log: UnpackedLog) -> tuple[Path, ...]:
    """The logs up to that of the recovery that a point cuts, each unpacked once; none of a cut of the recording itself."""
    found = []
    for name in point.recovery_log_files:
        path = unpacked_log.memory / Path(name).stem
        if not path.exists():
            # A recovery is recorded on its own, with the room of a recording.
            most_bytes = min(LOG_BYTES_MOST, free_bytes(unpacked_log.memory) * 3 // 4)
            unpack_log(folder / name, path, most_bytes)
        found.append(path)
    return tuple(found)


def answer_events(record: object) -> Iterator[Mapping[str, Scalar]]:
    """The events that bring a record, in order."""
    text = codec.dumps(record, indent=None)
    starts = range(0, len(text), _PART_CHARACTERS)
    for start in starts:
        part = text[start : start + _PART_CHARACTERS]
        yield {"event": ANSWER, ANSWER: part, IS_LAST: start == starts[-1]}


def _answers(question: CutQuestion) -> Iterator[object]:
    if question.most is None:
        return outcomes(question, lambda text: print(text, file=sys.stderr))
    return inquests(question, question.most)


def answer(
    arguments: list[str], kind: type[_Question], answer_question: Callable[[_Question], Iterator[object]]
) -> int:
    """As a program: read the question of that kind, and print the events of each answer as soon as it is known."""
    parser = argparse.ArgumentParser(description=answer.__doc__)
    parser.add_argument("question", type=Path, help="the question, as JSON")
    parser.add_argument("folder", type=Path, help="as for a visit; nothing is written to it")
    given = parser.parse_args(arguments)
    events = EventStream(sys.stdout)
    try:
        for each in answer_question(codec.read(kind, given.question)):
            for event in answer_events(each):
                events.emit(event)
    except BedplateError as error:
        print(*error.reasons, sep="\n", file=sys.stderr)
        return EXIT_SOME_RUNS_FAILED
    return EXIT_DONE


def main(arguments: list[str]) -> int:
    """Answer a CutQuestion."""
    return answer(arguments, CutQuestion, _answers)


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
        *_mounting_again(job.filesystem),
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


def _mounting_again(levels: FilesystemLevels) -> Iterator[str]:
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


def require_log(folder: Path) -> None:
    """StudyError where the run's log was not kept."""
    if not limits.is_there(folder / LOG_FILE):
        raise StudyError(
            f"the log of {folder.name} was not kept: no cut of it was bad but the controls, and its plan keeps no such log, or "
            'none so large; `keep_logs = "all"` in a plan keeps every log'
        )


def beside_record(evidence: BlameEvidence, record: PointRecord | None) -> BlameEvidence:
    """The evidence with the study's own look at the cut counted in: another finding, or a first look that failed, is told as a change."""
    if record is None or evidence.steadiness is not Repeatability.STEADY:
        return evidence
    alike = record.outcome is evidence.outcome and record.failed_once is None
    return evidence if alike else replace(evidence, steadiness=Repeatability.CHANGES)


def record_of(folder: Path, point: CutPoint) -> PointRecord | None:
    """The study's own record of a cut; None without one."""
    return records_of(folder).get((point.control, point.number))


def records_of(folder: Path) -> Mapping[tuple[bool, int], PointRecord]:
    """The study's own records of a run's cuts, by whether each is a control, and its number."""
    cuts = read_cuts(folder)
    return {(each.point.control, each.point.number): each for each in (*cuts.points, *cuts.recuts)}


def declared_of(folder: Path) -> Durability | None:
    """What flushes and settings declared for the cell of a run: of the visit that it is a part of.

    A journal in memory is no reason where the plan had it kept (`ram_journal`).
    """
    declared = record_of_visit(folder).durability
    recording = read_cuts(folder).recording
    if declared is None or recording is None or recording.loses_journal:
        return declared
    return with_kept_journal(declared)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
