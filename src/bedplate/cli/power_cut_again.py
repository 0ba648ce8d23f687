"""`bedplate power-cut replay --profile`: the log of a stored run, cut again as other devices would leave it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bedplate.analysis.power_cut_view import bound_words
from bedplate.cli.power_cuts.stored_job import job_of
from bedplate.errors import StudyError
from bedplate.figures.power_cut_points import finding_of
from bedplate.figures.power_cut_verdict import CONTROLS_BAD_MIN
from bedplate.model import codec, no_links
from bedplate.model.power_cut import CONTROLS, LOG_FILE, RECORDING_FILE, RecordingFacts
from bedplate.model.power_cut_verdict import CutCounts, finding_words
from bedplate.workloads.power_cut.run.kept_log import unpacked
from bedplate.workloads.power_cut.run.log import read_log
from bedplate.workloads.power_cut.run.positions import choose_points
from bedplate.workloads.power_cut.run.power_bench import replayed
from bedplate.workloads.power_cut.run.workload import measured_span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from bedplate.model.power_cut import CutPoint, PointRecord, Profile


def require_log(folder: Path) -> None:
    """StudyError where the run's log was not kept."""
    if not no_links.is_there(folder / LOG_FILE):
        raise StudyError(
            f"the log of {folder.name} was not kept: no cut of it was bad but the controls, and its plan keeps no such log, or "
            'none so large; `keep_logs = "all"` in a plan keeps every log'
        )


def cut_again(
    folder: Path,
    profiles: Sequence[Profile],
    *,
    points: int,
    seed: int,
    recover: Callable[[Sequence[CutPoint]], tuple[PointRecord, ...]] | None = None,
) -> CutAgain:
    """Cut the log of a run at so many points more, shared evenly by the profiles; nothing is added to the study.

    `recover` says what comes of the points where they are not recovered here; what workers said besides is not known then.
    """
    job = job_of(folder, in_guest=recover is not None)
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
        if recover is None:
            again = replace(job, points=chosen)
            records = tuple(replayed(kept.log, again, told.append, memory=kept.memory, ledger=kept.ledger))
    if recover is not None:
        records = recover(chosen)
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
