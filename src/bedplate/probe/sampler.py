"""Reads every probe once a second and appends one line to the course."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from bedplate.errors import BedplateError
from bedplate.model.codec import dumps
from bedplate.model.visit import Sample


def read_all(probes: Sequence[Probe], *, phase: str) -> Sample:
    """One sample of all probes; the clocks are read first, so that they never run ahead of a counter."""
    monotonic_s, wall_s = time.monotonic(), time.time()
    values: dict[str, float] = {}
    for probe in probes:
        values.update(probe.read())
    return Sample(monotonic_s, wall_s, phase, values)


class Sampler:
    """A thread that samples from `start` to `stop`.

    A probe that fails ends the sampling, not the run; `problem` then says why, and the run's record
    carries it. `phase` may be set at any time and marks the samples that follow.
    """

    def __init__(
        self,
        probes: Sequence[Probe],
        path: Path,
        *,
        interval_s: float = 1.0,
        on_sample: Callable[[Sample], None] | None = None,
    ) -> None:
        self.phase = "warmup"
        self.problem: str | None = None
        self._probes = probes
        self._course = path
        self._interval_s = interval_s
        self._on_sample = on_sample
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="sampler", daemon=True)

    def start(self) -> None:
        """Begin with a first sample at once."""
        self._thread.start()

    def stop(self) -> None:
        """End after the sample under way; idempotent."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(timeout=60)

    def _sample(self) -> None:
        due = time.monotonic()
        try:
            with self._course.open("a", encoding="utf-8") as course:
                while not self._stopped.wait(max(0.0, due - time.monotonic())):
                    sample = read_all(self._probes, phase=self.phase)
                    course.write(dumps(sample, indent=None) + "\n")
                    if self._on_sample is not None:
                        self._on_sample(sample)
                    # A late sample does not move the later ones: the grid is kept, a missed point
                    # stays missing.
                    due += self._interval_s
                    while due <= time.monotonic():
                        due += self._interval_s
        except (BedplateError, OSError, ValueError) as error:
            self.problem = f"the course ends early: {error}"


class Probe(Protocol):
    """`name` as the record shows it; `skew` says in words how reading it may disturb the figures."""

    name: str
    skew: str

    def read(self) -> Mapping[str, float]:
        """The counters now, by their dotted names; one that the machine lacks is left out."""
