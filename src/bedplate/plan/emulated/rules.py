"""What cannot be on a device with latency."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.model.reason import Reason
from bedplate.model.workload import model_of
from bedplate.plan.platforms import LOCAL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bedplate.model.cell import Cell
    from bedplate.model.plan import Load


def latency_reasons(cell: Cell, load: Load, *, executor: str) -> Iterator[Reason]:
    """Why a cell cannot have its latency with this dataset; nothing where it asks for none."""
    latency = cell.device.latency
    if latency is None:
        return
    if executor != LOCAL:
        yield Reason(
            "latency-impossible",
            f"latency {latency.name}: what the way to the device takes is measured on the machine itself, which guests and nodes "
            'are not; use executor = "local"',
        )
    if model_of(load.dataset.workload).has_own_disk:
        yield Reason(
            "latency-impossible",
            f"latency {latency.name}: {load.dataset.workload} has a disk of its own in memory, which the latency of the scratch device "
            "does not reach; give it a plan of its own without latency",
        )
