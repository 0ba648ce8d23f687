"""One TPC-H run under way: its sessions watched, its scale, the sizes that it leaves."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from bedplate.engines.postgresql.counters import PostgresqlProbe
from bedplate.engines.postgresql.server import cluster_of
from bedplate.errors import BedplateError
from bedplate.probe.kernel import ProcessProbe
from bedplate.visit.recording import Recording

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from bedplate.engines.postgresql.session import Session
    from bedplate.model.cell import RunSpec
    from bedplate.visit.workload import VisitContext

# A session keeps its counters to itself for up to ten seconds (pgstat.c, PGSTAT_IDLE_INTERVAL); asked so, it
# has handed them over when this statement has ended.
_HAND_OVER_COUNTERS = "SELECT pg_stat_force_next_flush()"


class TpchRecording(Recording):
    """What a run has recorded so far; `watched` frames the measuring, `phase` each part of it."""

    def __init__(self, spec: RunSpec, context: VisitContext, directory: Path) -> None:
        super().__init__(spec, context, directory)
        self.scale_factor = _scale_factor(context)
        self.facts["scale_factor"] = self.scale_factor
        self.facts["block_size_bytes"] = cluster_of(context).build.block_size_bytes

    @contextlib.contextmanager
    def watched(self, sessions: Sequence[Session], *, first_phase: str) -> Iterator[None]:
        """Probes beside the run, once a second and at the ends of its phases; `sessions` are its clients."""
        with cluster_of(self.context).session() as watching:
            pids = [session.pid for session in sessions]
            probes = (
                PostgresqlProbe(watching, cluster_of(self.context).build.version),
                ProcessProbe("client", lambda: pids),
                ProcessProbe("watching", lambda: (os.getpid(), watching.pid)),
            )
            with self.sampled(probes, first_phase=first_phase):
                yield
            self._read_sizes(watching)

    def phase(self, name: str, sessions: Sequence[Session]) -> AbstractContextManager[None]:
        """One phase: its clocks, and the counters just before and after it."""

        def hand_over() -> None:
            for session in sessions:
                session.execute(_HAND_OVER_COUNTERS, timeout_s=60)

        return self.timed_phase(name, hand_over)

    def _read_sizes(self, session: Session) -> None:
        cluster_of(self.context).check_alive()
        self.facts["database_bytes"] = int(session.value("SELECT pg_database_size(current_database())"))
        self.facts["wal_bytes_on_disk"] = int(
            session.value("SELECT coalesce(sum(size), 0)::bigint FROM pg_ls_waldir()")
        )


def _scale_factor(context: VisitContext) -> float:
    scale_factor = context.dataset.levels.number("scale_factor")
    if scale_factor is None:
        raise BedplateError("the dataset names no scale_factor, so there is nothing to load and to ask")
    return scale_factor
