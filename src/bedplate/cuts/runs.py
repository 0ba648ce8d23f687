"""The power cuts of a study: verdicts by cell, and the class that stands beside a cell's speeds because of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.cuts.points import CutCounts, Cuts, read_cuts, recovery_s
from bedplate.cuts.records import (
    AT_ONCE,
    COMPLETIONS,
    DEVICE_UNIT,
    EXHAUSTIVE,
    HAS_FUA,
    JOURNAL_LOST,
    PLACED,
    PLACED_POINTS,
    PRESSED,
    RAM_JOURNAL,
    RECUT,
    SECTOR_BYTES,
    SOUGHT_POINTS,
    STATES,
    USUAL_SECTOR_BYTES,
    WORKLOAD,
    PointOutcome,
    RecordingFacts,
)
from bedplate.cuts.verdict import (
    CacheCuts,
    PageGround,
    PowerCutVerdict,
    measured_durability,
    page_ground,
    verdict_of,
    without_promise,
)
from bedplate.model.cell import Dataset, RunSpec
from bedplate.model.device_cache import CACHE_WORDS, CACHES, PROTECTED, VOLATILE_4K, VOLATILE_512
from bedplate.model.durability import UNKNOWN, promised, worst_of
from bedplate.model.levels import Scalar
from bedplate.model.reason import distinct, pages_unmended, sentences
from bedplate.model.visit import Durability, VisitKey
from bedplate.statistics.comparison import proportion
from bedplate.units import format_count, format_size

if TYPE_CHECKING:
    from bedplate.study.stored import StoredVisit

# Levels by which recordings of a cell are told apart: what holds without a word, and what each is called.
_TELLING: Sequence[tuple[str, Scalar, str]] = (
    (RAM_JOURNAL, JOURNAL_LOST, "journal"),
    (COMPLETIONS, AT_ONCE, "completions"),
    (SECTOR_BYTES, USUAL_SECTOR_BYTES, "sectors"),
    (HAS_FUA, False, "FUA"),
    (PRESSED, False, "dirty pages pressed"),
    ("clients", 0, "clients"),
    ("duration_s", 0.0, "duration"),
    ("image_bytes", 0, "disk"),
    (DEVICE_UNIT, 0, "device unit"),
    (STATES, 0, "states"),
    (RECUT, 0, "recut"),
    (EXHAUSTIVE, 0, "exhaustive"),
)

_TELLING_LAST: Sequence[tuple[str, Scalar, str]] = (
    ("points", 0, "points"),
    ("sought", SOUGHT_POINTS, "sought"),
    (PLACED, PLACED_POINTS, "placed"),
    ("profiles", "", "profiles"),
    ("cache_bytes", 0, "cache"),
    ("seed", 0, "seed"),
)

_IN_BYTES = ("disk", "sectors", "device unit", "cache")


@dataclass(frozen=True)
class CutRun:
    """One run of power cuts with its verdict; `declared` is what the visit's flushes and settings promise.

    `lost_transactions` says how many each cut lost that lost some and left the rest whole, `recovery_s` how long each took
    until the engine answered, of those after which it did; both without the controls. `declared_first` is what a visit promised
    that failed afterwards.
    """

    key: VisitKey
    dataset: Dataset
    spec: RunSpec
    directory: Path
    recording: RecordingFacts | None
    verdict: PowerCutVerdict
    declared: Durability | None
    lost_transactions: tuple[int, ...]
    recovery_s: tuple[float, ...]
    declared_first: Durability | None = None

    @cached_property
    def cuts(self) -> Cuts:
        """Every point, read when it is asked for."""
        return read_cuts(self.directory)

    @property
    def shown_class(self) -> Durability | None:
        """The class that the cuts show; None where they show none of this cell."""
        return measured_durability(self.verdict, self.declared)

    @property
    def unmended(self) -> str | None:
        """Which copies of its pages the engine does without, by the code of the reason; None where it keeps all."""
        return pages_unmended(self.declared.reasons if self.declared else ())

    @property
    def left_out(self) -> str | None:
        """The same as the visit declared it before it failed, as one does whose pages found no room."""
        declared = self.declared or self.declared_first
        return pages_unmended(declared.reasons if declared else ())

    def class_with(self, cache: str) -> str:
        """The class with a kind of cache: as it stands for the cell, else as its cuts alone show it, `–` where none did.

        Unknown where what would keep pages whole does not hold for all of them.
        """
        ground = self.ground(cache)
        return ground.stands if ground else self._words_of_class(cache)

    def ground(self, cache: str) -> PageGround | None:
        """Why pages are whole or torn, of an engine that keeps no copies of them; None of others, and where nothing tells."""
        if cache == PROTECTED or self.unmended is None or self.verdict.refused:
            return None
        unit = self.spec.levels.integer(DEVICE_UNIT)
        tearing = self.verdict.cuts(cache).tearing
        return page_ground(
            self._words_of_class(cache),
            self.verdict.by_device,
            self.verdict.pages,
            unit,
            tearing=tearing,
            copies=self.unmended,
            recovered=self.verdict.recovered_pages,
        )

    def words_with(self, cache: str) -> str:
        """`durable · untorn by file system`: the class, and its ground where there is one to name."""
        ground = self.ground(cache)
        return ground.verdict if ground else self._words_of_class(cache)

    def _words_of_class(self, cache: str) -> str:
        found = self.shown_class
        return found.class_with(cache) if found else self.verdict.cuts(cache).shown or "–"


def cut_runs(visits: Iterable[StoredVisit]) -> dict[str, tuple[CutRun, ...]]:
    """The runs of power cuts by cell, of the latest attempt at each visit; a run whose files are gone has none."""
    latest: dict[tuple[str, str, int], StoredVisit] = {}
    for visit in sorted(visits, key=lambda visit: visit.record.key.attempt):
        key = visit.record.key
        if visit.record.dataset.workload == WORKLOAD and not key.canary:
            latest[key.cell, key.dataset, key.repetition] = visit
    found: dict[str, list[CutRun]] = {}
    for visit in latest.values():
        for figures, directory in zip(visit.runs, visit.run_directories, strict=True):
            if figures.workload == WORKLOAD and (run := _run(visit, directory)) is not None:
                found.setdefault(visit.record.key.cell, []).append(run)
    return {cell: tuple(runs) for cell, runs in found.items()}


def durability_by_cuts(declared: Durability | None, runs: Sequence[CutRun]) -> Durability | None:
    """The measured class of a cell, the worst of its recordings; what was declared where no verdict was made.

    A verdict that was refused is told among the reasons. Commits that do not wait keep what was declared of them.
    """
    verdicts = [found for run in runs if (found := run.shown_class) is not None]
    refused = distinct(
        reason.about("power cuts: verdict refused") for run in runs for reason in run.verdict.refused
    )
    is_doubtful = any(run.verdict.refused and run.verdict.doubts_promise for run in runs)
    if is_doubtful and declared is not None:
        declared = without_promise(declared)
    if not verdicts:
        if declared is None or not refused:
            return declared
        return replace(declared, reasons=(*declared.reasons, *refused))
    if is_doubtful:
        verdicts.append(Durability(UNKNOWN, UNKNOWN, "declared"))
    reasons = [reason for found in verdicts for reason in found.reasons]
    together = verdicts[0]
    for found in verdicts[1:]:
        together = worst_of(together, found)
    if declared is not None and declared.by_runs:
        # The cuts asked about the transactions of their own recordings, not about those of these runs.
        together = replace(worst_of(together, declared), by_runs=declared.by_runs)
        reasons += declared.by_runs
    return replace(
        together,
        reasons=(*distinct(reasons), *refused),
        without_waiting=declared.without_waiting if declared else None,
    )


def disagreement(declared: Durability | None, cut_class: Durability | None) -> str | None:
    """Where the cuts show another class than flushes and settings declare; None where they agree or there are none."""
    if declared is None or cut_class is None or cut_class.basis != "measured":
        return None
    names = {VOLATILE_4K: "volatile cache", PROTECTED: "protected cache"}
    if declared.tells_sectors or cut_class.tells_sectors:
        names = {cache: CACHE_WORDS[cache] for cache in (VOLATILE_4K, VOLATILE_512, PROTECTED)}
    words = [
        f"with a {name} declared {said}, measured {shown}"
        for cache, name in names.items()
        if (said := declared.class_with(cache)) != (shown := cut_class.class_with(cache))
    ]
    return "; ".join(words) or None


def upper_share(tally: CutCounts) -> float | None:
    """The upper end of the exact 95 % interval of the share of bad cuts; None without a cut."""
    return proportion(tally.bad, tally.cuts).high if tally.cuts else None


def bound_words(tally: CutCounts) -> str:
    """`0 of 150, < 2.5 %`: bad cuts, and how many in a hundred such cuts may be, at the most."""
    high = upper_share(tally)
    if high is None:
        return "–"
    if tally.bad == tally.cuts:
        return f"{tally.bad:,} of {tally.cuts:,}"
    return f"{tally.bad:,} of {tally.cuts:,}, < {percent_from_above(high)} %"


def cut_cell_words(cuts: CacheCuts) -> str:
    """`0 of 150, < 2.5 %; 2 of 16 in recovery`: the drawn cuts with their bound, and what was bad of those that have no share."""
    bad = [f"{tally.bad:,} of {tally.cuts:,} {words}" for tally, words in without_share(cuts) if tally.bad]
    if cuts.weaker.cuts:
        bad.append(weaker_words(cuts.weaker.cuts))
    return "; ".join((bound_words(cuts.drawn), *bad))


def without_share(cuts: CacheCuts) -> tuple[tuple[CutCounts, str], ...]:
    """The cuts that chance did not place, each kind with its words: they are counted apart everywhere, as a share of them is none."""
    return (
        (cuts.sought, "sought"),
        (cuts.enumerated, "states"),
        (cuts.recut, "in recovery"),
        (cuts.exhaustive, "at every write of recoveries"),
    )


def weaker_words(count: int) -> str:
    """Of bad cuts that were drawn for a device that asks more, and are bad with this one too."""
    return f"{format_count(count, 'cut')} made for a disk that loses more, bad on this one too"


def recovery_words(run: CutRun) -> list[str]:
    """Cuts in recovery: how many of how many recoveries, how many were bad and may be; why none counts. Empty where none was asked for."""
    found = run.verdict.recoveries
    if found is None:
        return []
    if found.uncounted:
        return list(sentences(found.uncounted))
    drawn, every = run.verdict.recut, run.verdict.exhaustive
    words = [f"cuts in recovery: {bound_words(drawn)}, of {found.recorded} recoveries"] if drawn.cuts else []
    if found.every_words:
        words.append(
            f"cut at every write: {found.every_words}: {every.bad:,} of {format_count(every.cuts, 'cut')} bad"
        )
    return words


def percent_from_above(share: float) -> str:
    """Two digits of a percentage that is above 0; rounded up, as a bound that is rounded down is none."""
    percent = 100 * share
    step = 10.0 ** (math.floor(math.log10(percent)) - 1)
    upwards = math.ceil(round(percent / step, 6)) * step
    return f"{upwards:.0f}" if upwards >= 10 else f"{upwards:.2g}"


def pooled(runs: Sequence[CutRun], cache: str) -> CacheCuts:
    """The cuts of several recordings of a cell with one kind of cache together."""
    every = [run.verdict.cuts(cache) for run in runs]
    return CacheCuts(
        drawn=CutCounts.together(found.drawn for found in every),
        sought=CutCounts.together(found.sought for found in every),
        enumerated=CutCounts.together(found.enumerated for found in every),
        recut=CutCounts.together(found.recut for found in every),
        exhaustive=CutCounts.together(found.exhaustive for found in every),
        weaker=CutCounts.together(found.weaker for found in every),
        idle=sum(found.idle for found in every),
        tearing=sum(found.tearing for found in every),
        is_late=any(found.is_late for found in every),
        has_order=any(found.has_order for found in every),
    )


def speaking(runs: Sequence[CutRun], cache: str) -> tuple[str, CacheCuts]:
    """The cuts by which a cell is called bad or sound with a kind of cache, and theirs: that cache's own, unless those of one that asks less alone were bad.

    A device can behave as each that asks less of a file system (`model.device_cache.CACHES`).
    """
    asking = CACHES[: CACHES.index(cache) + 1][::-1]
    every = [(each, pooled(runs, each)) for each in asking]
    return next((found for found in every if found[1].all_cuts.bad), every[0])


def told_apart(run: CutRun, runs: Sequence[CutRun]) -> tuple[str, ...]:
    """What tells a recording from the others of its cell: its repetition, and what was asked of it.

    What a plan may have to vary for another's sake, as the number of points, is named only where nothing else tells two apart.
    Nothing where there is one recording.
    """
    words = [*_apart_by(_TELLING, run, runs)]
    if len({other.key.repetition for other in runs}) > 1:
        words.insert(0, f"repetition {run.key.repetition}")
    alike = [other for other in runs if _is_alike(run, other)]
    return (*words, *_apart_by(_TELLING_LAST, run, alike))


def _apart_by(
    levels: Iterable[tuple[str, Scalar, str]], run: CutRun, runs: Iterable[CutRun]
) -> Iterable[str]:
    every = list(runs)
    for name, usual, words in levels:
        if len({_level_of(other, name, usual) for other in every}) > 1:
            yield _level_words(_level_of(run, name, usual), words)


def _is_alike(run: CutRun, other_run: CutRun) -> bool:
    """Whether two recordings have one name so far."""
    levels = [(_level_of(run, name, usual), _level_of(other_run, name, usual)) for name, usual, _ in _TELLING]
    return run.key.repetition == other_run.key.repetition and all(mine == its for mine, its in levels)


def _level_of(run: CutRun, name: str, usual: Scalar) -> Scalar:
    """A level of its dataset or its run."""
    return run.dataset.levels.get(name, run.spec.levels.get(name, usual))


def _level_words(level: Scalar, words: str) -> str:
    if isinstance(level, bool):
        return words if level else f"no {words}"
    if isinstance(level, float):
        level = f"{level:g}"
    if words in _IN_BYTES and isinstance(level, int):
        return f"{words} {format_size(level) if level else 'none'}"
    return f"{words} {level} s" if words == "duration" else f"{words} {level}"


def _run(visit: StoredVisit, directory: Path) -> CutRun | None:
    record = visit.cut_records.get(directory)
    if record is None:
        return None
    cuts = read_cuts(directory)
    verdict = verdict_of(visit.record, record, cuts)
    if verdict is None:
        return None
    points = [each for each in cuts.points if not each.point.control]
    return CutRun(
        key=visit.record.key,
        dataset=visit.record.dataset,
        spec=record.spec,
        directory=directory,
        recording=cuts.recording,
        verdict=verdict,
        declared=promised(visit.record),
        lost_transactions=tuple(
            each.lost_transactions for each in points if each.outcome is PointOutcome.LOST
        ),
        recovery_s=tuple(seconds for each in points if (seconds := recovery_s(each)) is not None),
        declared_first=visit.record.durability,
    )
