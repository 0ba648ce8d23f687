"""Runs of another mode than their repetitions (`study/modes.py`) as suspect, for everything that shows them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bedplate.model.visit import Outcome, Validity
from bedplate.study.modes import MODE_METRICS, in_other_modes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bedplate.analysis.overview import Measurement


def marked_by_mode(measurements: Sequence[Measurement]) -> tuple[Measurement, ...]:
    """The same, with runs that only read suspect where they slept and sped otherwise than the median of their kind."""
    paced = [
        (
            (m.cell, m.dataset, m.run, m.canary),
            {name: value for name in MODE_METRICS if (value := m.value(name)) is not None}
            if m.outcome is Outcome.COMPLETED
            else {},
        )
        for m in measurements
    ]
    reasons = in_other_modes(paced)
    return tuple(
        replace(m, validity=Validity.SUSPECT, reasons=(*m.reasons, reasons[place])) if place in reasons else m
        for place, m in enumerate(measurements)
    )
