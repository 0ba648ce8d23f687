"""A device that this machine cannot be is refused; a busy moment is none of the machine's properties."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bedplate.campaign import start
from bedplate.campaign.start import refuse_latencies
from bedplate.errors import RequirementMissing
from bedplate.host.recorder import DRIVER, WayThere, fitting_way
from bedplate.model.cell import BuildLevels, Cell, ClusterLevels, DeviceLevels, FilesystemLevels, KernelLevels
from bedplate.model.devices import Latency

if TYPE_CHECKING:
    from pathlib import Path

QUIET = WayThere(50_000, 50_000, 50_000, 60_000, 60_000)
BUSY = WayThere(50_000, 50_000, 50_000, 40_000, 40_000)
LATENCY = Latency("x", "1ms", "1ms", "6ms", queue_depth=32)


@pytest.mark.parametrize(
    ("ways", "is_refused"), [([QUIET], False), ([BUSY, BUSY, QUIET], False), ([BUSY, BUSY, BUSY], True)]
)
def test_only_what_is_refused_three_times_is(
    ways: list[WayThere], is_refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BEDPLATE_STATE", str(tmp_path / "state"))
    measured = iter(ways)
    monkeypatch.setattr(start, "way_there", lambda *_, **__: next(measured))
    cell = Cell(
        DeviceLevels(latency=LATENCY),
        KernelLevels(),
        FilesystemLevels("ext4"),
        BuildLevels(),
        ClusterLevels(),
    )
    if is_refused:
        with pytest.raises(RequirementMissing, match="32,000 reads a second"):
            refuse_latencies([cell], {DRIVER: "unused"})
    else:
        refuse_latencies([cell], {DRIVER: "unused"})
    assert next(measured, None) is None


def test_a_visit_takes_what_leaves_no_room_to_others() -> None:
    assert BUSY is fitting_way([LATENCY], lambda: BUSY, share_max=1.0)
