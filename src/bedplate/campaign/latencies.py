"""Devices with latency that this machine cannot be are refused before the first visit of a start."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.host.command import Commands
from bedplate.host.devices.journal_device import MEMORY_DIRECTORY
from bedplate.host.devices.latency_device import fitting_way, way_there
from bedplate.host.ledger import Ledger
from bedplate.host.recorder import DRIVER
from bedplate.host.state import state_directory

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bedplate.host.devices.latency_device import WayThere
    from bedplate.model.cell import Cell


def refuse_latencies(cells: Iterable[Cell], drivers: Mapping[str, str]) -> None:
    """RequirementMissing with every reason; the way to such a device is measured in some seconds, three times before it refuses. Needs root."""
    wanted = dict.fromkeys(cell.device.latency for cell in cells if cell.device.latency is not None)
    if all(latency.is_path_alone for latency in wanted):
        return
    fitting_way(wanted, lambda: _way(Path(drivers[DRIVER])))


def _way(driver: Path) -> WayThere:
    with (
        Ledger.open(state_directory(), f"{os.getpid()}-latency") as ledger,
        tempfile.TemporaryDirectory(prefix="bedplate-latency-", dir=MEMORY_DIRECTORY) as folder,
    ):
        return way_there(driver, Path(folder), ledger=ledger, commands=Commands())
