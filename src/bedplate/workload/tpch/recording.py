"""One TPC-H run under way: its phases with their clocks and counters, its items, its course.

Collects what the record will say, whatever happens.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from bedplate.errors import BedplateError
from bedplate.model.visit import Outcome, Phase, PhaseCounters, RunRecord, TimedItem
from bedplate.probe.kernel import ProcessProbe
from bedplate.probe.postgresql import PostgresqlProbe
from bedplate.probe.sampler import Sampler, read_all

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from bedplate.engine.postgresql.session import Session
    from bedplate.model.cell import RunSpec
    from bedplate.model.levels import Scalar
    from bedplate.probe.protocol import Probe
    from bedplate.workload.protocol import Rig

# A session keeps its counters to itself for up to ten seconds (pgstat.c, PGSTAT_IDLE_INTERVAL); asked so, it
# has handed them over when this statement has ended.
_HAND_OVER_COUNTERS = "SELECT pg_stat_force_next_flush()"


class Recording:
    """What a run has recorded so far; `watched` frames the measuring, `phase` each part of it."""

    def __init__(self, spec: RunSpec, rig: Rig, directory: Path) -> None:
        self.spec = spec
        self.rig = rig
        self.directory = directory
        self.reasons: list[str] = []
        self.scale_factor = _scale_factor(rig)
        self.facts: dict[str, Scalar] = {
            "scale_factor": self.scale_factor,
            "memory_bytes": rig.memory_bytes,
            "block_size_bytes": rig.cluster.build.block_size_bytes,
            "cpu_count": os.cpu_count() or 1,
        }
        self._items: list[TimedItem] = []
        self._phases: list[Phase] = []
        self._counters: list[PhaseCounters] = []
        self._probes: list[Probe] = []
        self._sampler: Sampler | None = None
        # Streams tell of their queries from threads of their own.
        self._telling = threading.Lock()

    @contextlib.contextmanager
    def watched(self, sessions: Sequence[Session], *, first_phase: str) -> Iterator[None]:
        """Probes beside the run, once a second and at the ends of its phases; `sessions` are its clients."""
        with self.rig.cluster.session() as watching:
            pids = [session.pid for session in sessions]
            self._probes = [
                *self.rig.probes,
                PostgresqlProbe(watching, self.rig.cluster.build.version),
                ProcessProbe("client", lambda: pids),
                ProcessProbe("watching", lambda: (os.getpid(), watching.pid)),
            ]
            self._sampler = Sampler(self._probes, self.directory / "course.jsonl")
            self._sampler.phase = first_phase
            self._sampler.start()
            try:
                yield
            finally:
                self._sampler.stop()
                if self._sampler.problem is not None:
                    self.facts["course_problem"] = self._sampler.problem
            self._read_sizes(watching)

    @contextlib.contextmanager
    def phase(self, name: str, sessions: Sequence[Session]) -> Iterator[None]:
        """One phase: its clocks, and the counters just before and after it."""
        assert self._sampler is not None  # noqa: S101 -- phases lie within `watched`
        before = read_all(self._probes, phase=name)
        self._sampler.phase = name
        start_monotonic_s, start_wall_s = time.monotonic(), time.time()
        try:
            yield
        finally:
            self._phases.append(Phase(name, start_monotonic_s, time.monotonic(), start_wall_s, time.time()))
        for session in sessions:
            session.execute(_HAND_OVER_COUNTERS, timeout_s=60)
        self._counters.append(PhaseCounters(name, before, read_all(self._probes, phase=name)))

    def add(self, item: TimedItem) -> None:
        """Something that was timed."""
        self._items.append(item)

    def add_facts(self, phase: str, name: str, **facts: Scalar) -> None:
        """More of what was found out about an item."""
        self._items = [
            replace(item, facts={**item.facts, **facts}) if (item.phase, item.item) == (phase, name) else item
            for item in self._items
        ]

    def tell(self, phase: str, item: str, *, done: int, of: int) -> None:
        """Say what happens now; `done` counts from 1 and includes it."""
        with self._telling:
            self.rig.emit(
                {
                    "event": "item",
                    "run": self.spec.name,
                    "phase": phase,
                    "item": item,
                    "done": done,
                    "of": of,
                }
            )

    def record(self) -> RunRecord:
        """What is known now; `completed` only if nothing spoke against it."""
        whole = bool(self._counters) and len(self._counters) == len(self._phases)
        return RunRecord(
            spec=self.spec,
            outcome=Outcome.FAILED if self.reasons else Outcome.COMPLETED,
            reasons=tuple(dict.fromkeys(self.reasons)),
            phases=tuple(self._phases),
            before=self._counters[0].before if self._counters else None,
            after=self._counters[-1].after if whole else None,
            facts=self.facts,
            phase_counters=tuple(self._counters),
            items=tuple(self._items),
        )

    def _read_sizes(self, session: Session) -> None:
        self.rig.cluster.check_alive()
        self.facts["database_bytes"] = int(session.value("SELECT pg_database_size(current_database())"))
        self.facts["wal_bytes_on_disk"] = int(
            session.value("SELECT coalesce(sum(size), 0)::bigint FROM pg_ls_waldir()")
        )


def _scale_factor(rig: Rig) -> float:
    scale_factor = rig.dataset.levels.number("scale_factor")
    if scale_factor is None:
        raise BedplateError("the dataset names no scale_factor, so there is nothing to load and to ask")
    return scale_factor
