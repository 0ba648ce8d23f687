"""One try of a fault: whose doing what went wrong is, what rots, and what its record says of who spoke."""

from __future__ import annotations

import errno
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.support.tools.written_log import Written, written_log

from bedplate.cuts.faults import CONTROLS, FAULTS, ByteRange, Detected, FaultVerdict, Seen
from bedplate.cuts.log import MARK
from bedplate.cuts.records import CutPoint, Placement, PointOutcome, PointRecord, Profile
from bedplate.engines.external.visit import does_not_end
from bedplate.engines.mariadb.oracle import FAULTY_DISK as MARIADB
from bedplate.engines.postgresql.oracle import FAULTY_DISK, disk_errors
from bedplate.errors import BedplateError, KilledFromOutside
from bedplate.filesystem.blocks import Layout, RestingBlocks
from bedplate.host.kernel_log import KernelLog
from bedplate.model.cell import FilesystemLevels
from bedplate.model.free_space import AgedCopy
from bedplate.model.levels import Levels
from bedplate.model.reason import because
from bedplate.visit.cuts import END, START, FaultEngine, Subject
from bedplate.visit.recording import ToolEnded, ToolFailed
from bedplate.visit.server import CONNECTION_LOST, SessionFailed
from bedplate.workloads.faulty_disk import visit
from bedplate.workloads.faulty_disk.visit import (
    FaultTrial,
    _Course,
    _let_come_back,
    _record,
    _require_of_disk,
    takes_a_write,
)
from bedplate.workloads.power_cut.bench import ReplayJob

AGED = AgedCopy("0123456789abcdef", "6f0c3f0e-0d5e-4f4e-9d25-5a4f1b4a1c11", settled=False)
ENGINE = FaultEngine(cast("Any", None), log_files=("wal/*",), data_files=("base/*/*",))


@contextmanager
def opened(session: object) -> Iterator[object]:
    yield session


def test_clients_that_did_not_end_have_hung_and_had_time_to_write() -> None:
    hung = _Course(hits=1, trouble="the writer did not end", hung=True, bound_ms=500.0)
    record = _record(FAULTS["write-once-data"], 1, 7, hung, whole(), after_ms=0.0)
    assert (Seen.HUNG, FaultVerdict.HUNG, ()) == (record.seen, record.verdict, record.detected)
    lost = replace(whole(), outcome=PointOutcome.LOST, lost_transactions=3, lost_ms=900.0)
    for is_hung, verdict in ((True, FaultVerdict.LOST_SILENT), (False, FaultVerdict.BOUNDED)):
        course = replace(hung, hung=is_hung)
        assert verdict is _record(FAULTS["write-once-data"], 1, 7, course, lost, after_ms=800.0).verdict


def test_only_what_the_disk_did_is_taken_for_its_doing() -> None:
    stopped = BedplateError("the writer: Input/output error")
    _require_of_disk(stopped, is_hit=True)
    with pytest.raises(BedplateError, match="Input/output"):
        _require_of_disk(stopped, is_hit=False)
    killed = ToolFailed("was killed by SIGKILL", ToolEnded(-signal.SIGKILL, 0.0, "was killed by SIGKILL"))
    for error in (killed, KilledFromOutside("the writer of brickbase")):
        with pytest.raises(KilledFromOutside):
            _require_of_disk(error, is_hit=True)
    _require_of_disk(does_not_end("brickbase"), is_hit=True)
    with pytest.raises(BedplateError, match="did not end within 10 s"):
        _require_of_disk(does_not_end("brickbase"), is_hit=False)
    try:
        try:
            raise KeyboardInterrupt
        finally:
            raise stopped
    except BedplateError as error:
        with pytest.raises(KeyboardInterrupt):
            _require_of_disk(error, is_hit=True)


@pytest.mark.parametrize(
    ("error", "trouble", "said"),
    [
        (SessionFailed(because(CONNECTION_LOST, "PANIC")), "a checkpoint: PANIC", ()),
        (SessionFailed("psql", message="FATAL: connection to server was lost"), "a checkpoint: psql", ()),
        (SessionFailed("ERROR: could not fsync"), None, ("ERROR: could not fsync",)),
    ],
)
def test_a_server_that_gives_up_at_the_checkpoint_behind_the_clients_has_not_gone_on(
    error: SessionFailed, trouble: str | None, said: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visit, "_ASK_EVERY_S", 0.001)
    answers = [error, None]

    def checkpoint() -> None:
        answer = answers.pop(0)
        if answer is not None:
            raise answer

    writer = cast("Any", SimpleNamespace(checkpoints=lambda: opened(SimpleNamespace(checkpoint=checkpoint))))
    course = _Course()
    _let_come_back(writer, course, is_hit=True)
    assert (True, trouble, said) == (course.came_back, course.trouble, course.engine_said)
    answers[:] = [error, None]
    with pytest.raises(SessionFailed):
        _let_come_back(writer, _Course(), is_hit=False)
    answers[:] = [error, None]
    ended = _Course(trouble="client 0")
    _let_come_back(writer, ended, is_hit=True)
    assert ("client 0", ()) == (ended.trouble, ended.engine_said)


def test_room_that_comes_back_late_does_not_make_a_file_system_read_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[int] = [errno.ENOSPC, errno.ENOSPC]

    def fsync(_: int) -> None:
        if answers:
            raise OSError(answers.pop(0), "no")

    monkeypatch.setattr(visit, "_ASK_EVERY_S", 0.001)
    monkeypatch.setattr("os.fsync", fsync)
    assert takes_a_write(tmp_path)
    assert [] == [*tmp_path.iterdir()]
    for error in (errno.EROFS, errno.EIO):
        answers[:] = [error]
        assert not takes_a_write(tmp_path)
        assert [] == answers
    monkeypatch.setattr(visit, "_ROOM_COMES_BACK_S", 0.0)
    # It says that there is room, and gives none; or it is full, by whoever wrote to it.
    for blocks in (256, 255):
        answers[:] = [errno.ENOSPC] * 9
        room = SimpleNamespace(f_bavail=blocks, f_frsize=4096)
        monkeypatch.setattr("os.statvfs", lambda _, room=room: room)
        assert (blocks < 256) == takes_a_write(tmp_path)


class Benched:
    """A bench whose recorder is a file, and which lets go of the disk behind the clients."""

    def __init__(self, disk: Path, filesystem: str) -> None:
        self.recorder = SimpleNamespace(disk=disk, journal=None)
        self.cell = SimpleNamespace(filesystem=SimpleNamespace(type=filesystem))
        self.commands = object()
        self.said = 0
        (disk.parent / "kmsg").touch()

    @contextmanager
    def recorded(
        self, *_: object, unmounted: Callable[[list[str]], object], at_rest: Callable[[Any], object]
    ) -> Iterator[Any]:
        place = self.recorder.disk.parent
        # Another's, that had the number before and has it afterwards.
        self.say("another")
        yield SimpleNamespace(log=place / "log")
        self.say("unmount")
        unmounted(["loop7"])
        self.say("another")
        at_rest(self.recorder)

    def say(self, what: str) -> None:
        """As the kernel of a file system on that device."""
        with (self.recorder.disk.parent / "kmsg").open("a") as log:
            self.said += 1
            log.write(f"3,{self.said},9,-;EXT4-fs error (device loop7): {what}\n")


@pytest.mark.parametrize(
    ("name", "unknown"),
    [
        ("rot-block-data", None),
        ("rot-sector-superblock", None),
        ("rot-block-metadata", None),
        ("rot-block-data", "no block of the disk can be named: blocks embedded in their pointers: 1"),
    ],
)
def test_what_rots_below_a_file_system_that_is_known_at_rest_is_found_when_nothing_is_mounted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, unknown: str | None
) -> None:
    heap, fault = tmp_path / "data" / "base" / "5" / "1", FAULTS[name]
    heap.parent.mkdir(parents=True)
    heap.write_bytes(b"x")
    disk = tmp_path / "disk"
    disk.write_bytes(bytes(65536))
    filesystem = "nilfs2" if "metadata" in name else "zfs"
    bench, courses, asked = Benched(disk, filesystem), list[_Course](), list[object]()

    def resting(images: object, commands: object, numbers: Sequence[int]) -> RestingBlocks:
        asked.extend((images, commands, numbers))
        # Clients are gone, and so is what they had mounted.
        assert not heap.exists()
        left_out = ("blocks embedded in their pointers: 1",) if unknown else ()
        return RestingBlocks(() if unknown else (ByteRange(8192, 4096),), left_out)

    def write(self: FaultTrial, _: object, fault: Any, course: _Course, **__: object) -> None:
        courses.append(course)
        setup = SimpleNamespace(
            settle=lambda: None,
            data_directory=tmp_path / "data",
            layout=Layout,
            recorder=bench.recorder,
            journal_bytes=None,
        )
        self._find_what_rots(cast("Any", setup), fault, course, 3)
        assert 0 == course.hits
        number.append(heap.stat().st_ino)
        heap.unlink()

    number: list[int] = []
    monkeypatch.setattr(visit, "finder_at_rest", lambda *_: resting)
    monkeypatch.setattr(FaultTrial, "_write", write)
    monkeypatch.setattr(FaultTrial, "_look_at_end", lambda *_, **__: (whole(), 0.0))
    monkeypatch.setattr(visit, "KernelLog", lambda: KernelLog(tmp_path / "none"))
    monkeypatch.setattr(FaultTrial, "_give_back", lambda *_: None)
    monkeypatch.setattr(visit, "FaultSetup", lambda **_: None)
    tried = FaultTrial(
        cast("Any", None), cast("Any", bench), ENGINE, "lmdb", clients=1, duration_s=1.0, image_bytes=65536
    )
    record = tried.record(fault, 1, 3, tmp_path)
    assert [[disk], bench.commands, tuple(number) if name == "rot-block-data" else ()] == asked
    changed = [at for at, byte in enumerate(disk.read_bytes()) if byte]
    if unknown:
        assert (0, FaultVerdict.NOT_HIT, unknown, []) == (
            record.hits,
            record.verdict,
            record.no_result,
            changed,
        )
        return
    assert (1, FaultVerdict.NO_TRACE) == (record.hits, record.verdict)
    assert record.hit_at is not None
    assert record.hit_bytes is not None
    assert 8192 <= record.hit_at <= min(changed)
    assert max(changed) < record.hit_at + record.hit_bytes <= 12288


def test_what_the_kernel_said_of_a_device_is_of_the_file_system_while_that_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Benched(tmp_path / "disk", "ext4")
    monkeypatch.setattr(visit, "KernelLog", lambda: KernelLog(tmp_path / "kmsg"))
    monkeypatch.setattr(visit, "FaultSetup", lambda **_: None)
    monkeypatch.setattr(FaultTrial, "_write", lambda *_, **__: bench.say("clients"))
    monkeypatch.setattr(FaultTrial, "_look_at_end", lambda *_, **__: (whole(), 0.0))
    monkeypatch.setattr(FaultTrial, "_give_back", lambda *_: None)
    tried = FaultTrial(
        cast("Any", None), cast("Any", bench), ENGINE, "lmdb", clients=1, duration_s=1.0, image_bytes=65536
    )
    record = tried.record(CONTROLS["control-none"], 1, 3, tmp_path)
    assert [f"EXT4-fs error (device loop7): {what}" for what in ("clients", "unmount")] == [*record.said]


@pytest.mark.parametrize(
    ("ended_early", "verdict"), [(False, FaultVerdict.LOST_SILENT), (True, FaultVerdict.BOUNDED)]
)
def test_a_loss_that_settings_allow_is_the_disks_where_the_server_had_its_time(
    ended_early: bool, verdict: FaultVerdict
) -> None:
    left = replace(whole(), outcome=PointOutcome.LOST, lost_transactions=2, lost_ms=100.0)
    course = _Course(hits=1, bound_ms=5_400_000.0, ended_early=ended_early)
    assert verdict is _record(FAULTS["lost-once-log"], 1, 7, course, left, after_ms=0.0).verdict


@pytest.mark.parametrize(
    ("engine", "trouble", "count"),
    [
        ("sqlite", "the SQLite writer: disk I/O error (commit)", 1),
        ("lmdb", "the LMDB writer: EIO (commit)", 1),
        # What was under way when a writer was told to end was reported by nobody.
        ("sqlite", None, 0),
        # Its writer says itself which one failed; a server's connection breaks, and tells nothing.
        ("own-engine", "the writer ended with status 1", 2),
        ("postgresql", "PANIC: could not fsync", None),
        ("mariadb", "the connection was lost", None),
    ],
)
def test_what_was_reported_as_failed_and_is_there_is_a_false_failure(
    engine: str, trouble: str | None, count: int | None
) -> None:
    left = replace(whole(), unacknowledged=1, false_failures=2)
    course = _Course(hits=1, trouble=trouble)
    record = _record(FAULTS["flush-once"], 1, 7, course, left, after_ms=0.0, engine=engine)
    assert count == record.false_failures


def test_errors_that_a_file_system_counts_leave_a_trace() -> None:
    counted = "zpool status: /dev/loop0p1: 0 read, 2 write, 0 checksum errors"
    course = _Course(hits=1, counted=(counted,), aged=AGED)
    record = _record(FAULTS["lost-once-data"], 1, 7, course, whole(), after_ms=0.0)
    assert AGED == record.aged
    assert (FaultVerdict.WENT_ON, (Detected.FILE_SYSTEM,), (counted,)) == (
        record.verdict,
        record.detected,
        record.said,
    )


@pytest.mark.parametrize(
    ("numbers", "fsck_s", "lost", "counted", "verdict"),
    [
        ((3,), None, 0, (), FaultVerdict.NO_TRACE),
        # The engine read it all the same: what it read was mended, or it did not mind.
        ((3,), None, 0, ("zpool status: 1 checksum errors",), FaultVerdict.WENT_ON),
        ((3,), None, 2, (), FaultVerdict.LOST_SILENT),
        ((3,), 1.0, 0, (), FaultVerdict.LOST_SILENT),
        # A superblock has no number, and other types are looked at while they are mounted.
        ((), None, 0, (), FaultVerdict.LOST_SILENT),
        (None, None, 0, (), FaultVerdict.LOST_SILENT),
    ],
)
def test_rot_of_a_file_that_the_check_alone_reads_was_missed_by_nobody(
    numbers: tuple[int, ...] | None,
    fsck_s: float | None,
    lost: int,
    counted: tuple[str, ...],
    verdict: FaultVerdict,
) -> None:
    left = replace(
        whole(counted), outcome=PointOutcome.SILENT, unclean=True, fsck_s=fsck_s, lost_transactions=lost
    )
    course = _Course(hits=1, numbers=numbers)
    assert verdict is _record(FAULTS["rot-block-data"], 1, 7, course, left, after_ms=0.0).verdict


@pytest.mark.parametrize(
    ("filesystem", "replayed", "control", "hit", "hits", "controls"),
    [
        ("jfs", False, True, 1, 1, 1),
        ("jfs", False, False, 1, 0, 1),
        # It replays, or nothing was hit for a reason of its own: there is nothing more to ask.
        ("jfs", True, True, 1, 1, 0),
        ("jfs", False, False, 0, 0, 0),
        ("ext4", False, False, 1, 1, 0),
    ],
)
def test_a_journal_that_is_never_replayed_says_nothing_of_a_fault_in_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    filesystem: str,
    *,
    replayed: bool,
    control: bool,
    hit: int,
    hits: int,
    controls: int,
) -> None:
    page = Written(data=b"p" * 4096)
    entries = [page, Written(flags=MARK, text=START.encode()), page, page, page]
    log = written_log(tmp_path / "log", [*entries, Written(flags=MARK, text=END.encode())])
    jobs = list[ReplayJob]()

    def replay(_: Path, job: ReplayJob, report: object, *, log_folder: Path) -> Iterator[PointRecord]:
        jobs.append(job)
        failed = not (replayed if job.points[0].position == 4 else control)
        return iter([replace(whole(), outcome=PointOutcome.LOST, replay_failed=failed)])

    cell = SimpleNamespace(filesystem=FilesystemLevels(filesystem))
    monkeypatch.setattr(visit, "subject_of", lambda *_: Subject("lmdb", 1, Levels(), Levels()))
    bench = SimpleNamespace(cell=cell, replayed=replay)
    tried = FaultTrial(
        cast("Any", None), cast("Any", bench), ENGINE, "lmdb", clients=1, duration_s=1.0, image_bytes=65536
    )
    course, unreadable = _Course(hits=hit, no_result="nothing", position=4), (ByteRange(0, 4096),)
    tried._look_at_end(log, course, unreadable, on_journal=False)
    assert hits == course.hits
    assert (course.no_result == "nothing") == (hits == hit)
    assert (4, unreadable) == (jobs[0].points[0].position, jobs[0].unreadable)
    # The control is cut where the clients began, and nothing is unreadable there.
    assert [(1, ())] * controls == [(job.points[0].position, job.unreadable) for job in jobs[1:]]


@pytest.mark.parametrize(
    ("is_usual", "failed", "verdict", "detected"),
    [
        (True, False, FaultVerdict.NO_TRACE, ()),
        (True, True, FaultVerdict.REPAIRED, (Detected.FILE_SYSTEM,)),
        (False, False, FaultVerdict.REPAIRED, (Detected.FILE_SYSTEM,)),
    ],
)
def test_a_repair_that_belongs_to_each_cut_is_no_trace_of_a_fault(
    verdict: FaultVerdict, detected: tuple[Detected, ...], *, is_usual: bool, failed: bool
) -> None:
    left = replace(whole(), outcome=PointOutcome.NEEDS_FSCK, fsck_s=1.0, unclean=False, replay_failed=failed)
    course = _Course(hits=1, position=4, repair_is_usual=is_usual)
    record = _record(FAULTS["lost-once-journal"], 1, 7, course, left, after_ms=0.0)
    assert (verdict, detected) == (record.verdict, record.detected)


def whole(said_anew: tuple[str, ...] = ()) -> PointRecord:
    """What is left where nothing is missing."""
    return PointRecord(
        point=CutPoint(0, 9, Profile.ORDERED, Placement.UNIFORM, 0),
        outcome=PointOutcome.OK,
        flush_position=None,
        volatile_writes=0,
        volatile_bytes=0,
        kept_writes=0,
        acknowledged=5,
        kernel_said=said_anew,
    )


@pytest.mark.parametrize(
    ("outcome", "verdict"),
    [
        (PointOutcome.LOST, FaultVerdict.LOST_DETECTED),
        (PointOutcome.SILENT, FaultVerdict.LOST_DETECTED),
        (PointOutcome.OK, FaultVerdict.WENT_ON),
    ],
)
def test_a_loss_is_detected_where_the_engines_log_has_the_disks_error(
    outcome: PointOutcome, verdict: FaultVerdict
) -> None:
    line = "LOG:  could not read from WAL segment 8: Input/output error"
    left, course = replace(whole(), outcome=outcome), _Course(hits=1)
    record = _record(FAULTS["unreadable-log"], 1, 7, course, replace(left, engine_said=(line,)), after_ms=0.0)
    assert (verdict, (Detected.ENGINE,), (line,)) == (record.verdict, record.detected, record.found)
    unsaid = _record(FAULTS["unreadable-log"], 1, 7, course, left, after_ms=0.0)
    assert () == unsaid.detected
    assert unsaid.verdict is (
        FaultVerdict.NO_TRACE if outcome is PointOutcome.OK else FaultVerdict.LOST_SILENT
    )


@pytest.mark.parametrize(
    ("said_anew", "verdict", "detected"),
    [
        ((), FaultVerdict.NO_TRACE, ()),
        (("NILFS (loop0): broken superblock",), FaultVerdict.WENT_ON, (Detected.FILE_SYSTEM,)),
    ],
)
def test_what_a_file_system_says_only_when_it_is_mounted_anew_leaves_a_trace(
    said_anew: tuple[str, ...], verdict: FaultVerdict, detected: tuple[Detected, ...]
) -> None:
    record = _record(FAULTS["rot-sector-superblock"], 1, 7, _Course(hits=1), whole(said_anew), after_ms=0.0)
    assert (verdict, detected, said_anew) == (record.verdict, record.detected, record.found)


def test_what_a_background_process_logged_of_the_disk_was_said(tmp_path: Path) -> None:
    line = 'ERROR:  could not write blocks 179..179 in file "base/16393/16404": Input/output error'
    full = 'ERROR:  could not extend file "base/16393/16404": No space left on device'
    log = f"1795756324.620 22404 background writer {line}\n17.7 9 walwriter {full}\n17.9 1 checkpointer LOG:  checkpoint complete\n"
    context = cast("Any", SimpleNamespace(log_directory=tmp_path))
    server = FaultTrial(
        context, cast("Any", None), FAULTY_DISK, "postgresql", clients=2, duration_s=4, image_bytes=2**32
    )
    course = _Course(hits=1)
    server._read_log(course)
    assert [] == list(course.engine_said)
    (tmp_path / "server.log").write_text(log, encoding="utf-8")
    server._read_log(course)
    server._read_log(course)
    assert [line, full] == list(course.engine_said)
    # Who reads what is left needs no room for that.
    assert (line,) == disk_errors(log)
    # Of a library nobody reads a log.
    library = FaultTrial(
        context, cast("Any", None), ENGINE, "lmdb", clients=2, duration_s=4, image_bytes=2**32
    )
    silent = _Course(hits=1)
    library._read_log(silent)
    assert [] == list(silent.engine_said)


def test_mariadbs_errors_are_found_in_its_log() -> None:
    said = MARIADB.said_of_disk("2026 [Note] InnoDB: ready\n2026 [ERROR] InnoDB: Tried to read 16384 bytes\n")
    assert ("InnoDB: Tried to read 16384 bytes",) == said
