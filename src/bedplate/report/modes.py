"""Runs whose client was scheduled otherwise than that of their repetitions: one configuration, two speeds.

On a machine that has fewer processors than threads at work, the scheduler may place the threads of a run in one way or
another, and keep to it for the whole run. No run shows by itself which it was. Its repetitions do: where the threads of a
client find several answers at each waking, they sleep less often for as many transactions.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING

from bedplate.model.visit import Outcome, Validity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bedplate.report.overview import Measurement

SLEEPS_SHARE_MAX = 0.10
TPS_SHARE_MAX = 0.05
# Below the header of one WAL record for each transaction: what waits for the medium sleeps for other causes.
_WAL_KIB_MAX = 0.02
_SLEEPS = "client_sleeps_per_transaction"


def marked_by_mode(measurements: Sequence[Measurement]) -> tuple[Measurement, ...]:
    """The same, with runs that only read suspect where they slept and sped otherwise than the median of their kind.

    Of two repetitions that differ both are suspect: nothing tells which is the usual one.
    """
    of_kind: dict[tuple[str, str, str, bool], list[Measurement]] = defaultdict(list)
    for m in measurements:
        if _is_judged(m):
            of_kind[m.cell, m.dataset, m.run, m.canary].append(m)
    reasons = {id(m): reason for kind in of_kind.values() for m, reason in _others(kind)}
    return tuple(_with_reason(m, reasons[id(m)]) if id(m) in reasons else m for m in measurements)


def _is_judged(m: Measurement) -> bool:
    wal_kib = m.value("wal_kib_per_transaction")
    return (
        m.outcome is Outcome.COMPLETED
        and bool(m.value("tps"))
        and bool(m.value(_SLEEPS))
        and wal_kib is not None
        and wal_kib < _WAL_KIB_MAX
    )


def _others(kind: Sequence[Measurement]) -> list[tuple[Measurement, str]]:
    usual_sleeps, usual_tps = (median(m.value(metric) or 0.0 for m in kind) for metric in (_SLEEPS, "tps"))
    found = []
    for m in kind:
        sleeps, tps = m.value(_SLEEPS) or 0.0, m.value("tps") or 0.0
        if abs(sleeps / usual_sleeps - 1) <= SLEEPS_SHARE_MAX or abs(tps / usual_tps - 1) <= TPS_SHARE_MAX:
            continue
        reason = (
            f"the scheduler ran the client in another way: its threads slept {sleeps:.2f} times for each transaction, "
            f"at {tps:.0f} tps; the median of {len(kind)} repetitions is {usual_sleeps:.2f} at {usual_tps:.0f} tps"
        )
        found.append((m, reason))
    return found


def _with_reason(m: Measurement, reason: str) -> Measurement:
    return replace(m, validity=Validity.SUSPECT, reasons=(*m.reasons, reason))
