"""The metrics of a disk that fails: of all faults of a run, and of the tries of one (phase `fault`)."""

from __future__ import annotations

from bedplate.model.figure import Better, Metric, Scale, taken_from

_LOWER, _NEITHER, _COUNT = Better.LOWER, Better.NEITHER, Scale.COUNT

# A table: a line for a metric, of which the formatter would make eight.
# fmt: off
METRICS = {
    "Faulty disks": taken_from(
        "`faults.jsonl`",
        Metric("faults_hit", "1", _COUNT, _NEITHER, "faults that something met and that left a trace, without the controls; only these are results"),
        Metric("faults_not_hit", "1", _COUNT, _NEITHER, "faults that nothing met, or that left no trace"),
        Metric("faults_lost", "1", _COUNT, _LOWER, "faults after which something acknowledged was missing or damaged"),
        Metric("faults_lost_silently", "1", _COUNT, _LOWER,
            "those of them after which the engine worked on what was left, and only the oracle saw it"),
        Metric("faults_stopped", "1", _COUNT, _NEITHER, "faults that ended a client's session or the engine, or after which it hung"),
    ),
}
# fmt: on
