"""Runs that were scheduled otherwise than their repetitions: one configuration, two speeds.

On a machine that has fewer processors than threads at work, the scheduler may place the threads of a run in one way or
another, and keep to it for the whole run. No run shows by itself which it was. Its repetitions do: where a client's thread
finds several answers at each waking it sleeps less often for as many transactions, and the processors change tasks less often.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING

from bedplate.model.visit import Outcome, Validity

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bedplate.report.overview import Measurement

WAYS_SHARE_MAX = 0.10
TPS_SHARE_MAX = 0.05
# Below the header of one WAL record for each transaction: what waits for the medium sleeps for other causes.
_WAL_KIB_MAX = 0.02
_WAYS = {
    "client_sleeps_per_transaction": "the client's threads slept {:.2f} times for each transaction, where the median is {:.2f}",
    "context_switches_per_transaction": "{:.2f} changes of tasks for each transaction, where the median is {:.2f}",
    "machine_cpu_share": "processors were busy for {:.0%} of the time, where the median is {:.0%}",
}


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
        and wal_kib is not None
        and wal_kib < _WAL_KIB_MAX
    )


def _others(kind: Sequence[Measurement]) -> Iterator[tuple[Measurement, str]]:
    usual_tps = median(m.value("tps") or 0.0 for m in kind)
    usual = {
        metric: median(known) for metric in _WAYS if (known := [v for m in kind if (v := m.value(metric))])
    }
    for m in kind:
        tps = m.value("tps") or 0.0
        if abs(tps / usual_tps - 1) <= TPS_SHARE_MAX:
            continue
        otherwise = [
            words.format(value, usual[metric])
            for metric, words in _WAYS.items()
            if (value := m.value(metric)) and abs(value / usual[metric] - 1) > WAYS_SHARE_MAX
        ]
        if otherwise:
            median_words = f"where the median of {len(kind)} repetitions is {usual_tps:.0f}"
            yield (
                m,
                f"the scheduler ran it in another way: {'; '.join(otherwise)}; {tps:.0f} tps, {median_words}",
            )


def _with_reason(m: Measurement, reason: str) -> Measurement:
    return replace(m, validity=Validity.SUSPECT, reasons=(*m.reasons, reason))
