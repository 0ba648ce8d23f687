"""The metrics of sysbench alone: what went wrong in a run that it goes on with."""

from __future__ import annotations

from bedplate.model.figure import Better, Metric, Scale, taken_from

# A table: a line for a metric, of which the formatter would make eight.
# fmt: off
METRICS = {"sysbench": taken_from(
    "sysbench's summary",
    Metric("ignored_errors", "1", Scale.COUNT, Better.LOWER,
        "attempts that ended in an error which sysbench ignores (deadlock, serialization failure, duplicate key): rolled back, and begun again"),
    Metric("ignored_error_share", "share", Scale.PROPORTION, Better.LOWER, "ignored errors / (ignored errors + transactions)"),
    Metric("reconnects", "1", Scale.COUNT, Better.LOWER, "connections that were lost and made again"),
)}
# fmt: on
