"""Cuts that were recorded in guests, recovered in guests of the same kernels. They need no root."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Generic, TypeVar

from bedplate.cli import tried_script
from bedplate.cli.cut_script import job_of, record_of_visit, require_trusted_kernel
from bedplate.cli.tried_script import TRY_LIMIT_S, ScriptQuestion, TriedScript
from bedplate.cuts.blame import BlameEvidence
from bedplate.cuts.records import LOG_FILE, RECORDING_FILE, RECOVERY_LOG_FILE, CutPoint, PointRecord
from bedplate.errors import BedplateError, RequirementMissing, StudyError
from bedplate.executors.protocol import Listener
from bedplate.executors.qemu.executor import prepare_guests
from bedplate.executors.qemu.kernels import GuestKernel, find_kernel
from bedplate.executors.qemu.slot import Errand, ErrandRunner, GuestProgram, GuestSlot
from bedplate.host.apt import PackageTree
from bedplate.host.files import cache_directory
from bedplate.model import codec, limits
from bedplate.model.cell import KernelLevels
from bedplate.model.levels import Scalar
from bedplate.model.visit import VisitRecord
from bedplate.plan.rules import GUEST_MEMORY_BYTES
from bedplate.study.layout import StudyLayout
from bedplate.units import format_count, parse_size
from bedplate.workloads.power_cut import cut_questions
from bedplate.workloads.power_cut.bench import Found
from bedplate.workloads.power_cut.cut_questions import ANSWER, IS_LAST, CutQuestion

# A single replay may take as long: repairs, servers and their answers have limits of minutes, and the log is unpacked first. A guest that is
# silent is noticed earlier. Of many replays each has so long at most on average, in an emulated guest.
_ERRAND_LIMIT_S, _REPLAY_LIMIT_S = 3600.0, 120.0

# What a guest has of its own in place of the host's (init.sh).
_HIDDEN = tuple(map(Path, ("/dev", "/proc", "/run", "/sys")))

_Record = TypeVar("_Record")


@dataclass(frozen=True)
class PreparedRun:
    """A run whose guest can be started: its folder, the visit's record, the kernel and the tools of its file system."""

    folder: Path
    record: VisitRecord
    kernel: GuestKernel
    trees: tuple[PackageTree, ...]


class GuestCuts:
    """Of the runs of a study, one guest at a time."""

    def __init__(self, study: Path) -> None:
        self._study = study
        self._memory_bytes = _guest_memory_bytes(study)
        self._errands = ErrandRunner(GuestSlot(cache_directory() / "guests"))

    def prepared(self, folder: Path, listener: Listener) -> PreparedRun:
        """What the guest of a run needs, fetched now as `bedplate setup` would.

        The kernel is the recorded release where the cache has it, else what the cell asked for. RequirementMissing where it cannot be had,
        StudyError where the study is not to be trusted with it.
        """
        _require_files(folder, ())
        record = record_of_visit(folder)
        require_seen_by_guests(folder, "copy the study elsewhere")
        require_trusted_kernel(record.cell.kernel, self._study)
        levels = _recorded(record)
        found = prepare_guests([replace(record.cell, kernel=levels)], listener)
        if found.failed:
            raise RequirementMissing(*(reason for reasons in found.failed.values() for reason in reasons))
        kernel = find_kernel(levels.release, cache_directory=cache_directory())
        if kernel is None:
            raise RequirementMissing(f"kernel {levels.release} is not in {cache_directory()}")
        return PreparedRun(folder, record, kernel, found.trees)

    def hold(
        self,
        run: PreparedRun,
        points: Sequence[CutPoint],
        *,
        most: int,
        told: Callable[[BlameEvidence], None],
    ) -> None:
        """Tell what the inquest into each point ends with, as soon as it does.

        StudyError where a file of the run is missing, BedplateError where an inquest could not be held, GuestFailed where the guest died.
        """
        self._ask(run, points, Found, _number_of, lambda found: told(found.evidence), most=most)

    def inquest(self, run: PreparedRun, point: CutPoint, *, most: int) -> Found:
        """The inquest into one point with the cut that loses no more than it must; errors as of `hold`."""
        founds = list[Found]()
        self._ask(run, [point], Found, _number_of, founds.append, most=most)
        return founds[0]

    def outcomes(self, run: PreparedRun, points: Sequence[CutPoint]) -> tuple[PointRecord, ...]:
        """What comes of each point, which may be others than the run's, in the order of their numbers; errors as of `hold`."""
        records = list[PointRecord]()
        self._ask(run, points, PointRecord, lambda record: record.point.number, records.append)
        return tuple(sorted(records, key=lambda record: record.point.number))

    def tried(self, run: PreparedRun, asked: ScriptQuestion) -> TriedScript:
        """How the script of a bundle ends; BedplateError where it did not end in time, GuestFailed where the guest died."""
        answers = list[TriedScript]()
        program = GuestProgram(tried_script.PROGRAM, asked)
        self._run(run, program, _Heard(TriedScript, answers.append), limit_s=_ERRAND_LIMIT_S + TRY_LIMIT_S)
        if len(answers) != 1:
            raise BedplateError(f"the guest ended, and said {len(answers)} times how the script had")
        return answers[0]

    def _ask(
        self,
        run: PreparedRun,
        points: Sequence[CutPoint],
        kind: type[_Record],
        number_of: Callable[[_Record], int],
        told: Callable[[_Record], object],
        *,
        most: int | None = None,
    ) -> None:
        """One answer of that kind for each point."""
        _require_files(run.folder, points)
        due = {point.number for point in points}

        def take(record: _Record) -> None:
            number = number_of(record)
            if number not in due:
                raise BedplateError(f"the guest spoke of cut {number}, of which nobody asked it")
            due.discard(number)
            told(record)

        job = job_of(run.folder, in_guest=True)
        question = CutQuestion(str(run.folder.resolve()), job, tuple(points), most)
        limit_s = _ERRAND_LIMIT_S + len(points) * (most or 1) * _REPLAY_LIMIT_S
        self._run(run, GuestProgram(cut_questions.PROGRAM, question), _Heard(kind, take), limit_s=limit_s)
        if due:
            missing, cuts = ", ".join(map(str, sorted(due))), format_count(len(due), "cut", "cuts")
            raise BedplateError(f"the guest ended, and said nothing of {cuts}: {missing}")

    def _run(
        self, run: PreparedRun, program: GuestProgram, heard: _Heard[_Record], *, limit_s: float
    ) -> None:
        subject, cell = job_of(run.folder, in_guest=True).subject, run.record.cell
        errand = Errand(
            program,
            run.kernel,
            cell.filesystem.type,
            cell.device.memory_bytes or self._memory_bytes,
            limit_s=limit_s,
            drivers={name: Path(str(path)) for name, path in subject.drivers.items()},
            needed=() if subject.build is None else (Path(subject.build.prefix),),
            trees=run.trees,
        )
        self._errands.run(errand, heard.hear)

    def close(self) -> None:
        """End the guest; safe to repeat."""
        self._errands.close()


@dataclass(frozen=True)
class GuestOfRun:
    """The guest for a bundle of one run, in which the inquest is held and the script tried.

    A guest caches the host's folders: it sees new files only in a folder that it had not read before.
    """

    guests: GuestCuts
    run: PreparedRun

    @property
    def words(self) -> str:
        """For a person."""
        return f"a guest with kernel {self.run.kernel.release}"

    def inquest(self, point: CutPoint, /, *, most: int) -> Found:
        """Why a cut of the run is bad; errors as of `GuestCuts.hold`."""
        return self.guests.inquest(self.run, point, most=most)

    def tried(self, asked: ScriptQuestion, /) -> TriedScript:
        """How the script of a bundle ends; errors as of `GuestCuts.tried`."""
        return self.guests.tried(self.run, asked)


class _Heard(Generic[_Record]):
    """Records that come in pieces: a line of the channel has an end."""

    def __init__(self, kind: type[_Record], told: Callable[[_Record], object]) -> None:
        self._kind, self._told, self._text = kind, told, ""

    def hear(self, event: Mapping[str, Scalar]) -> None:
        if event["event"] != ANSWER:
            return
        self._text += str(event[ANSWER])
        if event[IS_LAST]:
            text, self._text = self._text, ""
            self._told(codec.from_json(self._kind, json.loads(text)))


def require_seen_by_guests(place: Path, way_out: str) -> None:
    """RequirementMissing where a guest has a folder of its own in place of the one that holds this."""
    real = place.resolve()
    for hidden in _HIDDEN:
        if real.is_relative_to(hidden):
            raise RequirementMissing(
                f"a guest does not see {real}, as it has a {hidden} of its own: {way_out}"
            )


def _number_of(found: Found) -> int:
    return found.evidence.point


def _recorded(record: VisitRecord) -> KernelLevels:
    """The very release that was recorded, where it is one of the distribution's and the cache has it."""
    asked, release = record.cell.kernel, record.provenance.get("kernel")
    if asked.is_path or asked.is_built or release is None:
        return asked
    exact = KernelLevels(release)
    if exact.is_path or exact.is_built or find_kernel(release, cache_directory=cache_directory()) is None:
        return asked
    return exact


def _require_files(folder: Path, points: Sequence[CutPoint]) -> None:
    recoveries = {point.recovery_of for point in points if point.recovery_of is not None}
    there = {name for name in limits.names_in(folder) if fnmatch(name, RECOVERY_LOG_FILE.format(first="*"))}
    names = {
        LOG_FILE,
        RECORDING_FILE,
        *(RECOVERY_LOG_FILE.format(first=first) for first in recoveries),
        *there,
    }
    wrong = [folder / name for name in sorted(names) if not limits.is_file(folder / name)]
    if wrong:
        raise StudyError(*(f"{path} is missing, a link, or no file" for path in wrong))


def _guest_memory_bytes(study: Path) -> int:
    """Of the study's plan. Nothing else is read of it: what a plan names may be gone, or a stranger's."""
    path = StudyLayout(study).plan
    try:
        guest = tomllib.loads(codec.read_text(path)).get("guest", {})
        return parse_size(guest["memory"]) if "memory" in guest else GUEST_MEMORY_BYTES
    except (tomllib.TOMLDecodeError, ValueError, TypeError, AttributeError) as error:
        raise StudyError(f"{path}: the memory of its guests cannot be read: {error}") from error
