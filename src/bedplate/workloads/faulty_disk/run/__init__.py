"""The runs of a disk that fails: one recording for each fault, and what is left of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.workloads.faulty_disk.run.workload import FaultyDisk

if TYPE_CHECKING:
    from bedplate.visit.workload import Workload

RUN: Workload = FaultyDisk()
