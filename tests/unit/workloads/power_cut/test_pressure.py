"""A recording's pace, the writers beside its engine, and when it begins."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from bedplate.host.files import folders_below
from bedplate.host.ledger import Ledger
from bedplate.host.process import wait_until
from bedplate.workloads.power_cut.bench import PRESSURE, OwnWriteback, Pace, Pressure, own_writeback
from bedplate.workloads.power_cut.tearing import NameCommits


def paced(log: Path, *, elapsed_s: float, used_bytes: int) -> float:
    log.write_bytes(bytes(500 + used_bytes))
    return Pace(log, 500, room_bytes=1000, began_s=time.monotonic() - elapsed_s, duration_s=10).pause_s()


@pytest.mark.parametrize(
    ("elapsed_s", "used_bytes", "rests"),
    [(0.0, 0, False), (0.0, 99, False), (0.0, 100, True), (3.2, 399, False), (3.2, 401, True)],
)
def test_a_second_has_its_part_of_the_log_and_what_was_left_before(
    tmp_path: Path, elapsed_s: float, used_bytes: int, *, rests: bool
) -> None:
    pause_s = paced(tmp_path / "log", elapsed_s=elapsed_s, used_bytes=used_bytes)
    assert rests is (pause_s > 0)
    assert pause_s <= 1


def test_a_pace_begins_with_what_the_log_has_already(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(bytes(10_000))
    assert 0.0 == Pace.begin(log, 20_000, 10).pause_s()
    assert 10_000 == Pace.begin(log, 20_000, 10).room_bytes
    # One that is too large already lets each client make a transaction all the same.
    assert 0.0 == Pace.begin(log, 5_000, 10).pause_s()


def pressed(tmp_path: Path, *, calm_s: float, seconds: float) -> Pressure:
    data, mark, disk = tmp_path / "data", tmp_path / "mark", tmp_path / "disk"
    data.mkdir(exist_ok=True)
    (data / "file").write_bytes(b"x")
    mark.touch()
    disk.touch()
    pressure = Pressure(
        tmp_path / "neighbour", data, disk, calm_s=calm_s, seed=1, mark_file=mark, pressed=True
    )
    with pressure:
        wait_until(lambda: len(list(tmp_path.glob("neighbour/*/*"))) >= 3, deadline_s=10 * seconds)
    return pressure


def test_a_neighbour_marks_its_beginning_and_leaves_files_beside_the_engines(tmp_path: Path) -> None:
    assert pressed(tmp_path, calm_s=0, seconds=1).trouble is None
    assert PRESSURE == (tmp_path / "mark").read_text()
    assert list(tmp_path.glob("neighbour/*/*"))
    assert b"x" == (tmp_path / "data" / "file").read_bytes()


def test_a_pipe_of_the_engines_holds_nobody_up(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    os.mkfifo(tmp_path / "data" / "pipe")
    pressure = pressed(tmp_path, calm_s=0, seconds=1)
    assert not any(thread.is_alive() for thread in pressure._crew)


def test_folders_in_folders_and_links_to_them_hold_nobody_up(tmp_path: Path) -> None:
    deep = data = tmp_path / "data"
    for _ in range(1200):
        deep.mkdir()
        deep /= "d"
    (data / "up").symlink_to(data)
    pressure = pressed(tmp_path, calm_s=0, seconds=1)
    pressure._write_back(data, since_s=0)
    assert pressure.trouble is None
    found = {entry.name: folder for folder, entries in folders_below(data) for entry in entries}
    assert {"up": str(data), "file": str(data)} == found
    with NameCommits(data, tmp_path / "neighbour"):
        pass
    # What is too deep for shutil is too deep for who tidies up.
    subprocess.run(["rm", "-rf", data], check=True)


def test_before_the_calm_is_over_nothing_is_done(tmp_path: Path) -> None:
    assert pressed(tmp_path, calm_s=600, seconds=0.01).trouble is None
    assert "" == (tmp_path / "mark").read_text()
    assert not (tmp_path / "neighbour").exists()


def test_a_neighbour_that_cannot_go_on_says_why_and_ends_nothing(tmp_path: Path) -> None:
    (tmp_path / "neighbour").touch()
    trouble = pressed(tmp_path, calm_s=0, seconds=0.02).trouble
    assert trouble is not None
    assert "ended early" in trouble


@pytest.mark.parametrize(
    ("elapsed_s", "duration_s", "pause_s"),
    [
        # It comes 30 s after the mount: at three quarters of 20 s that begin 15 s after it.
        (5, 20, 10),
        (15, 20, 0),
        (26, 20, 0),
        # Too near to the end, and to the beginning.
        (11.5, 20, 3.5),
        (29.5, 20, 15.5),
        (29.5, 60, 0),
        (40, 4, 17),
    ],
)
def test_a_recording_begins_so_that_the_file_systems_own_writeback_falls_into_it(
    elapsed_s: float, duration_s: float, pause_s: float
) -> None:
    own = OwnWriteback(0.0, 30, 30)
    assert pause_s == pytest.approx(own.pause_s(elapsed_s, duration_s))
    begins_s = elapsed_s + pause_s
    assert any(begins_s + 0.1 * duration_s <= due <= begins_s + 0.9 * duration_s for due in (30, 60, 90))


@pytest.mark.parametrize(("elapsed_s", "pause_s"), [(0.8, 0), (12.2, 0), (12.4, 20.1)])
def test_a_first_writeback_that_comes_earlier_is_not_waited_for(elapsed_s: float, pause_s: float) -> None:
    """13.75 s after the mount, then every 30 s: the next is 43.75 s after it."""
    own = OwnWriteback(0.0, 13.75, 30)
    assert pause_s == pytest.approx(own.pause_s(elapsed_s, 15))


def test_xfs_is_mounted_with_a_writeback_that_falls_into_the_recording(tmp_path: Path) -> None:
    setting, ledger = tmp_path / "xfssyncd_centisecs", Ledger.open(tmp_path, "ledger")
    setting.write_text("3000\n")
    with own_writeback("xfs", 15, ledger=ledger, setting=setting) as own:
        assert own is not None
        assert (13.75, 30.0) == (own.first_s, own.period_s)
        assert "1375" == setting.read_text().strip()
    assert "3000" == setting.read_text().strip()
    assert not ledger.holdings()


def test_a_writeback_that_nobody_may_set_is_waited_for(tmp_path: Path) -> None:
    setting, ledger = tmp_path / "xfssyncd_centisecs", Ledger.open(tmp_path, "ledger")
    setting.write_text("3000, and more\n")
    with own_writeback("xfs", 15, ledger=ledger, setting=setting) as own:
        assert own is None
    setting.write_text("3000\n")
    with (
        own_writeback("xfs", 60, ledger=ledger, setting=setting) as late,
        own_writeback("ext4", 15, ledger=ledger, setting=setting) as other,
    ):
        assert late is not None
        assert 30.0 == late.first_s
        assert "3000" == setting.read_text().strip()
        assert other is None
