from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bedplate.filesystem import refusals
from bedplate.filesystem.refusals import judge, measure_fsyncs, parse_flushes, write_back_wanted
from bedplate.host.scratch_device import AttachedDevice
from bedplate.model.cell import FilesystemLevels
from bedplate.model.visit import FlushCount

if TYPE_CHECKING:
    from pathlib import Path


def _counts(*numbers: int, device: str = "data") -> tuple[FlushCount, ...]:
    return tuple(
        FlushCount(device, pattern, 50, number)
        for pattern, number in zip(("appending", "overwriting"), numbers, strict=True)
    )


def test_flushes_are_field_sixteen(repository: Path) -> None:
    assert parse_flushes((repository / "tests/golden/filesystem/stat.txt").read_text()) == 20537


@pytest.mark.parametrize("fields", [0, 11, 15, 16])
def test_a_kernel_that_does_not_count_gives_none_not_zero(fields: int) -> None:
    assert parse_flushes(" ".join(["7"] * fields)) is None


def _disk(root: Path, name: str, flush_count: int | None) -> Path:
    folder = root / name
    folder.mkdir(parents=True)
    (folder / "stat").write_text(
        " ".join(["0"] * 15 + ([str(flush_count), "0"] if flush_count is not None else []))
    )
    return folder


def test_a_mapped_device_counts_at_the_disks_below_it(tmp_path: Path) -> None:
    for name, count in (("sda", 5), ("sdb", 7), ("md0", 0), ("dm-0", 0)):
        _disk(tmp_path, name, count)
    partition = tmp_path / "sda/sda1"
    partition.mkdir()
    (partition / "partition").write_text("1")
    for above, below in (("md0", (partition, tmp_path / "sdb")), ("dm-0", (tmp_path / "md0",))):
        (tmp_path / above / "slaves").mkdir()
        for path in below:
            (tmp_path / above / "slaves" / path.name).symlink_to(path)
    assert refusals.disks_below("dm-0", sys_block=tmp_path) == ("sda", "sdb")
    assert refusals.flushes_completed("dm-0", sys_block=tmp_path) == 12


def test_one_disk_that_does_not_count_makes_the_sum_unknown(tmp_path: Path) -> None:
    _disk(tmp_path, "md0", 0)
    (tmp_path / "md0/slaves").mkdir()
    for name, count in (("sda", 5), ("sdb", None)):
        (tmp_path / "md0/slaves" / name).symlink_to(_disk(tmp_path, name, count))
    assert refusals.flushes_completed("md0", sys_block=tmp_path) is None


@pytest.mark.parametrize(
    ("counts", "barrier", "reasons"),
    [
        (_counts(50, 50), True, 0),
        (_counts(100, 0), True, 0),  # only appends are judged: an overwrite may need none
        (_counts(49, 50), True, 1),
        (_counts(0, 0), True, 1),
        (_counts(0, 0), False, 0),
        (_counts(1, 0), False, 1),
        (_counts(0, 1), False, 1),
        (_counts(100, 50), False, 2),
        (_counts(0, 0), None, 0),
        (_counts(100, 50), None, 0),
        ((), None, 0),
        ((), True, 1),
        ((), False, 1),
    ],
)
def test_flushes_are_judged_only_against_what_was_asked(
    counts: tuple[FlushCount, ...],
    barrier: bool | None,
    reasons: int,
) -> None:
    assert reasons == len(judge(counts, barrier))


def test_both_devices_together_make_a_barrier() -> None:
    assert judge((*_counts(10, 10), *_counts(40, 0, device="journal")), True) == ()
    assert len(judge((*_counts(10, 10), *_counts(39, 0, device="journal")), True)) == 1


def test_one_flush_of_the_journal_device_breaks_a_promise_of_none() -> None:
    (reason,) = judge((*_counts(0, 0), *_counts(1, 0, device="journal")), False)
    assert "journal" in reason


def test_uncounted_is_not_none_flushed() -> None:
    (reason,) = judge((), False)
    assert "does not count flushes" in reason


def test_the_switch_is_used_only_where_no_mount_option_is() -> None:
    wanted = {
        (type_, barrier): write_back_wanted(FilesystemLevels(type_, barrier=barrier))
        for type_ in ("ext4", "xfs", "btrfs")
        for barrier in (None, True, False)
    }
    assert [key for key, value in wanted.items() if not value] == [("xfs", False)]


def test_only_differences_count_and_the_file_is_gone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    readings = iter([1000, 1100, 1100, 1180, 1180, 1230])
    monkeypatch.setattr(refusals, "flushes_completed", lambda _name: next(readings))
    device = AttachedDevice("/dev/none", "none", "none", 0)
    measure = measure_fsyncs(tmp_path, device, calls=3)
    assert [(item.pattern, item.flushes) for item in measure.counts] == [
        ("appending", 100),
        ("overwriting", 80),
        ("logging", 50),
    ]
    assert {"appending", "overwriting", "logging"} == set(measure.call_us_median)
    assert list(tmp_path.iterdir()) == []


def test_a_journal_on_the_disk_of_the_data_is_not_counted_twice(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(refusals, "flushes_completed", lambda _name: 7)
    data = AttachedDevice("/dev/none1", "none1", "none", 0)
    for journal, counted in (
        (AttachedDevice("/dev/none2", "none2", "none", 0), {"data"}),
        (AttachedDevice("/dev/other", "other", "other", 0), {"data", "journal"}),
    ):
        assert counted == {item.device for item in measure_fsyncs(tmp_path, data, journal, calls=2).counts}


def test_a_kernel_without_counters_yields_no_count_at_all(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(refusals, "flushes_completed", lambda _name: None)
    assert measure_fsyncs(tmp_path, AttachedDevice("/dev/none", "none", "none", 0), calls=2).counts == ()


def test_a_failing_fsync_leaves_no_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail(_name: str) -> int:
        raise OSError(5, "gone")

    monkeypatch.setattr(refusals, "flushes_completed", fail)
    with pytest.raises(OSError, match="gone"):
        measure_fsyncs(tmp_path, AttachedDevice("/dev/none", "none", "none", 0), calls=2)
    assert list(tmp_path.iterdir()) == []
