"""Devices with latency that this machine cannot be are refused before the first visit of a start."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import RequirementMissing
from bedplate.host.command import Commands
from bedplate.host.devices.journal_device import MEMORY_DIRECTORY
from bedplate.host.devices.latency_device import refusals, way_there
from bedplate.host.ledger import Ledger
from bedplate.host.recorder import DRIVER
from bedplate.host.state import state_directory

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bedplate.model.cell import Cell


def refuse_latencies(cells: Iterable[Cell], drivers: Mapping[str, str]) -> None:
    """RequirementMissing with every reason; the way to such a device is measured once, in some seconds. Needs root."""
    wanted = dict.fromkeys(cell.device.latency for cell in cells if cell.device.latency is not None)
    if all(latency.is_path_alone for latency in wanted):
        return
    with (
        Ledger.open(state_directory(), f"{os.getpid()}-latency") as ledger,
        tempfile.TemporaryDirectory(prefix="bedplate-latency-", dir=MEMORY_DIRECTORY) as folder,
    ):
        way = way_there(Path(drivers[DRIVER]), Path(folder), ledger=ledger, commands=Commands())
    if reasons := tuple(reason for latency in wanted for reason in refusals(latency, way)):
        raise RequirementMissing(*reasons)
