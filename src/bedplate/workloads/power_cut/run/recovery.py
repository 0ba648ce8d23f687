"""The recovery from a cut, cut again: what the cut left is put below the recorder, mounted, its engine started and asked.

Each cut of that recording is judged by what had been acknowledged before the first one. As in `worker.py` all goes with the worker's
namespaces: the recorder and its mount, and the loop devices with that.
"""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from bedplate.host.devices.image_file import fill_from
from bedplate.host.devices.passing_loop import passing_loop
from bedplate.host.recorder import Recorder, RecorderSizes
from bedplate.host.tunables import have_write_back
from bedplate.model.power_cut import RECOVERY_LOG_FILE, UNIT_PROFILES
from bedplate.units import GIB
from bedplate.workloads.power_cut.run.image import ImageBuilder
from bedplate.workloads.power_cut.run.kept_log import LogPacking
from bedplate.workloads.power_cut.run.log import JOURNAL, read_log
from bedplate.workloads.power_cut.run.positions import building_order
from bedplate.workloads.power_cut.run.recut import recovery_points
from bedplate.workloads.power_cut.run.replaying import judge, looked_again, why_again
from bedplate.workloads.power_cut.run.window import window

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from bedplate.host.command import Commands
    from bedplate.host.devices.device import AttachedDevice
    from bedplate.host.ledger import Holding
    from bedplate.model.power_cut import CutPoint, PointRecord, Profile
    from bedplate.visit.cut_engine import OracleAnswer
    from bedplate.workloads.power_cut.run.acknowledged import Acknowledged
    from bedplate.workloads.power_cut.run.bench import ReplayJob
    from bedplate.workloads.power_cut.run.cut_room import Room
    from bedplate.workloads.power_cut.run.image import Built
    from bedplate.workloads.power_cut.run.log import Log
    from bedplate.workloads.power_cut.run.recut import Recut
    from bedplate.workloads.power_cut.run.replaying import Recovered

_LOG_BYTES_MOST = GIB
# Of what is free: a log may be as large as the images, of which there are three at a time, and others work beside.
_SHARE_OF_ROOM = 8
# Of one cut: the image that it left, the copy that is recorded or durable, and that of a cut in recovery.
_IMAGES_AT_ONCE = 3
_LOG = "log"


class HeldByNamespace:
    """What is asked of a ledger where the namespace is the ledger."""

    def note(self, holding: Holding) -> None:
        """It ends with the namespace."""

    def settled(self, holding: Holding) -> None:
        """As above."""

    def held(self) -> tuple[Holding, ...]:
        """Nothing that anybody has to give back."""
        return ()


class Examiner(Protocol):
    """What a worker has for its images, and their room."""

    room: Room

    def recover(
        self, devices: Sequence[AttachedDevice], promised: Mapping[int, int], settled: Callable[[], object]
    ) -> tuple[Recovered, OracleAnswer | None]:
        """Mount and ask as of any image; `settled` is called once all is written back, before the unmount."""
        ...

    def replay(self, point: CutPoint, builder: ImageBuilder, promised: Acknowledged) -> PointRecord:
        """Build an image and say what came of it."""
        ...


class SecondCuts:
    """Cuts recoveries again in `directory`, one after the other; the log of one with a bad cut is packed into `kept`."""

    def __init__(
        self, job: ReplayJob, directory: Path, examiner: Examiner, *, commands: Commands, workers: int
    ) -> None:
        self._job = job
        self._folder = directory / "recovery"
        self._examiner = examiner
        self._commands = commands
        self._workers = workers

    def cut(
        self, recut: Recut, first: Built, promised: Acknowledged, *, recorder: Path, kept: Path
    ) -> list[PointRecord]:
        """What came of each cut in the recovery from `first`, and of the whole recovery; of that alone where it is bad."""
        self._examiner.room.demand(first.images * _IMAGES_AT_ONCE)
        self._folder.mkdir()
        try:
            recovered, answer = self._record(recorder, first, promised)
            reason = why_again(recovered, answer)
            if reason is not None:
                # As of any cut: what is the image's fault comes again.
                shutil.rmtree(self._folder)
                self._folder.mkdir()
                recovered, answer = self._record(recorder, first, promised)
            with read_log(self._folder / _LOG) as log:
                points = recovery_points(
                    log, recut, profiles=self._job.profiles, window_bytes=self._job.window_bytes
                )
                recovered = _with_page_writes(recovered, log, self._job.profiles)
                whole = points[-1]
                cut = window(log, whole, self._job.window_bytes)
                record = judge(whole, cut, promised, recovered, answer)
                record = looked_again(reason, why_again(recovered, answer), record)
                found = [record]
                if not record.outcome.is_bad:
                    # The whole is judged by its image as each cut is; how it was written is known of the recording alone.
                    replayed = self.replayed(log, points, first, promised)
                    found = [
                        replace(each, pages=recovered.pages) if each.point == whole else each
                        for each in replayed
                    ]
            if any(record.outcome.is_bad for record in found):
                _keep(self._folder / _LOG, kept / RECOVERY_LOG_FILE.format(first=recut.first))
            return found
        finally:
            shutil.rmtree(self._folder)

    def replayed(
        self, log: Log, points: Sequence[CutPoint], first: Built, promised: Acknowledged
    ) -> list[PointRecord]:
        """What came of cuts of a recovery that was recorded on the images of `first`, which stay."""
        self._folder.mkdir(exist_ok=True)
        builder = ImageBuilder(
            log,
            self._folder,
            self._job.sizes,
            window_bytes=self._job.window_bytes,
            lost=(JOURNAL,) if self._job.loses_journal else (),
            base=first.images,
        )
        with builder:
            return [self._examiner.replay(point, builder, promised) for point in building_order(points)]

    def _record(
        self, driver: Path, first: Built, promised: Acknowledged
    ) -> tuple[Recovered, OracleAnswer | None]:
        with below_recorder(
            self._job, first, driver, self._folder, commands=self._commands, workers=self._workers
        ) as (recorder, devices):
            for device in devices:
                have_write_back(device)
            return self._examiner.recover(devices, promised.highest, recorder.seal)


def _with_page_writes(recovered: Recovered, log: Log, profiles: Sequence[Profile]) -> Recovered:
    """With what reached the disk of the pages, where it is said to write a unit whole."""
    units = [each for each in profiles if each in UNIT_PROFILES.values()]
    if recovered.pages is None or recovered.places is None or not units:
        return recovered
    writes, uncovered = recovered.places.writes(log, range(len(log)), units[0])
    return replace(recovered, pages=replace(recovered.pages, writes=writes, uncovered_writes=uncovered))


@contextmanager
def below_recorder(
    job: ReplayJob, built: Built, driver: Path, folder: Path, *, commands: Commands, workers: int
) -> Iterator[tuple[Recorder, list[AttachedDevice]]]:
    """A recorder in the empty `folder` whose disks hold what these images do, and a loop device above each."""
    room = os.statvfs(folder)
    share = room.f_bavail * room.f_frsize // (_SHARE_OF_ROOM * workers)
    sizes = RecorderSizes(job.image_bytes, min(_LOG_BYTES_MOST, share), job.journal_bytes)
    with Recorder.start(
        driver, folder, sizes, ledger=HeldByNamespace(), commands=commands, late_us=job.late_us
    ) as recorder:
        for image, store in zip(built.images, recorder.stores, strict=True):
            _fill(store, image)
        with ExitStack() as stack:
            yield (
                recorder,
                [stack.enter_context(passing_loop(disk, job.sector_bytes)) for disk in recorder.disks],
            )


def _fill(store: Path, image: Path) -> None:
    target = os.open(store, os.O_RDWR | os.O_CLOEXEC)
    try:
        fill_from(image, target)
    finally:
        os.close(target)


def _keep(log: Path, target: Path) -> None:
    with LogPacking(log, target) as packing:
        packing.finish()
