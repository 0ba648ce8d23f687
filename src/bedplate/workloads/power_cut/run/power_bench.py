"""Power cuts in a visit: the stand that is recorded, and the workers that replay cuts of its log.

The stand is made as the visit's own is, by the cell's adapter and levels, on the recorder's disks. Everything of it
stands in the ledger. A worker is the first process of its own namespaces and ends with the visit.
"""

from __future__ import annotations

import json
import os
import selectors
import shutil
import signal
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Self, TypeVar

from bedplate.errors import BedplateError, RequirementMissing
from bedplate.filesystem.after_cut import stands_beside_twins
from bedplate.filesystem.blocks.owners import Layout
from bedplate.filesystem.comparison import verify
from bedplate.filesystem.flushes import write_back_wanted
from bedplate.filesystem.registry import filesystem_for
from bedplate.filesystem.site import Site
from bedplate.host.block_requests import device_number, request_trace
from bedplate.host.command import started_apart
from bedplate.host.foreign_syncs import call_counter
from bedplate.host.interruption import held
from bedplate.host.ledger import Holding
from bedplate.host.process import start_time
from bedplate.host.recorder import DRIVER as RECORDER_DRIVER
from bedplate.host.recorder import Recorder, RecorderSizes
from bedplate.model import codec
from bedplate.model.cell import JOURNAL_IN_RAM
from bedplate.model.power_cut import (
    JOURNAL_KEPT,
    RAM_JOURNAL,
    PointRecord,
    late_us,
    sector_bytes,
)
from bedplate.units import MIB
from bedplate.visit.engine_server import ServerSite
from bedplate.visit.untorn_writes import UntornWrites, untorn_writes
from bedplate.workloads.power_cut.run.bench import DATA_DIRECTORY
from bedplate.workloads.power_cut.run.cut_room import RECOVERY_BYTES, free_bytes, log_limit_bytes
from bedplate.workloads.power_cut.run.found import Found
from bedplate.workloads.power_cut.run.image import rebuild
from bedplate.workloads.power_cut.run.log import JOURNAL, read_log
from bedplate.workloads.power_cut.run.pressure import ROOM_BYTES, OwnWriteback, Pace, own_writeback
from bedplate.workloads.power_cut.run.recorded_age import RecordedAge, make_filesystem

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator, Sequence

    from bedplate.host.block_requests import RequestTrace
    from bedplate.host.command import Account, Commands
    from bedplate.host.foreign_syncs import CallCounter
    from bedplate.host.ledger import Holdings, Ledger
    from bedplate.model.cell import Cell, FilesystemLevels
    from bedplate.model.power_cut import CutPoint
    from bedplate.model.visit import VisitRequest
    from bedplate.workloads.power_cut.run.bench import ReplayJob
    from bedplate.workloads.power_cut.run.image import Built
    from bedplate.workloads.power_cut.run.log import Log

# Where the plan names a device for the journal, its recorded twin need not be as large.
_JOURNAL_BYTES = 128 * MIB
# So far the clients may fill it; what the engine and the kernel still hold of theirs comes on top.
_SHARE_FOR_CLIENTS = 0.8
_SHARE_DEALT_OUT = 0.7
_SYNC_LIMIT_S = 600.0
_WORKERS_MOST = 4
_QUOTED = 2000
# The programs of workers: what comes of each point of a job, and why one of them is bad.
REPLAYS = "bedplate.workloads.power_cut.run.worker"
INQUESTS = "bedplate.workloads.power_cut.run.inquest_worker"
_Record = TypeVar("_Record")


@dataclass
class RecordedSetup:
    """A file system on devices that log, mounted for the engine."""

    data_directory: Path
    mark_file: Path
    log: Path
    memory: Path
    neighbour: Path
    disk: Path
    own_writeback: OwnWriteback | None
    log_limit_bytes: int
    journal_bytes: int | None
    loses_journal: bool
    recorder: Recorder
    request: VisitRequest
    account: Account
    commands: Commands
    ledger: Ledger
    socket_directory: Path
    tracefs: Path
    undo: ExitStack
    room_bytes: int = ROOM_BYTES
    untorn: UntornWrites | None = None
    age: RecordedAge = field(default_factory=RecordedAge)
    layout: Callable[[], Layout] = Layout
    resume: Callable[[Callable[[], object]], bool] = lambda _: False
    complaints: Callable[[], tuple[str, ...]] = tuple
    journal: Path | None = None

    def server_site(self) -> ServerSite:
        """For a server of the cell's build; its folder of sockets goes with the setup. What its pages are written by is `untorn` from now on."""
        self.socket_directory.mkdir(mode=0o700)
        shutil.chown(self.socket_directory, self.account.uid, self.account.gid)
        self.undo.callback(shutil.rmtree, self.socket_directory, ignore_errors=True)
        request, counts = self.request, self.memory / "untorn-writes"
        self.untorn = untorn_writes(request.cell, request.native_drivers, counts, self.account)
        site = ServerSite(
            build=self.request.build,
            data_directory=self.data_directory,
            socket_directory=self.socket_directory,
            log=self.memory / "server.log",
            account=self.account,
            commands=self.commands,
            ledger=self.ledger,
        )
        return self.untorn.below(site) if self.untorn else site

    def pace(self, duration_s: float) -> Callable[[], float]:
        """By the log's size, from now on."""
        return Pace.begin(self.log, self.log_for_clients_bytes(), duration_s).pause_s

    def mark(self, text: str) -> None:
        """Through the recorder; an interruption between its open and its close would leave the recorder busy."""
        with held():
            self.recorder.write_mark(text)

    def mark_count(self) -> int:
        """By the recorder's own word; RecorderFailed if it has died."""
        return self.recorder.status().marks

    def settle(self) -> None:
        """This file system only."""
        self.commands.run(["sync", "--file-system", str(self.data_directory)], timeout_s=_SYNC_LIMIT_S)

    def log_for_clients_bytes(self) -> int:
        """Below the size at which they are told to end."""
        return int(_SHARE_DEALT_OUT * self.log_limit_bytes)

    def await_own_writeback(self, duration_s: float) -> None:
        """Until what the file system writes back by itself falls into a recording of so long."""
        if (own := self.own_writeback) is not None:
            threading.Event().wait(own.pause_s(time.monotonic() - own.mounted_s, duration_s))

    def foreign_syncs(self) -> CallCounter:
        """Between preparation and end nobody here calls sync(2)."""
        return call_counter(self.tracefs, ledger=self.ledger, commands=self.commands)

    def block_requests(self, *, with_done: bool) -> RequestTrace:
        """Who asks the recorded devices for what; CallsNotCounted where the kernel does not tell."""
        devices = [device_number(path) for path in (self.disk, self.journal) if path is not None]
        return request_trace(
            devices, self.tracefs, ledger=self.ledger, commands=self.commands, with_done=with_done
        )

    def is_log_nearly_full(self) -> bool:
        """By its file, which no request of the recorder's has to wait for."""
        return self.log.stat().st_size >= _SHARE_FOR_CLIENTS * self.log_limit_bytes

    def seal(self) -> None:
        """End the log here."""
        self.recorder.seal()


@dataclass(frozen=True)
class PowerBench:
    """Records and replays in a visit: `memory` is the visit's folder on tmpfs, `place` its folder of the ledger."""

    request: VisitRequest
    account: Account
    commands: Commands
    ledger: Ledger
    memory: Path
    place: Path

    @property
    def cell(self) -> Cell:
        """The cell under test."""
        return self.request.cell

    @contextmanager
    def recorded(
        self,
        image_bytes: int,
        duration_s: float,
        *,
        unmounted: Callable[[Sequence[str]], object] = lambda _: None,
        at_rest: Callable[[Recorder], object] = lambda _: None,
    ) -> Iterator[RecordedSetup]:
        """From mkfs to a mounted file system with a folder for the engine; all given back afterwards.

        `unmounted` is called with the names of its devices when it is unmounted again, and they are still attached. `at_rest` is called when they
        are detached, while the recorder still logs.
        """
        levels, dataset = self.request.cell.filesystem, self.request.dataset.levels
        sizes = RecorderSizes(image_bytes, log_limit_bytes(self.memory), self._journal_bytes(levels))
        folder, mount_point = self.memory / "recording", self.place / "recorded"
        folder.mkdir()
        mount_point.mkdir()
        with ExitStack() as undo:
            undo.callback(mount_point.rmdir)
            recorder = undo.enter_context(self._recorder(folder, sizes))
            undo.callback(at_rest, recorder)
            attach = partial(
                recorder.attach, write_back=write_back_wanted(levels), sector_bytes=sector_bytes(dataset)
            )
            disk = attach(recorder.disk)
            undo.callback(recorder.detach, disk)
            journal = None if recorder.journal is None else attach(recorder.journal)
            if journal is not None:
                undo.callback(recorder.detach, journal)
            undo.callback(unmounted, [each.name for each in (disk, journal) if each is not None])
            site = Site(levels, disk, mount_point, self.commands, journal)
            aged = make_filesystem(site, ledger=self.ledger)
            undo.callback(self._unmount, site)
            with own_writeback(levels.type, duration_s, ledger=self.ledger) as own:
                self._mount(site)
            age = RecordedAge.begin(site, aged)
            data_directory = mount_point / DATA_DIRECTORY
            data_directory.mkdir(mode=0o700)
            shutil.chown(data_directory, self.account.uid, self.account.gid)
            yield RecordedSetup(
                data_directory,
                recorder.mark,
                recorder.log,
                self.memory,
                mount_point / "neighbour",
                Path(disk.path),
                own,
                sizes.log_limit_bytes,
                sizes.journal_bytes,
                levels.journal_device == JOURNAL_IN_RAM and dataset.get(RAM_JOURNAL) != JOURNAL_KEPT,
                recorder,
                self.request,
                self.account,
                self.commands,
                self.ledger,
                self.place / "recorded-socket",
                self.place / "tracefs",
                undo,
                age=age,
                layout=partial(filesystem_for(levels.type).layout, site),
                resume=partial(filesystem_for(levels.type).resume, site),
                complaints=partial(filesystem_for(levels.type).complaints, site),
                journal=Path(journal.path) if journal else None,
            )

    def replayed(
        self, log: Path, job: ReplayJob, told: Callable[[str], None], *, kept: Path
    ) -> Iterator[PointRecord]:
        """What came of each point, and of the recoveries that are cut again, from as many workers as keep the processors busy.

        The logs of recoveries that are wanted are packed into `kept`.
        """
        more = (
            ("--recorder", str(self._driver()), "--kept", str(kept)) if job.recuts or job.unreadable else ()
        )
        return replayed(log, job, told, memory=self.memory, ledger=self.ledger, more=more)

    def _recorder(self, folder: Path, sizes: RecorderSizes) -> Recorder:
        late = late_us(self.request.dataset.levels)
        return Recorder.start(
            self._driver(), folder, sizes, ledger=self.ledger, commands=self.commands, late_us=late
        )

    def _driver(self) -> Path:
        path = self.request.native_drivers.get(RECORDER_DRIVER)
        if path is None:
            raise RequirementMissing(
                f"the request names no driver {RECORDER_DRIVER}; `bedplate setup` builds it"
            )
        return Path(path)

    def _journal_bytes(self, levels: FilesystemLevels) -> int | None:
        if levels.journal != "external":
            return None
        device = self.request.journal_device
        return _JOURNAL_BYTES if device is None or device.image_bytes is None else device.image_bytes

    def _mount(self, site: Site) -> None:
        filesystem = filesystem_for(site.levels.type)
        self.ledger.note(Holding("mount", str(site.target), site.device.path))
        filesystem.mount(site)
        verify(filesystem.read_back(site))

    def _unmount(self, site: Site) -> None:
        filesystem_for(site.levels.type).unmount(site)
        self.ledger.settled(Holding("mount", str(site.target)))


def replayed(
    log: Path,
    job: ReplayJob,
    told: Callable[[str], None],
    *,
    memory: Path,
    ledger: Holdings,
    more: Sequence[str] = (),
) -> Iterator[PointRecord]:
    """What came of each point of a job, from as many workers as keep the processors busy; `more` are further options of each."""
    workers = worker_count(job, log_bytes=log.stat().st_size, room_bytes=free_bytes(memory))
    with Workers(log, job, workers, memory=memory, ledger=ledger, more=more) as running:
        yield from running.records(told)


def judged(
    log: Path,
    job: ReplayJob,
    point: CutPoint,
    *,
    memory: Path,
    ledger: Holdings,
    recovery: Path | None = None,
) -> PointRecord:
    """What came of one point; `recovery` is the log of the recovery that it cuts, None for a cut of the recording itself."""
    more = () if recovery is None else ("--recovery", str(recovery))
    with Workers(log, _alone(job, point), 1, memory=memory, ledger=ledger, more=more) as running:
        (record,) = running.records(lambda _: None)
    return record


def image_of(
    log: Path, job: ReplayJob, point: CutPoint, *, memory: Path, keep: Path, recovery: Path | None = None
) -> Built:
    """One point's image in `keep`, as the cut left it; nothing is mounted. `recovery` as for `judged`."""
    with ExitStack() as opened, tempfile.TemporaryDirectory(dir=memory) as folder:
        return rebuilt(opened.enter_context(read_log(log)), _alone(job, point), Path(folder), keep, recovery)


def _alone(job: ReplayJob, point: CutPoint) -> ReplayJob:
    """The job of one point, behind the one whose recovery it cuts."""
    first = tuple(each for each in job.points if each.number == point.recovery_of)
    return replace(job, points=(*first, point), recuts=())


def inquire(
    log: Path,
    job: ReplayJob,
    point: CutPoint,
    *,
    most: int,
    memory: Path,
    ledger: Holdings,
    recording: Path,
    recovery: Path | None = None,
) -> Found:
    """Why a point is bad, by `most` replays at most; the facts of its `recording` bound losses, `recovery` as for `judged`."""
    # A worker stands elsewhere.
    more = ["--most", str(most), "--recording", str(recording.absolute())]
    more += [] if recovery is None else ["--recovery", str(recovery)]
    alone = _alone(job, point)
    with Workers(log, alone, 1, memory=memory, ledger=ledger, more=more, program=INQUESTS) as running:
        (found,) = running.printed(Found, lambda _: None)
    return found


def rebuilt(log: Log, job: ReplayJob, folder: Path, keep: Path, recovery: Path | None) -> Built:
    """The image in `keep` of the job's last point; of a cut in recovery on the image of the first one, which is built in `folder`."""
    build = partial(rebuild, window_bytes=job.window_bytes, lost=(JOURNAL,) if job.loses_journal else ())
    if recovery is None:
        return build(log, job.points[-1], keep, job.sizes, measured_from=job.measured_from)
    first = build(log, job.points[0], folder, job.sizes, measured_from=job.measured_from)
    with read_log(recovery) as again:
        return build(again, job.points[-1], keep, job.sizes, base=first.images)


def worker_count(job: ReplayJob, *, log_bytes: int, room_bytes: int, processors: int | None = None) -> int:
    """One for each processor, and one for two more; a few at most. One where two images cannot be mounted at a time.

    A worker spends half of its time waiting for mounts, unmounts and a server that starts or stops, so more of them keep the
    processors busy. They need memory: of each an image and a copy of it, both at most as large as the log, must have room.
    """
    if not stands_beside_twins(job.filesystem):
        return 1
    processors = processors or os.cpu_count() or 1
    each_bytes = 2 * log_bytes + RECOVERY_BYTES
    more = (processors + 1) // 2
    wanted = processors + min(more, max(0, room_bytes // each_bytes - processors))
    return max(1, min(wanted, _WORKERS_MOST, len(job.points)))


class Workers:
    """The workers of one job from `with` to its end; leaving the block kills those that still work.

    Begin it in the thread that outlives it: the kernel ends them with that thread. `more` are further options of each.
    """

    def __init__(
        self,
        log: Path,
        job: ReplayJob,
        count: int,
        *,
        memory: Path,
        ledger: Holdings,
        more: Sequence[str] = (),
        program: str = REPLAYS,
    ) -> None:
        self._program = program
        self._log = log
        self._job = job
        self._count = count
        self._memory = memory
        self._ledger = ledger
        self._more = tuple(more)
        self._undo = ExitStack()
        self._running: list[tuple[subprocess.Popen[bytes], Path]] = []

    def __enter__(self) -> Self:
        try:
            self._begin()
            return self  # noqa: TRY300 -- behind the `try` nobody would end them
        except BaseException:
            self._undo.close()
            raise

    def _begin(self) -> None:
        undo, job_file = self._undo, self._memory / "job.json"
        undo.callback(job_file.unlink, missing_ok=True)
        codec.write(job_file, self._job)
        for share in range(self._count):
            folder = self._memory / f"replay-{share}"
            undo.callback(shutil.rmtree, folder, ignore_errors=True)
            folder.mkdir()
            with (self._memory / f"replay-{share}.err").open("wb") as errors, held():
                process = started_apart(self._command_line(job_file, folder, share), errors)
                undo.callback(self._end, process)
                self._ledger.note(Holding("process", str(process.pid), start_time(process.pid) or ""))
            self._running.append((process, Path(errors.name)))

    def __exit__(self, *_: object) -> None:
        self._undo.close()

    def records(self, told: Callable[[str], None]) -> Iterator[PointRecord]:
        """Each record as it comes; BedplateError with a worker's words if one does not end well."""
        return self.printed(PointRecord, told)

    def printed(self, kind: type[_Record], told: Callable[[str], None]) -> Iterator[_Record]:
        """The same of a program that prints others."""
        with selectors.DefaultSelector() as selector:
            for process, errors in self._running:
                assert process.stdout is not None  # noqa: S101 -- Popen was given a pipe
                selector.register(process.stdout, selectors.EVENT_READ, [process, errors, b""])
            while selector.get_map():
                for key, _ in selector.select():
                    process, errors, rest = key.data
                    stream: BinaryIO = process.stdout
                    piece = os.read(stream.fileno(), 65536)
                    if not piece:
                        selector.unregister(stream)
                        _require_success(process, errors, told)
                        continue
                    *lines, key.data[2] = (rest + piece).split(b"\n")
                    yield from (codec.from_json(kind, json.loads(line)) for line in lines)

    def _command_line(self, job_file: Path, folder: Path, share: int) -> tuple[str, ...]:
        return (
            # A visit that is killed takes them along; and the first process of a namespace, all others in it.
            *("setpriv", "--pdeathsig", "KILL"),
            *("unshare", "--mount", "--pid", "--ipc", "--fork", "--kill-child", "--mount-proc"),
            *(sys.executable, "-S", "-m", self._program),
            *(str(job_file), str(self._log), str(folder)),
            *("--share", str(share), "--of", str(self._count)),
            *self._more,
        )

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
        self._ledger.settled(Holding("process", str(process.pid)))


def _require_success(process: subprocess.Popen[bytes], errors: Path, told: Callable[[str], None]) -> None:
    status = process.wait()
    said = errors.read_text(encoding="utf-8", errors="replace").strip()
    if said:
        told(said)
    if status != 0:
        how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        raise BedplateError(f"a worker that replays cuts {how}: {said[-_QUOTED:] or '(it printed nothing)'}")
