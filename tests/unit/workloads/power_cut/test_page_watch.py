"""Where a recorded server's pages lie: by its file system's map, where that has places of the device."""

from __future__ import annotations

import errno
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from tests.support.studies.judged_cuts import CELL
from tests.support.tools.written_log import FLUSH, Written, written_log

from bedplate.cuts.log import read_log
from bedplate.cuts.records import Profile
from bedplate.errors import BedplateError
from bedplate.host.pages import FileExtent
from bedplate.workloads.power_cut.tearing import PageWatch, RecoveryWatch, log_files

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.visit.declaration import UntornWrites

PAGE = 8192


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = tmp_path / "data"
    found.mkdir()
    (found / "relation").write_bytes(bytes(4 * PAGE))
    monkeypatch.setattr(
        "bedplate.workloads.power_cut.tearing.direct_files", lambda _: frozenset({found / "relation"})
    )
    monkeypatch.setattr("bedplate.workloads.power_cut.tearing.untorn_unit", lambda _: None)
    monkeypatch.setattr("bedplate.workloads.power_cut.tearing.probe_untorn_write", lambda *_: "taken")
    return found


def unmapped_of(data: Path, filesystem: str) -> tuple[int, int]:
    cell = replace(CELL, filesystem=replace(CELL.filesystem, type=filesystem))
    with PageWatch(data, cell, None, is_wanted=True) as watch:
        pass
    assert watch.facts is not None
    return watch.facts.after.unmapped, watch.facts.after.extents


@pytest.mark.parametrize(("filesystem", "unmapped"), [("xfs", 0), ("btrfs", 4)])
def test_an_address_of_the_file_system_s_own_is_no_place_on_the_device(
    filesystem: str, unmapped: int, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = (FileExtent(0, 4 * PAGE, 64 * PAGE),)
    monkeypatch.setattr("bedplate.workloads.power_cut.tearing.extents_of", lambda _: one)
    assert (unmapped, 1) == unmapped_of(data, filesystem)


def test_a_first_page_without_room_is_a_finding_and_any_other_refusal_an_error(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    untorn = cast("UntornWrites", SimpleNamespace(mode="on", counted=lambda: None))
    probed = "bedplate.workloads.power_cut.tearing.probe_untorn_write"
    monkeypatch.setattr("bedplate.workloads.power_cut.tearing.extents_of", lambda _: ())
    monkeypatch.setattr(probed, lambda *_: "ENOSPC")
    with PageWatch(data, CELL, untorn, is_wanted=False) as watch:
        pass
    assert watch.facts is not None
    assert "ENOSPC" == watch.facts.probe
    monkeypatch.setattr(probed, lambda *_: "EINVAL")
    with pytest.raises(BedplateError, match="came to EINVAL"), PageWatch(data, CELL, untorn, is_wanted=False):
        pass


def test_pages_have_no_place_where_the_file_system_has_no_map(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_map(_: Path) -> tuple[FileExtent, ...]:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr("bedplate.workloads.power_cut.tearing.extents_of", no_map)
    assert (4, 0) == unmapped_of(data, "ext4")


def at(first_page: int, pages: float, *, data: bytes = b"p", device: int = 0) -> Written:
    sectors, length = int(first_page * PAGE // 512), int(pages * PAGE)
    return Written(sector=sectors, data=data * length, device=device)


@pytest.mark.parametrize(
    ("entry", "counted"),
    [
        (at(64, 1), (1, 0)),
        # Two aligned pages are a write of 16 kB, which the unit covers; off that grid, and of four, it does not.
        (at(64, 2), (1, 0)),
        (at(65, 2), (1, 1)),
        (at(64, 4), (1, 1)),
        # Half a page leaves the other half to another write.
        (at(64, 0.5), (1, 1)),
        # What begins before the pages, and has some of them.
        (at(62, 4), (1, 1)),
        # No pages are there, or on the journal's device; zeros are written where nothing was.
        (at(60, 4), (0, 0)),
        (at(68, 4), (0, 0)),
        (at(64, 4, device=1), (0, 0)),
        (at(64, 4, data=b"\0"), (0, 0)),
    ],
)
def test_what_reached_the_device_of_the_pages_is_held_against_its_unit(
    entry: Written, counted: tuple[int, int], data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = (FileExtent(0, 2 * PAGE, 64 * PAGE), FileExtent(2 * PAGE, 2 * PAGE, 66 * PAGE))
    monkeypatch.setattr("bedplate.workloads.power_cut.tearing.extents_of", lambda _: two)
    with PageWatch(data, CELL, None, is_wanted=True) as watch:
        pass
    outside = at(64, 4)
    with read_log(written_log(data.parent / "log", [outside, Written(flags=FLUSH), entry])) as log:
        found = watch.facts_of(log, range(1, len(log)), Profile.UNTORN_16K)
        assert found is not None
        assert counted == (found.writes, found.uncovered_writes)
        without = watch.facts_of(log, range(len(log)), None)
        assert without == watch.facts
        assert without is not None
        assert without.writes is None


def test_a_data_directory_below_a_link_is_looked_for_where_it_is(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = (FileExtent(0, 4 * PAGE, 64 * PAGE),)
    monkeypatch.setattr("bedplate.workloads.power_cut.tearing.extents_of", lambda _: one)
    # As /proc names it.
    monkeypatch.setattr(
        "bedplate.workloads.power_cut.tearing.direct_files",
        lambda below: frozenset({below / "relation"} if below == data.resolve() else ()),
    )
    (link := data.parent / "link").symlink_to(data)
    with PageWatch(link, CELL, None, is_wanted=True) as watch:
        pass
    assert watch.facts is not None
    assert (1, 4) == (watch.facts.direct_files, watch.facts.before.pages)


def test_the_log_of_an_engine_holds_no_pages(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (data / "pg_wal").mkdir()
    (data / "pg_wal" / "000000010000000000000001").write_bytes(bytes(2 * PAGE))
    monkeypatch.setattr(
        "bedplate.workloads.power_cut.tearing.direct_files",
        lambda _: frozenset(path for path in data.rglob("*") if path.is_file()),
    )
    one = (FileExtent(0, 4 * PAGE, 64 * PAGE),)
    monkeypatch.setattr("bedplate.workloads.power_cut.tearing.extents_of", lambda _: one)
    logs = log_files("postgresql")
    with (
        PageWatch(data, CELL, None, is_wanted=True, logs=logs) as watch,
        RecoveryWatch(data, "xfs", PAGE, None, logs=logs) as recovering,
    ):
        pass
    recovered = recovering.facts()
    assert watch.facts is not None
    assert recovered is not None
    assert (1, 1) == (watch.facts.direct_files, recovered.direct_files)


@pytest.mark.parametrize(("filesystem", "unaligned", "unmapped"), [("xfs", 4, 0), ("btrfs", 0, 4)])
def test_the_pages_of_a_recovery_are_looked_for_while_it_runs(
    filesystem: str, unaligned: int, unmapped: int, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = (FileExtent(0, 4 * PAGE, PAGE // 2),)
    monkeypatch.setattr("bedplate.workloads.power_cut.tearing.extents_of", lambda _: one)
    with RecoveryWatch(data, filesystem, PAGE, None) as watch:
        assert watch.untorn is None
    found = watch.facts()
    assert found is not None
    assert (1, 4, unaligned, unmapped, None) == (
        found.direct_files,
        found.after.pages,
        found.after.unaligned,
        found.after.unmapped,
        found.counts,
    )


def test_pages_of_a_recovery_without_a_size_are_not_looked_for(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bedplate.workloads.power_cut.tearing.direct_files", lambda _: pytest.fail("looked"))
    with RecoveryWatch(data, "xfs", None, None) as watch:
        pass
    assert watch.facts() is None
