"""Power cuts as tables for other tools: the verdict of each recording, and every cut (docs/EXPORT.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from polars import Float64, Int64

from bedplate.cuts.blame import Story
from bedplate.cuts.points import CutCounts, finding_of
from bedplate.cuts.records import CutPoint, PointRecord, RecordingFacts
from bedplate.cuts.runs import CutRun, upper_share
from bedplate.cuts.verdict import CacheCuts, Loss, PowerCutVerdict, Recoveries
from bedplate.export.columns import KEY_COLUMNS, Column, RunRow, Table, WorkloadExport, field_columns
from bedplate.model.device_cache import CACHES, PROTECTED, VOLATILE_4K, VOLATILE_512
from bedplate.model.reason import Reason, sentences
from bedplate.model.visit import Durability
from bedplate.study.power_cut_stories import stories_of, story_of_cut

if TYPE_CHECKING:
    from bedplate.analysis.overview import Overview

_Verdict = RunRow[CutRun]


class _Cut(NamedTuple):
    record: PointRecord
    recording: RecordingFacts
    story: Story | None


def _cut_runs(overview: Overview) -> Iterator[_Verdict]:
    for m in overview.measurements:
        cell = overview.cells.get(m.cell)
        for run in cell.cuts if cell and not m.canary else ():
            if (run.key.dataset, run.spec.name, run.key.repetition) == (m.dataset, m.run, m.repetition):
                yield RunRow(overview, m, run)


def _cuts(overview: Overview) -> Iterator[RunRow[_Cut]]:
    """In the order of their numbers, the controls of a run and the cuts of its recoveries last."""
    for row in _cut_runs(overview):
        run = row.record
        points = sorted(run.cuts.points, key=lambda cut: (cut.point.control, cut.point.number))
        stories = stories_of(run.directory)
        for record in (*points, *sorted(run.cuts.recuts, key=lambda cut: cut.point.number)):
            if run.recording is not None:
                yield RunRow(overview, row.m, _Cut(record, run.recording, story_of_cut(record, stories)))


def _counts(
    name: str, tally: Callable[[CutRun], CutCounts | None], meaning: str, *, has_share: bool = False
) -> Iterator[Column[_Verdict]]:
    yield from field_columns(
        CutCounts, lambda row: tally(row.record), f"{name}_cuts=cuts {name}_bad=bad", meaning
    )
    if has_share:
        yield Column(
            f"{name}_bad_share_high",
            lambda row: None if (cuts := tally(row.record)) is None else upper_share(cuts),
            kind=Float64,
        )


def _counts_of_cache(name: str, cache: str, words: str, sought: str = "") -> Iterator[Column[_Verdict]]:
    yield from _counts(name, lambda run: run.verdict.cuts(cache).drawn, words, has_share=True)
    yield from _counts(f"{name}_sought", lambda run: run.verdict.cuts(cache).sought, sought)


def _uncounted(run: CutRun) -> tuple[Reason, ...]:
    recoveries = run.verdict.recoveries
    return () if recoveries is None else recoveries.uncounted


def _counted_recuts(run: CutRun) -> CutCounts | None:
    return None if run.verdict.recoveries is None or _uncounted(run) else run.verdict.recut


def _counted_exhaustive(run: CutRun) -> CutCounts | None:
    return None if run.verdict.recoveries is None or _uncounted(run) else run.verdict.exhaustive


_VERDICTS: Table[_Verdict] = Table(
    (
        *KEY_COLUMNS,
        *field_columns(
            Durability,
            lambda row: row.record.declared,
            "declared_volatile=volatile_cache declared_protected=protected_cache",
            "the class that flushes and settings declare",
        ),
        *field_columns(
            CacheCuts,
            lambda row: row.record.verdict.cuts(VOLATILE_4K),
            "measured_volatile=shown",
            "the class that the cuts show: with a volatile cache and sectors of 4 KiB, with one and sectors of 512 bytes, and "
            "with a protected one. Empty where the verdict is refused or the plan has no such cut",
        ),
        *field_columns(
            CacheCuts, lambda row: row.record.verdict.cuts(VOLATILE_512), "measured_volatile_512=shown", ""
        ),
        *field_columns(
            CacheCuts, lambda row: row.record.verdict.cuts(PROTECTED), "measured_protected=shown", ""
        ),
        Column(
            "pages",
            lambda row: (ground := row.record.ground(VOLATILE_4K)) and ground.verdict,
            "of an engine that keeps no copies of its pages: the class with sectors of 4 KiB and why (`durable · untorn by file system`, "
            "`unsafe · pages tear`); empty of others, and where nothing tells",
        ),
        *field_columns(
            PowerCutVerdict,
            lambda row: row.record.verdict,
            "refused never_synced without_cut of_the_cell",
        ),
        *_counts_of_cache(
            "volatile",
            VOLATILE_4K,
            "cuts of a volatile cache with sectors of 4 KiB at positions that chance chose, the bad ones, and the upper end of "
            "the exact 95 % interval of their share",
            "those that were placed where metadata waited that a cut can tear, or the order of what the engine does shows, with late completions also "
            "behind flushes that met writes on their way, and the bad ones; no share of anything",
        ),
        *_counts_of_cache("volatile_512", VOLATILE_512, "the same with sectors of 512 bytes"),
        *_counts_of_cache("protected", PROTECTED, "the same in order"),
        *field_columns(
            Recoveries,
            lambda row: row.record.verdict.recoveries,
            "recoveries=recorded",
        ),
        *_counts(
            "recovery",
            _counted_recuts,
            "cuts of these, the bad ones, and the upper end of the exact 95 % interval of their share; empty where they do not count",
            has_share=True,
        ),
        *_counts(
            "exhaustive",
            _counted_exhaustive,
            "cuts behind each write of short recoveries, third cuts among them, and the bad ones; no share of anything. Empty where they do not count",
        ),
        *field_columns(Recoveries, lambda row: row.record.verdict.recoveries, "exhausted third"),
        Column(
            "recovery_refused",
            lambda row: "; ".join(sentences(_uncounted(row.record))),
            "why they do not count, or were not made though they were asked for; joined by `; `",
        ),
        *_counts("control", lambda run: run.verdict.controls, "the controls, of which most must be bad"),
        *_counts(
            "enumerated",
            lambda run: CutCounts.together(run.verdict.cuts(cache).enumerated for cache in CACHES),
            "states of windows between two flushes that were tried one by one, and the bad ones; no share of anything",
        ),
        *field_columns(Loss, lambda row: row.record.verdict.loss, "lost_transactions_max=transactions_max"),
        *field_columns(PowerCutVerdict, lambda row: row.record.verdict, "image_bytes foreign_syncs"),
        *field_columns(Loss, lambda row: row.record.verdict.loss, "lost_ms_max=ms_max"),
        *field_columns(PowerCutVerdict, lambda row: row.record.verdict, "window_bytes"),
        Column(
            "device_sector_bytes", lambda row: row.facts and row.facts.sector_bytes, "as in `runs`", Int64
        ),
    ),
    _cut_runs,
)

_CUTS: Table[RunRow[_Cut]] = Table(
    (
        *KEY_COLUMNS,
        *field_columns(
            CutPoint,
            lambda row: row.record.record.point,
            "number position profile placement control recovery_of second",
        ),
        Column(
            "finding",
            lambda row: finding_of(row.record.record, row.record.recording),
            "`ok`, `needs fsck`, `bounded loss`, `loss`, `corrupt, detected`, `corrupt, silent`, `file system lost`",
        ),
        Column(
            "weaker",
            lambda row: row.record.record.weaker and row.record.record.weaker.profile.value,
            "of a bad cut the first of `ordered`, `lost`, `subset-4k` that asks less of a file system and with which the same position is bad too; "
            "empty of others",
        ),
        *field_columns(
            PointRecord,
            lambda row: row.record.record,
            "volatile_writes volatile_discards volatile_bytes kept_writes acknowledged lost_transactions lost_ms consistent "
            "mount_s fsck_s engine_start_s oracle_s failed_once problems",
        ),
        *field_columns(
            Story,
            lambda row: row.record.story,
            "fault=party",
            "whose fault a bad cut is, of which `power-cut blame` asked: `device`, `file system`, `engine`, `nobody known`; its code "
            "(docs/METHOD.md); the five lines of its story, joined by line feeds. Empty in all others",
        ),
        Column("fault_code", lambda row: row.record.story and row.record.story.reason.code),
        Column("story", lambda row: row.record.story and "\n".join(row.record.story.lines)),
    ),
    _cuts,
)

EXPORT = WorkloadExport(
    {"verdicts": _VERDICTS, "power_cuts": _CUTS},
    lambda overview: any(cell.cuts for cell in overview.cells.values()),
)
