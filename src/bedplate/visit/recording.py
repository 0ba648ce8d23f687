"""One run of several phases under way: their clocks and counters, its items, its course.

Collects what the record will say, whatever happens. A workload's own recording adds what only it knows.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from bedplate.errors import BedplateError, VisitFailed
from bedplate.model.reason import distinct, reasons_of
from bedplate.model.visit import Outcome, Phase, PhaseCounters, RunRecord, TimedItem
from bedplate.probe.sampler import Sampler, read_all
from bedplate.visit.engine_server import ServerFailed
from bedplate.visit.piped_session import SessionFailed
from bedplate.visit.server import why_the_server_is_gone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from bedplate.model.cell import RunSpec
    from bedplate.model.levels import Scalar
    from bedplate.model.reason import Reason
    from bedplate.model.visit import Sample
    from bedplate.probe.protocol import Probe
    from bedplate.visit.workload import VisitContext


class Recording:
    """What a run has recorded so far; `sampled` frames the measuring, `timed_phase` each part of it."""

    def __init__(self, spec: RunSpec, context: VisitContext, directory: Path) -> None:
        self.spec = spec
        self.context = context
        self.directory = directory
        self.reasons: list[Reason] = []
        self.facts: dict[str, Scalar] = {
            "memory_bytes": context.memory_bytes,
            "cpu_count": os.cpu_count() or 1,
        }
        self.commands: list[tuple[str, ...]] = []
        self._items: list[TimedItem] = []
        self._phases: list[Phase] = []
        self._warm_ups: list[Phase] = []
        self._counters: list[PhaseCounters] = []
        self._probes: list[Probe] = []
        self._on_sample: Callable[[Sample], None] | None = None
        self._sampler: Sampler | None = None
        # Several threads may tell of what they do.
        self._telling = threading.Lock()

    @contextlib.contextmanager
    def sampled(
        self,
        probes: Sequence[Probe],
        *,
        first_phase: str,
        on_sample: Callable[[Sample], None] | None = None,
    ) -> Iterator[None]:
        """The context's probes and these beside the run, once a second and at the ends of its phases."""
        self._probes = [*self.context.probes, *probes]
        self._on_sample = on_sample
        self._start_sampling(first_phase)
        try:
            yield
        finally:
            self._stop_sampling()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """No thread samples meanwhile: a child that runs Python before its program is forked in here."""
        sampler = self._stop_sampling()
        try:
            yield
        finally:
            if sampler is not None:
                self._start_sampling(sampler.phase)

    def _start_sampling(self, phase: str) -> None:
        course = self.directory / "course.jsonl"
        self._sampler = Sampler(self._probes, course, on_sample=self._on_sample)
        self._sampler.phase = phase
        self._sampler.start()

    def _stop_sampling(self) -> Sampler | None:
        sampler, self._sampler = self._sampler, None
        if sampler is not None:
            sampler.stop()
            if sampler.problem is not None:
                self.facts.setdefault("course_problem", sampler.problem)
        return sampler

    @contextlib.contextmanager
    def timed_phase(self, name: str, settle: Callable[[], None] = lambda: None) -> Iterator[None]:
        """One phase: its clocks, and the counters just before and after it; `settle` comes before the latter."""
        before = read_all(self._probes, phase=name)
        self._name_samples(name)
        start_monotonic_s, start_wall_s = time.monotonic(), time.time()
        try:
            yield
        finally:
            self._phases.append(Phase(name, start_monotonic_s, time.monotonic(), start_wall_s, time.time()))
        settle()
        self._counters.append(PhaseCounters(name, before, read_all(self._probes, phase=name)))

    @contextlib.contextmanager
    def warm_up(self) -> Iterator[None]:
        """A phase `warmup`: recorded, and in no figure, so that no counters frame it."""
        self._name_samples("warmup")
        start_monotonic_s, start_wall_s = time.monotonic(), time.time()
        try:
            yield
        finally:
            self._warm_ups.append(
                Phase("warmup", start_monotonic_s, time.monotonic(), start_wall_s, time.time())
            )

    @property
    def last_counters(self) -> PhaseCounters:
        """Of the phase that ended last."""
        return self._counters[-1]

    def between_phases(self, name: str) -> None:
        """What is sampled from here on belongs to no phase that is measured, but to `name`."""
        self._name_samples(name)

    def _name_samples(self, phase: str) -> None:
        if self._sampler is not None:
            self._sampler.phase = phase

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
            self.context.emit(
                {
                    "event": "item",
                    "run": self.spec.name,
                    "phase": phase,
                    "item": item,
                    "done": done,
                    "of": of,
                }
            )

    def made(self, steps: Callable[[], None]) -> RunRecord:
        """The record of these steps: what stops them is its reason, and what ended the server with them.

        VisitFailed where the stand could not be made cold: nothing is left then to run on.
        """
        try:
            steps()
        except VisitFailed:
            raise
        except BedplateError as error:
            self.reasons += reasons_of(error)
            if isinstance(error, ServerFailed | SessionFailed):
                self.reasons += why_the_server_is_gone(self.context)
        return self.record()

    def record(self) -> RunRecord:
        """What is known now; `completed` only if nothing spoke against it."""
        whole = bool(self._counters) and len(self._counters) == len(self._phases)
        return RunRecord(
            spec=self.spec,
            outcome=Outcome.FAILED if self.reasons else Outcome.COMPLETED,
            reasons=distinct(self.reasons),
            phases=(*self._warm_ups, *self._phases),
            before=self._counters[0].before if self._counters else None,
            after=self._counters[-1].after if whole else None,
            facts=self.facts,
            commands=tuple(self.commands),
            phase_counters=tuple(self._counters),
            items=tuple(self._items),
        )
