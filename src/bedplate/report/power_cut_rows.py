"""Power cuts as tables for other tools: the verdict of each recording, and every cut (docs/EXPORT.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from bedplate.figures.power_cut_points import finding_of
from bedplate.model.device_cache import PROTECTED, VOLATILE_4K, VOLATILE_512
from bedplate.report.power_cut_view import upper_share

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bedplate.model.power_cut import PointRecord, RecordingFacts
    from bedplate.model.power_cut_verdict import CacheCuts
    from bedplate.report.overview import Measurement, Overview
    from bedplate.report.power_cut_view import CutRun

_NAMES = {VOLATILE_4K: "volatile", VOLATILE_512: "volatile_512", PROTECTED: "protected"}
VERDICT_COLUMNS: Mapping[str, Any] = {
    "declared_volatile": pl.String,
    "declared_protected": pl.String,
    "measured_volatile": pl.String,
    "measured_volatile_512": pl.String,
    "measured_protected": pl.String,
    "refused": pl.String,
    "of_the_cell": pl.Boolean,
    **{
        f"{name}_{column}": kind
        for name in _NAMES.values()
        for column, kind in {
            "cuts": pl.Int64,
            "bad": pl.Int64,
            "bad_share_high": pl.Float64,
            "sought_cuts": pl.Int64,
            "sought_bad": pl.Int64,
        }.items()
    },
    "control_cuts": pl.Int64,
    "control_bad": pl.Int64,
    "lost_transactions_max": pl.Int64,
    "image_bytes": pl.Int64,
    "foreign_syncs": pl.Int64,
    "lost_ms_max": pl.Float64,
    "window_bytes": pl.Int64,
    "device_sector_bytes": pl.Int64,
}
CUT_COLUMNS: Mapping[str, Any] = {
    "number": pl.Int64,
    "position": pl.Int64,
    "profile": pl.String,
    "placement": pl.String,
    "control": pl.Boolean,
    "finding": pl.String,
    "volatile_writes": pl.Int64,
    "volatile_bytes": pl.Int64,
    "kept_writes": pl.Int64,
    "acknowledged": pl.Int64,
    "lost_transactions": pl.Int64,
    "lost_ms": pl.Float64,
    "consistent": pl.Boolean,
    "mount_s": pl.Float64,
    "fsck_s": pl.Float64,
    "engine_start_s": pl.Float64,
    "oracle_s": pl.Float64,
    "problems": pl.String,
}


def has_power_cuts(found: Overview) -> bool:
    """Whether power was cut in any cell."""
    return any(cell.cuts for cell in found.cells.values())


def verdict_rows(found: Overview, m: Measurement) -> list[dict[str, Any]]:
    """The verdict on a run, without the columns that name it; nothing for a run of another kind."""
    return [_verdict(run, found.cells[m.cell].sector_bytes) for run in _cut_runs(found, m)]


def cut_rows(found: Overview, m: Measurement) -> list[dict[str, Any]]:
    """Every cut of a run, in the order of their numbers, the controls last."""
    return [
        _cut(record, run.cuts.recording)
        for run in _cut_runs(found, m)
        if run.cuts.recording is not None
        for record in sorted(run.cuts.points, key=lambda each: (each.point.control, each.point.number))
    ]


def _cut_runs(found: Overview, m: Measurement) -> Iterator[CutRun]:
    cell = found.cells.get(m.cell)
    for run in cell.cuts if cell else ():
        key = run.key
        if (key.dataset, run.spec.name, key.repetition) == (m.dataset, m.run, m.repetition) and not m.canary:
            yield run


def _verdict(run: CutRun, sector_bytes: int | None) -> dict[str, Any]:
    verdict = run.verdict
    return {
        "declared_volatile": run.declared.volatile_cache if run.declared else None,
        "declared_protected": run.declared.protected_cache if run.declared else None,
        **{f"measured_{name}": verdict.cuts(cache).shown for cache, name in _NAMES.items()},
        "refused": "; ".join(verdict.refused),
        "of_the_cell": verdict.of_the_cell,
        **{
            f"{name}_{column}": value
            for cache, name in _NAMES.items()
            for column, value in _counts(verdict.cuts(cache)).items()
        },
        "control_cuts": verdict.controls.cuts,
        "control_bad": verdict.controls.bad,
        "lost_transactions_max": verdict.loss.transactions_max,
        "image_bytes": verdict.image_bytes,
        "foreign_syncs": verdict.foreign_syncs,
        "lost_ms_max": verdict.loss.ms_max,
        "window_bytes": verdict.window_bytes,
        "device_sector_bytes": sector_bytes,
    }


def _counts(found: CacheCuts) -> dict[str, int | float | None]:
    return {
        "cuts": found.drawn.cuts,
        "bad": found.drawn.bad,
        "bad_share_high": upper_share(found.drawn),
        "sought_cuts": found.sought.cuts,
        "sought_bad": found.sought.bad,
    }


def _cut(record: PointRecord, recording: RecordingFacts) -> dict[str, Any]:
    point = record.point
    return {
        "number": point.number,
        "position": point.position,
        "profile": point.profile.value,
        "placement": point.placement.value,
        "control": point.control,
        "finding": finding_of(record, recording),
        "volatile_writes": record.volatile_writes,
        "volatile_bytes": record.volatile_bytes,
        "kept_writes": record.kept_writes,
        "acknowledged": record.acknowledged,
        "lost_transactions": record.lost_transactions,
        "lost_ms": record.lost_ms,
        "consistent": record.consistent,
        "mount_s": record.mount_s,
        "fsck_s": record.fsck_s,
        "engine_start_s": record.engine_start_s,
        "oracle_s": record.oracle_s,
        "problems": "; ".join(record.problems),
    }
