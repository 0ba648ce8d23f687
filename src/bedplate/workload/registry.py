"""The workloads by their names in a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.errors import PlanError
from bedplate.workload.bonnie import Bonnie
from bedplate.workload.fio import Fio
from bedplate.workload.lmdb import Lmdb
from bedplate.workload.pgbench import Pgbench
from bedplate.workload.power_cut.workload import PowerCut
from bedplate.workload.tpch.workload import Tpch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.workload.protocol import Workload

_ALL: tuple[Workload, ...] = (Pgbench(), Tpch(), Lmdb(), Bonnie(), Fio(), PowerCut())
WORKLOADS: Mapping[str, Workload] = {workload.name: workload for workload in _ALL}


def workload_for(name: str) -> Workload:
    """The workload of that name; PlanError lists the known ones."""
    try:
        return WORKLOADS[name]
    except KeyError:
        raise PlanError(f"workload {name!r} is not known; known are {', '.join(WORKLOADS)}") from None
