"""The record of a visit of which nobody else can write one."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.model.visit import FORMAT_VERSION, Outcome, VisitRecord

if TYPE_CHECKING:
    from bedplate.model.reason import Reason
    from bedplate.model.visit import VisitRequest


def lost_record(
    request: VisitRequest, reasons: tuple[Reason, ...], executor: str, seconds: float
) -> VisitRecord:
    """The record of a visit that left none: what is known is why."""
    return VisitRecord(
        format_version=FORMAT_VERSION,
        key=request.key,
        cell=request.cell,
        dataset=request.dataset,
        outcome=Outcome.FAILED,
        reasons=reasons,
        failed_step="visit process",
        started_wall_s=time.time() - seconds,
        seconds=seconds,
        boot_id=Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
        executor=executor,
        build_digest=None if request.build is None else request.build.digest,
        provenance=request.provenance,
    )
