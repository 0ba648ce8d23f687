"""`bedplate power-cut replay --profile`: the log of a stored run, cut again as other devices would leave it."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bedplate.analysis.power_cut_view import bound_words
from bedplate.cli.power_cuts.stored_job import job_of
from bedplate.errors import StudyError
from bedplate.figures.power_cut_points import finding_of
from bedplate.figures.power_cut_verdict import CONTROLS_BAD_MIN
from bedplate.host.command import Commands
from bedplate.host.devices.journal_device import MEMORY_DIRECTORY
from bedplate.host.interruption import held
from bedplate.host.ledger import Holding, Ledger
from bedplate.host.state import state_directory
from bedplate.model import codec
from bedplate.model.power_cut import CONTROLS, LOG_FILE, RECORDING_FILE, RecordingFacts
from bedplate.model.power_cut_verdict import CutCounts, finding_words
from bedplate.workloads.power_cut.run.kept_log import unpack_log
from bedplate.workloads.power_cut.run.log import read_log
from bedplate.workloads.power_cut.run.positions import choose_points
from bedplate.workloads.power_cut.run.power_bench import replayed
from bedplate.workloads.power_cut.run.workload import measured_span

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from bedplate.model.power_cut import PointRecord, Profile


@dataclass(frozen=True)
class UnpackedLog:
    """The log of a run in memory, and a ledger for what is done with it."""

    log: Path
    memory: Path
    ledger: Ledger


def require_log(folder: Path) -> None:
    """StudyError where the run's log was not kept."""
    if not (folder / LOG_FILE).exists():
        raise StudyError(
            f"the log of {folder.name} was not kept: no cut of it was bad but the controls, and its plan keeps no such log, or "
            'none so large; `keep_logs = "all"` in a plan keeps every log'
        )


@contextmanager
def unpacked(folder: Path) -> Iterator[UnpackedLog]:
    """The log of a run, unpacked for the time of the block."""
    memory = MEMORY_DIRECTORY / f"bedplate-{os.getpid()}-{os.urandom(4).hex()}"
    with Ledger.open(state_directory(), f"{os.getpid()}-replay") as ledger:
        try:
            ledger.note(Holding("log_directory", str(memory)))
            memory.mkdir(mode=0o755)
            unpack_log(folder / LOG_FILE, memory / "log")
            yield UnpackedLog(memory / "log", memory, ledger)
        finally:
            with held():
                ledger.release(Commands())


def cut_again(folder: Path, profiles: Sequence[Profile], *, points: int, seed: int) -> CutAgain:
    """Cut the log of a run at so many points more, shared evenly by the profiles; nothing is added to the study."""
    job = job_of(folder)
    recording = codec.read(RecordingFacts, folder / RECORDING_FILE)
    told: list[str] = []
    with unpacked(folder) as kept:
        with read_log(kept.log) as log:
            begin, end = measured_span(log)
            chosen = choose_points(
                log,
                points=points,
                profiles=profiles,
                seed=seed,
                measured_from=begin,
                measured_until=end,
                window_bytes=job.window_bytes,
                controls=CONTROLS,
            )
        again = replace(job, points=chosen)
        records = tuple(replayed(kept.log, again, told.append, memory=kept.memory, ledger=kept.ledger))
    return CutAgain(records, recording, tuple(told))


@dataclass(frozen=True)
class CutAgain:
    """What came of the points; `told` is what the workers said besides."""

    records: tuple[PointRecord, ...]
    recording: RecordingFacts
    told: tuple[str, ...] = ()

    @property
    def controls(self) -> CutCounts:
        """Cuts in which the device lied about its flushes, of those that could lose something."""
        return self._counts(each for each in self.records if each.point.control and each.acknowledged)

    @property
    def sees_losses(self) -> bool:
        """Whether enough controls were bad: what finds no loss where one must be proves nothing."""
        controls = self.controls
        return controls.bad > CONTROLS_BAD_MIN * controls.cuts

    def of(self, profile: Profile) -> CutCounts:
        """The cuts of one profile."""
        return self._counts(
            each for each in self.records if not each.point.control and each.point.profile is profile
        )

    def lines(self, profiles: Iterable[Profile]) -> Iterator[str]:
        """A line for each profile, and one for the controls."""
        for profile in profiles:
            tally = self.of(profile)
            found = finding_words(tally)
            yield f"{profile.value:11} bad {bound_words(tally)}{f': {found}' if found else ''}"
        yield f"{'controls':11} bad {self.controls.bad} of {self.controls.cuts}"

    def _counts(self, records: Iterable[PointRecord]) -> CutCounts:
        return CutCounts.together(CutCounts({finding_of(each, self.recording): 1}) for each in records)
