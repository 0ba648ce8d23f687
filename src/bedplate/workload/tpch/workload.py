"""TPC-H: PostgreSQL as a data warehouse, loaded, asked alone and asked by several at once.

Not an audited TPC-H benchmark; its figures are no TPC-H results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.engine.postgresql.cluster import ServerFailed
from bedplate.engine.postgresql.session import SessionFailed
from bedplate.errors import BedplateError, VisitFailed
from bedplate.model.tpch import LOAD, POWER, THROUGHPUT, WORKLOAD
from bedplate.workload.server_loss import why_the_server_is_gone
from bedplate.workload.tpch.loading import load
from bedplate.workload.tpch.power import run_power
from bedplate.workload.tpch.recording import TpchRecording
from bedplate.workload.tpch.throughput import run_throughput

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from bedplate.host.requirement import Need
    from bedplate.model.cell import Dataset, RunSpec
    from bedplate.model.visit import RunRecord
    from bedplate.workload.protocol import Driver, Rig

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

    def load(self, dataset: Dataset, rig: Rig) -> None:
        """Nothing: the load is timed phase by phase, as a run of its own."""

    def run(self, spec: RunSpec, rig: Rig, directory: Path) -> RunRecord:
        """The load, one pass over the queries, or all streams, by the level `kind`.

        VisitFailed where the stand could not be made cold: nothing is left then to run on.
        """
        recording = TpchRecording(spec, rig, directory)
        try:
            _run_of(spec)(recording)
        except VisitFailed:
            raise
        except (ServerFailed, SessionFailed) as error:
            recording.reasons.extend(error.reasons)
            recording.reasons.extend(why_the_server_is_gone(rig))
        except BedplateError as error:
            recording.reasons.extend(error.reasons)
        return recording.record()


def _run_of(spec: RunSpec) -> Callable[[TpchRecording], None]:
    kind = spec.levels.text("kind") or ""
    if kind not in _KINDS:
        raise BedplateError(f"run {spec.name}: kind {kind!r} is not known; known are {', '.join(_KINDS)}")
    return _KINDS[kind]
