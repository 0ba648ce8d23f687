"""The metrics of sequential I/O that jobs of fio alone have."""

from __future__ import annotations

from bedplate.model.figure import Better, Metric, Scale

METRICS = {
    "Sequential I/O": (
        Metric(
            "steady_state_attained",
            "share",
            Scale.PROPORTION,
            Better.HIGHER,
            "1 where fio's criterion of a steady state was met, else 0; only where the job asks for one",
            "fio's JSON",
        ),
    )
}
