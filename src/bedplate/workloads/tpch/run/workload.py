"""TPC-H: PostgreSQL as a data warehouse, loaded, asked alone and asked by several at once.

Not an audited TPC-H benchmark; its figures are no TPC-H results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.errors import BedplateError
from bedplate.workloads.tpch.model import LOAD, POWER, THROUGHPUT, WORKLOAD
from bedplate.workloads.tpch.run.loading import load
from bedplate.workloads.tpch.run.power import run_power
from bedplate.workloads.tpch.run.recording import TpchRecording
from bedplate.workloads.tpch.run.throughput import run_throughput

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from bedplate.host.requirement import Need
    from bedplate.model.cell import Dataset, RunSpec
    from bedplate.model.visit import RunRecord
    from bedplate.visit.workload import Driver, VisitContext

_KINDS: Mapping[str, Callable[[TpchRecording], None]] = {
    LOAD: load,
    POWER: run_power,
    THROUGHPUT: run_throughput,
}


class Tpch:
    """`type = "tpch"` in a plan."""

    name = WORKLOAD
    # Raised whenever a change of how it is measured makes old and new figures incomparable.
    protocol = "tpch 1"
    needs: tuple[Need, ...] = ()
    drivers: tuple[Driver, ...] = ()

    def load(self, dataset: Dataset, context: VisitContext) -> None:
        """Nothing: the load is timed phase by phase, as a run of its own."""

    def run(self, spec: RunSpec, context: VisitContext, directory: Path) -> RunRecord:
        """The load, one pass over the queries, or all streams, by the level `kind`."""
        recording = TpchRecording(spec, context, directory)
        return recording.made(lambda: _run_of(spec)(recording))


def _run_of(spec: RunSpec) -> Callable[[TpchRecording], None]:
    kind = spec.levels.text("kind") or ""
    if kind not in _KINDS:
        raise BedplateError(f"run {spec.name}: kind {kind!r} is not known; known are {', '.join(_KINDS)}")
    return _KINDS[kind]
