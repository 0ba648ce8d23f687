"""What fails beside the clients: taken back whatever was under way, and an error of ours is never the engine's."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bedplate.cuts.faults import (
    CONTROL_LOST,
    FAULTS,
    ByteRange,
    Fault,
    FaultOperation,
    FaultOrder,
    moved_line,
)
from bedplate.errors import CommandFailed
from bedplate.filesystem import aged_image
from bedplate.visit.cuts import FaultEngine
from bedplate.visit.server import SessionFailed
from bedplate.workloads.faulty_disk import visit
from bedplate.workloads.faulty_disk.visit import DiskMap, FaultBeside, FaultSetup, drawn_moment_s
from bedplate.workloads.power_cut.bench import RecordedSetup

ENGINE = FaultEngine(cast("Any", None), log_files=("wal/*",), data_files=("base/*/*",))
ONCE, READ = FAULTS["write-once-data"], FAULTS["read-on-data"]


class Disk:
    """Of a recorder what is ordered of it."""

    def __init__(self) -> None:
        self.orders: list[str] = []
        self.hits = 0
        self.marks = 100
        self.waits = False

    def resume(self, repaired: Callable[[], object]) -> bool:
        """As of a file system that lets requests wait, where it `waits`."""
        if not self.waits:
            return False
        repaired()
        self.orders.append("resumed")
        return True

    def order_fault(self, line: str) -> None:
        self.orders.append(line)

    def status(self) -> Any:
        return SimpleNamespace(fault_hits=self.hits, first_hit=None)


@pytest.fixture
def disk() -> Disk:
    return Disk()


def made(disk: Disk, place: Path, fault: Fault, session: object = None, *, log_bytes: int = 0) -> FaultBeside:
    (place / "log").touch()
    setup = SimpleNamespace(
        log=place / "log",
        log_for_clients_bytes=lambda: log_bytes,
        is_paced=True,
        recorder=disk,
        data_directory=place / "data",
        settle=lambda: None,
        mark_count=lambda: disk.marks,
        resume=disk.resume,
    )
    checkpoints = None if session is None else opened(session)
    return FaultBeside(
        cast("Any", setup),
        fault,
        DiskMap(ENGINE, place / "data", "ext4"),
        seed=3,
        duration_s=0.01,
        checkpoints=cast("Any", checkpoints),
    )


@contextmanager
def opened(session: object) -> Iterator[object]:
    yield session


def test_the_moment_is_drawn_by_the_seed_within_the_clients_time() -> None:
    moments = [drawn_moment_s(seed, 4.0) for seed in range(200)]
    assert moments == [drawn_moment_s(seed, 4.0) for seed in range(200)]
    assert (True, True) == (1.0 <= min(moments) < 1.1, 2.1 < max(moments) <= 2.2)


def test_an_order_that_was_under_way_is_taken_back_too(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looking, over = threading.Event(), threading.Event()

    def slowly(*_: object, is_written: bool) -> tuple[ByteRange, ...]:
        looking.set()
        assert over.wait(20)
        return (ByteRange(0, 4096),)

    monkeypatch.setattr(DiskMap, "ranges", slowly)
    # The first taking back comes while it looks for the place.
    ordered = disk.order_fault

    def order(line: str) -> None:
        ordered(line)
        over.set()

    monkeypatch.setattr(disk, "order_fault", order)
    with made(disk, tmp_path, ONCE):
        assert looking.wait(20)
    assert ["clear", "write eio 1 0 0+4096", "clear"] == disk.orders


def test_nothing_fails_before_something_was_acknowledged(disk: Disk, tmp_path: Path) -> None:
    disk.marks = 1
    failing = made(disk, tmp_path, CONTROL_LOST)
    with failing:
        failing._thread.join(0.3)
        assert [] == disk.orders
        disk.marks = 40
        assert eventually(lambda: disk.orders)
    disk.marks = 1
    never = made(disk, tmp_path, ONCE)
    with never:
        pass
    assert "too little was acknowledged" in (never.unplaced or "")
    assert not any(line.startswith("write eio") for line in disk.orders)


def test_a_file_system_that_lets_requests_wait_is_told_when_the_disk_works_again(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visit, "_GRACE_ON_S", 0.2)
    disk.waits = True
    with made(disk, tmp_path, FAULTS["write-on-anywhere"]) as failing:
        assert eventually(lambda: disk.orders)
        # Nothing was hit yet.
        failing._thread.join(0.3)
        assert 1 == len(disk.orders)
        disk.hits = 1
        # Clients that wait for the disk end only behind it.
        assert eventually(lambda: "resumed" in disk.orders)
    assert "clear" == disk.orders[disk.orders.index("resumed") - 1]
    assert failing.was_resumed
    with made(disk, tmp_path, ONCE) as never:
        pass
    assert not never.was_resumed


def test_the_control_that_loses_everything_lasts(disk: Disk, tmp_path: Path) -> None:
    with made(disk, tmp_path, CONTROL_LOST):
        assert eventually(lambda: disk.orders)
        disk.hits = 1
    assert ["write lost 0 0"] == disk.orders


def eventually(met: Any) -> bool:
    never, until = threading.Event(), time.monotonic() + 20
    while not met() and time.monotonic() < until:
        never.wait(0.005)
    return bool(met())


def test_an_error_of_ours_before_the_hit_is_no_complaint_of_the_engine(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, is_written: bool) -> None:
        raise OSError(errno.EMFILE, "too many open files")

    monkeypatch.setattr(DiskMap, "ranges", broken)
    failing = made(disk, tmp_path, ONCE)
    with failing:
        assert eventually(lambda: failing.problem)
    assert [] == failing.complaints
    assert "too many open files" in (failing.problem or "")


def pieces(number: int) -> tuple[ByteRange, ...]:
    return tuple(ByteRange(8192 * each, 4096) for each in range(number))


def test_a_place_in_more_pieces_than_an_order_takes_is_not_hit_in_a_part_of_them(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DiskMap, "ranges", lambda *_, is_written: pieces(4097))
    failing = made(disk, tmp_path, FAULTS["write-on-data"])
    with failing:
        assert eventually(lambda: failing.unplaced)
    assert "data is in 4,097 pieces of the disk, and an order takes 4,096" in (failing.unplaced or "")
    assert ["clear", "clear"] == disk.orders


@pytest.mark.parametrize("hits", [0, 1])
def test_a_place_that_comes_into_too_many_pieces_is_no_longer_waited_at_unless_it_was_hit(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hits: int
) -> None:
    found = [pieces(4096)]

    def ranges(*_: object, is_written: bool) -> tuple[ByteRange, ...]:
        if found:
            return found.pop()
        disk.hits = hits
        return pieces(4097)

    monkeypatch.setattr(DiskMap, "ranges", ranges)
    # Seen behind the hit.
    monkeypatch.setattr(visit, "_GRACE_ONCE_S", 60.0)
    failing = made(disk, tmp_path, ONCE)
    with failing:
        assert eventually(lambda: failing.unplaced)
    assert 4096 == disk.orders[0].count("+")
    assert len(disk.orders) == (4 if not hits else 3)


def test_an_order_is_never_cut_short() -> None:
    order = FaultOrder(FaultOperation.WRITE, ranges=pieces(4096))
    assert 4096 == order.line().count("+")
    for line in (replace(order, ranges=pieces(4097)).line, lambda: moved_line(pieces(4097))):
        with pytest.raises(ValueError, match="4097 ranges; an order takes 4096"):
            line()


def test_a_file_that_is_gone_is_not_dropped_from_the_cache_and_no_complaint(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []
    monkeypatch.setattr(DiskMap, "ranges", lambda *_, is_written: (ByteRange(0, 4096),))

    def gone(*_: object) -> tuple[Path, ...]:
        looks.append(1)
        return (tmp_path / "gone",)

    monkeypatch.setattr(DiskMap, "files", gone)
    failing = made(disk, tmp_path, READ)
    with failing:
        assert eventually(lambda: len(looks) > 1)
    assert ([], None) == (failing.complaints, failing.problem)


def test_what_a_checkpoint_says_behind_the_hit_is_the_engines_complaint(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def checkpoint() -> None:
        disk.hits = 1
        raise SessionFailed("CHECKPOINT: ERROR: could not fsync")

    monkeypatch.setattr(DiskMap, "ranges", lambda *_, is_written: (ByteRange(0, 4096),))
    failing = made(disk, tmp_path, ONCE, SimpleNamespace(checkpoint=checkpoint))
    with failing:
        assert eventually(lambda: failing.complaints)
    assert ["CHECKPOINT: ERROR: could not fsync"] == [str(error) for error in failing.complaints]
    assert failing.problem is None


def test_a_full_file_system_stays_full_though_the_clients_have_ended(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fills: list[float] = []

    def fill(*_: object) -> bool:
        fills.append(time.monotonic())
        return True

    monkeypatch.setattr(visit.Filler, "fill", fill)
    # As in a cell with `fill`.
    (tmp_path / aged_image.BALLAST_FOLDER).mkdir()
    filling = made(disk, tmp_path, FAULTS["full"])
    with filling:
        assert eventually(lambda: filling.hits)
        assert (tmp_path / visit.BALLAST).exists()
    assert fills[-1] - fills[0] > 0.9
    assert not (tmp_path / visit.BALLAST).exists()


def test_a_file_system_that_is_never_full_is_no_result_and_keeps_nobody_waiting(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As ZFS: it says that it has the room, and takes none. Here a write of it is none either.
    monkeypatch.setattr(visit, "allocate", lambda *_: None)
    monkeypatch.setattr(os, "posix_fallocate", lambda *_: None)
    monkeypatch.setattr(os, "pwrite", lambda _, data, __: len(data))
    monkeypatch.setattr(visit, "_ANSWER_LIMIT_S", 5.0)
    monkeypatch.setattr(visit, "_END_LIMIT_S", 0.1)
    filling = made(disk, tmp_path, FAULTS["full"], log_bytes=1 << 60)
    with filling:
        assert eventually((tmp_path / visit.BALLAST).exists)
        assert eventually(lambda: not filling._setup.is_paced)
    assert not filling._thread.is_alive()
    assert (0, None) == (filling.hits, filling.problem)
    assert "ended before the file system was full" in (filling.unplaced or "")
    assert not (tmp_path / visit.BALLAST).exists()


def test_ballast_that_would_fill_the_log_is_no_result_with_its_way_out(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_: object) -> None:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(visit, "allocate", unknown)
    filling = made(disk, tmp_path, FAULTS["full"])
    with filling:
        assert eventually(lambda: filling.unplaced)
    assert (0, None) == (filling.hits, filling.problem)
    assert "make `image_size` smaller" in (filling.unplaced or "")


@pytest.mark.parametrize(("is_paced", "pause_s"), [(True, 0.5), (False, 0.0)])
def test_clients_do_not_wait_for_the_ballast_in_the_log(
    monkeypatch: pytest.MonkeyPatch, is_paced: bool, pause_s: float
) -> None:
    monkeypatch.setattr(RecordedSetup, "pace", lambda *_: lambda: 0.5)
    setup = FaultSetup.__new__(FaultSetup)
    pace = setup.pace(4.0)
    setup.is_paced = is_paced
    assert pause_s == pace()


@pytest.mark.parametrize("hits", [0, 1])
def test_a_sync_that_gives_the_disks_error_is_no_stop_of_the_engine(
    disk: Disk, monkeypatch: pytest.MonkeyPatch, hits: int
) -> None:
    def fails(_: RecordedSetup) -> None:
        raise CommandFailed("sync: Input/output error", argv=["sync"], status=1, output="")

    monkeypatch.setattr(RecordedSetup, "settle", fails)
    setup = FaultSetup.__new__(FaultSetup)
    setup.recorder, disk.hits = cast("Any", disk), hits
    with nullcontext() if hits else pytest.raises(CommandFailed):
        setup.settle()
