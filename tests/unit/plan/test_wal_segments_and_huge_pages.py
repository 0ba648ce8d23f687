"""WAL segments and huge pages that a server would refuse are refused before it starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bedplate.engines.postgresql.plan import HUGE_PAGES, PostgresqlEstimate, huge_pages, wal_segments
from bedplate.engines.postgresql.visit import huge_pages_shown
from bedplate.model.cell import BuildLevels, Cell, ClusterLevels, DeviceLevels, FilesystemLevels, KernelLevels
from bedplate.model.levels import Levels
from bedplate.model.machine import Machine
from bedplate.model.plan import Plan
from bedplate.model.visit import ReadBack, ScratchDevice
from bedplate.plan.rules import CellContext
from bedplate.units import GIB, MIB

LoadText = Callable[[str], Plan]
Edited = Callable[[str, str], str]
IMAGE = ScratchDevice(image_bytes=GIB)


def a_cell(*, segment_bytes: int | None = None, **settings: str) -> Cell:
    cluster = ClusterLevels(settings=Levels(settings), wal_segment_bytes=segment_bytes)
    return Cell(DeviceLevels(), KernelLevels(), FilesystemLevels("ext4"), BuildLevels(), cluster)


def test_huge_pages_need_some_that_are_reserved(machine: Callable[..., Machine]) -> None:
    def reasons(reserved: str, **settings: Any) -> list[str]:
        around = CellContext(machine(tunables={HUGE_PAGES: reserved}), IMAGE)
        return list(huge_pages(a_cell(**settings), around))

    (why,) = reasons("0", huge_pages="on")
    assert "this machine has none reserved; `sysctl vm.nr_hugepages=N` reserves N" in why
    assert [] == reasons("600", huge_pages="on")
    assert [] == reasons("0", huge_pages="try")
    assert [] == reasons("0")
    assert [] == list(huge_pages(a_cell(huge_pages="on"), CellContext(None, IMAGE)))


def test_a_server_without_huge_pages_that_were_asked_for_is_found() -> None:
    rows: list[list[str | None]] = [["huge_pages_status", "off", None, "enum", "off", "f"]]
    assert [ReadBack("huge pages", "on", "off", "SHOW huge_pages_status", matches=False)] == list(
        huge_pages_shown(rows, {"huge_pages": "on"})
    )
    assert [ReadBack("huge pages", "off", "off", "SHOW huge_pages_status", matches=True)] == list(
        huge_pages_shown(rows, {"huge_pages": "off"})
    )
    assert [] == list(huge_pages_shown(rows, {"huge_pages": "try"}))
    # Before 17 no server says it.
    assert [] == list(huge_pages_shown([], {"huge_pages": "on"}))


@pytest.mark.parametrize(
    ("asked", "refused"), [("100MB", True), ("100", True), ("128MB", False), ("1GB", False)]
)
def test_the_wal_holds_two_segments(asked: str, *, refused: bool) -> None:
    found = list(wal_segments(a_cell(segment_bytes=64 * MIB, max_wal_size=asked), CellContext(None, IMAGE)))
    assert refused == bool(found)
    assert all("set max_wal_size to 128 MiB or more" in why for why in found)


def test_a_plan_varies_the_segments_and_the_room_for_them(load_text: LoadText, edited: Edited) -> None:
    plan = load_text(edited('wal_segment_size = { vary = ["16 MB", "64 MB"] }', "postgresql"))
    cells = list(plan.cells())
    assert [16 * MIB, 64 * MIB] == [cell.cluster.wal_segment_bytes for cell in cells]
    assert 64 * MIB == cells[1].levels["cluster.wal_segment_bytes"]
    # 64 segments, unless the plan says how much.
    assert [GIB, 4 * GIB] == [PostgresqlEstimate().log_bytes(cell) for cell in cells]
