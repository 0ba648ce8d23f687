"""Runs that were scheduled otherwise than their repetitions: one configuration, two speeds.

On a machine that has fewer processors than threads at work, the scheduler may place the threads of a run in one way or
another, and keep to it for the whole run. No run shows by itself which it was. Its repetitions do: where a client's thread
finds several answers at each waking it sleeps less often for as many transactions, and the processors change tasks less often.
"""

from __future__ import annotations

from collections import defaultdict
from statistics import median
from typing import TYPE_CHECKING

from bedplate.model.reason import because
from bedplate.units import percent

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from bedplate.model.reason import Reason

    # The kind that a completed run is of, and its figures by metric, as far as it has them.
    Paced = tuple[Hashable, Mapping[str, float]]

WAYS_SHARE_MAX = 0.10
TPS_SHARE_MAX = 0.05
# Below the header of one WAL record for each transaction: what waits for the medium sleeps for other causes.
WAL_KIB_OF_READING_MAX = 0.02
_WAYS = {
    "client_sleeps_per_transaction": (
        "the client's threads slept {} times for each transaction, where the median is {}",
        "{:.2f}".format,
    ),
    "context_switches_per_transaction": (
        "{} changes of tasks for each transaction, where the median is {}",
        "{:.2f}".format,
    ),
    "machine_cpu_share": ("processors were busy for {} of the time, where the median is {}", percent),
}
# What the rule looks at.
MODE_METRICS = ("tps", "wal_kib_per_transaction", *_WAYS)


def in_other_modes(runs: Sequence[Paced]) -> dict[int, Reason]:
    """Which runs that only read slept and sped otherwise than the median of their kind, and why it is thought so.

    Of two repetitions that differ both are told: nothing tells which is the usual one.
    """
    kinds: defaultdict[Hashable, list[int]] = defaultdict(list)
    for place, (kind, values) in enumerate(runs):
        if (
            values.get("tps")
            and values.get("wal_kib_per_transaction", WAL_KIB_OF_READING_MAX) < WAL_KIB_OF_READING_MAX
        ):
            kinds[kind].append(place)
    return {
        places[number]: reason
        for places in kinds.values()
        for number, reason in _others([runs[place][1] for place in places])
    }


def _others(kind: Sequence[Mapping[str, float]]) -> Iterator[tuple[int, Reason]]:
    usual_tps = median(values["tps"] for values in kind)
    usual = {
        metric: median(known) for metric in _WAYS if (known := [v for m in kind if (v := m.get(metric))])
    }
    for number, values in enumerate(kind):
        tps = values["tps"]
        if abs(tps / usual_tps - 1) <= TPS_SHARE_MAX:
            continue
        otherwise = [
            words.format(written(value), written(usual[metric]))
            for metric, (words, written) in _WAYS.items()
            if (value := values.get(metric)) and abs(value / usual[metric] - 1) > WAYS_SHARE_MAX
        ]
        if otherwise:
            median_words = f"where the median of {len(kind)} repetitions is {usual_tps:.0f}"
            words = (
                f"the scheduler ran it in another way: {'; '.join(otherwise)}; {tps:.0f} tps, {median_words}"
            )
            yield number, because("scheduled-otherwise", words, tps=tps, tps_median=usual_tps)
