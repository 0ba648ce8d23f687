"""Power cuts as tables for other tools: the verdict of each recording, and every cut (docs/EXPORT.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from polars import Boolean, Float64, Int64, String

from bedplate.analysis.power_cut_view import CutRun, upper_share
from bedplate.export.columns import KEY_COLUMNS, ExportColumn, ExportTable, WorkloadExport, run_key
from bedplate.figures.power_cut import finding_of
from bedplate.model.device_cache import CACHES, PROTECTED, VOLATILE_4K, VOLATILE_512
from bedplate.model.durability import CacheCuts, CutCounts, PowerCutVerdict, Story
from bedplate.model.power_cut import PointRecord, RecordingFacts
from bedplate.model.reason import sentences

if TYPE_CHECKING:
    from bedplate.analysis.overview import Measurement, Overview

_NAMES = {VOLATILE_4K: "volatile", VOLATILE_512: "volatile_512", PROTECTED: "protected"}


def _count_columns(cache: str, drawn: str, sought: str = "") -> dict[str, ExportColumn]:
    return {
        f"{cache}_cuts": ExportColumn(Int64, drawn),
        f"{cache}_bad": ExportColumn(Int64),
        f"{cache}_bad_share_high": ExportColumn(Float64),
        f"{cache}_sought_cuts": ExportColumn(Int64, sought),
        f"{cache}_sought_bad": ExportColumn(Int64),
    }


_VERDICT_COLUMNS: Mapping[str, ExportColumn] = {
    **KEY_COLUMNS,
    "declared_volatile": ExportColumn(String, "the class that flushes and settings declare"),
    "declared_protected": ExportColumn(String),
    "measured_volatile": ExportColumn(
        String,
        "the class that the cuts show: with a volatile cache and sectors of 4 KiB, with one and sectors of 512 bytes, and "
        "with a protected one. Empty where the verdict is refused or the plan has no such cut",
    ),
    "measured_volatile_512": ExportColumn(String),
    "measured_protected": ExportColumn(String),
    "pages": ExportColumn(
        String,
        "of an engine that keeps no copies of its pages: the class with sectors of 4 KiB and why (`durable · untorn by file system`, "
        "`unsafe · pages tear`); empty of others, and where nothing tells",
    ),
    "refused": ExportColumn(String, "why there is no verdict; joined by `; `"),
    "of_the_cell": ExportColumn(
        Boolean,
        "false where a journal in RAM was kept, or the device was said to write a unit whole, so that the verdict is no class of "
        "the cell as it is",
    ),
    **_count_columns(
        "volatile",
        "cuts of a volatile cache with sectors of 4 KiB at positions that chance chose, the bad ones, and the upper end of "
        "the exact 95 % interval of their share",
        "those where metadata waited that a cut can tear, with late completions also behind flushes that met writes on their "
        "way, and the bad ones; no share of anything",
    ),
    **_count_columns("volatile_512", "the same with sectors of 512 bytes"),
    **_count_columns("protected", "the same in order, of which none is sought"),
    "recoveries": ExportColumn(
        Int64, "recoveries from a cut that were recorded and cut again; empty where none was asked for"
    ),
    "recovery_cuts": ExportColumn(
        Int64,
        "cuts of these, the bad ones, and the upper end of the exact 95 % interval of their share; empty where they do not count",
    ),
    "recovery_bad": ExportColumn(Int64),
    "recovery_bad_share_high": ExportColumn(Float64),
    "recovery_refused": ExportColumn(
        String, "why they do not count, or were not made though they were asked for; joined by `; `"
    ),
    "control_cuts": ExportColumn(Int64, "the controls, of which most must be bad"),
    "control_bad": ExportColumn(Int64),
    "enumerated_cuts": ExportColumn(
        Int64,
        "states of windows between two flushes that were tried one by one, and the bad ones; no share of anything",
    ),
    "enumerated_bad": ExportColumn(Int64),
    "lost_transactions_max": ExportColumn(
        Int64, "the most acknowledged transactions that one cut took and left the rest whole"
    ),
    "image_bytes": ExportColumn(Int64, "size of the recorded disk"),
    "foreign_syncs": ExportColumn(
        Int64, "calls of sync(2) by any program while it was recorded; empty where they were not counted"
    ),
    "lost_ms_max": ExportColumn(
        Float64,
        "the longest time before such a cut at which the first missing transaction was acknowledged",
    ),
    "window_bytes": ExportColumn(Int64, "the most that the device's cache held"),
    "device_sector_bytes": ExportColumn(Int64, "as in `runs`"),
}

_CUT_COLUMNS: Mapping[str, ExportColumn] = {
    **KEY_COLUMNS,
    "number": ExportColumn(Int64, "the cut (docs/STUDY_FORMAT.md, CutPoint)"),
    "position": ExportColumn(Int64),
    "profile": ExportColumn(String),
    "placement": ExportColumn(String),
    "control": ExportColumn(Boolean),
    "recovery_of": ExportColumn(
        Int64,
        "the cut whose recovery was recorded and is cut here, at `position` of that recording; empty in a cut of the run itself",
    ),
    "finding": ExportColumn(
        String,
        "`ok`, `needs fsck`, `bounded loss`, `loss`, `corrupt, detected`, `corrupt, silent`, `file system lost`",
    ),
    "volatile_writes": ExportColumn(Int64, "what was at risk, and how many writes of it were kept"),
    "volatile_discards": ExportColumn(Int64),
    "volatile_bytes": ExportColumn(Int64),
    "kept_writes": ExportColumn(Int64),
    "acknowledged": ExportColumn(
        Int64,
        "transactions acknowledged before the cut, those missing, how long before it the first of these was",
    ),
    "lost_transactions": ExportColumn(Int64),
    "lost_ms": ExportColumn(Float64),
    "consistent": ExportColumn(Boolean, "whether what is there is whole; empty where nothing could be asked"),
    "mount_s": ExportColumn(Float64, "seconds; empty where that did not happen"),
    "fsck_s": ExportColumn(Float64),
    "engine_start_s": ExportColumn(Float64),
    "oracle_s": ExportColumn(Float64),
    "failed_once": ExportColumn(
        String,
        "why a mount failed, or an engine did not answer in time, that did once the image was built again; empty elsewhere",
    ),
    "problems": ExportColumn(String, "findings in words; joined by `; `"),
    "fault": ExportColumn(
        String,
        "whose fault a bad cut is, of which `power-cut blame` asked: `device`, `file system`, `engine`, `nobody known`; its code "
        "(docs/method/blame.md); the five lines of its story, joined by line feeds. Empty in all others",
    ),
    "fault_code": ExportColumn(String),
    "story": ExportColumn(String),
}


def _verdict_rows(found: Overview) -> Iterator[dict[str, Any]]:
    """One per recording whose power was cut: the classes declared and measured, the counts behind them."""
    for m, run in _cut_runs(found):
        yield {**run_key(found, m), **_verdict(run, found.cells[m.cell].sector_bytes)}


def _cut_rows(found: Overview) -> Iterator[dict[str, Any]]:
    """One per cut, in the order of their numbers, the controls of a run and the cuts of its recoveries last."""
    for m, run in _cut_runs(found):
        points = sorted(run.cuts.points, key=lambda each: (each.point.control, each.point.number))
        for record in (*points, *sorted(run.cuts.recuts, key=lambda each: each.point.number)):
            if run.recording is not None:
                yield {**run_key(found, m), **_cut(record, run.recording), **_story(record, run.stories)}


def _cut_runs(found: Overview) -> Iterator[tuple[Measurement, CutRun]]:
    for m in found.measurements:
        cell = found.cells.get(m.cell)
        for run in cell.cuts if cell and not m.canary else ():
            if (run.key.dataset, run.spec.name, run.key.repetition) == (m.dataset, m.run, m.repetition):
                yield m, run


def _verdict(run: CutRun, sector_bytes: int | None) -> dict[str, Any]:
    verdict = run.verdict
    return {
        "declared_volatile": run.declared.volatile_cache if run.declared else None,
        "declared_protected": run.declared.protected_cache if run.declared else None,
        **{f"measured_{name}": verdict.cuts(cache).shown for cache, name in _NAMES.items()},
        "pages": ground.verdict if (ground := run.ground(VOLATILE_4K)) else None,
        "refused": "; ".join(sentences(verdict.refused)),
        "of_the_cell": verdict.of_the_cell,
        **{
            f"{name}_{column}": value
            for cache, name in _NAMES.items()
            for column, value in _counts(verdict.cuts(cache)).items()
        },
        **_recovery(run),
        "control_cuts": verdict.controls.cuts,
        "control_bad": verdict.controls.bad,
        **_enumerated(verdict),
        "lost_transactions_max": verdict.loss.transactions_max,
        "image_bytes": verdict.image_bytes,
        "foreign_syncs": verdict.foreign_syncs,
        "lost_ms_max": verdict.loss.ms_max,
        "window_bytes": verdict.window_bytes,
        "device_sector_bytes": sector_bytes,
    }


def _enumerated(verdict: PowerCutVerdict) -> dict[str, int]:
    tried = CutCounts.together(verdict.cuts(cache).enumerated for cache in CACHES)
    return {"enumerated_cuts": tried.cuts, "enumerated_bad": tried.bad}


def _recovery(run: CutRun) -> dict[str, int | float | str | None]:
    recoveries, tally = run.verdict.recoveries, run.verdict.recut
    counts = recoveries is not None and not recoveries.uncounted
    return {
        "recoveries": None if recoveries is None else recoveries.recorded,
        "recovery_cuts": tally.cuts if counts else None,
        "recovery_bad": tally.bad if counts else None,
        "recovery_bad_share_high": upper_share(tally) if counts else None,
        "recovery_refused": "" if recoveries is None else "; ".join(sentences(recoveries.uncounted)),
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
        "recovery_of": point.recovery_of,
        "finding": finding_of(record, recording),
        "volatile_writes": record.volatile_writes,
        "volatile_discards": record.volatile_discards,
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
        "failed_once": record.failed_once,
        "problems": "; ".join(record.problems),
    }


def _story(record: PointRecord, stories: Mapping[int, Story]) -> dict[str, str | None]:
    """A control has a number that another cut of its run may have."""
    story = stories.get(record.point.number)
    if story is None or story.evidence.control is not record.point.control:
        return {"fault": None, "fault_code": None, "story": None}
    return {"fault": story.party.value, "fault_code": story.reason.code, "story": "\n".join(story.lines)}


EXPORT = WorkloadExport(
    {
        "verdicts": ExportTable(_VERDICT_COLUMNS, _verdict_rows),
        "power_cuts": ExportTable(_CUT_COLUMNS, _cut_rows),
    },
    lambda found: any(cell.cuts for cell in found.cells.values()),
)
