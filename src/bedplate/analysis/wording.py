"""Sentences and numbers that the page and the terminal write alike."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Context

from bedplate.analysis.labels import CellLabel
from bedplate.analysis.overview import CellFacts, Measurement, Overview, Trouble
from bedplate.cuts.records import COMPLETIONS, DEVICE_UNIT, HAS_FUA, IN_FLIGHT, LATE, LATE_US, PageCounts
from bedplate.cuts.runs import CutRun
from bedplate.installation import COMMAND
from bedplate.model.course import filled
from bedplate.model.device_cache import VOLATILE_4K, VOLATILE_512
from bedplate.model.durability import CLASSES, DURABLE, UNKNOWN, worst_of
from bedplate.model.figure import Metric, Scale
from bedplate.model.metrics import METRICS
from bedplate.model.reason import sentences
from bedplate.model.visit import Durability
from bedplate.statistics.comparison import Comparison, EstimateKind, Verdict
from bedplate.statistics.false_discovery import RATE
from bedplate.statistics.summary import (
    ARITHMETIC_MEAN,
    RATIO_CENTRES,
    REPETITIONS_FOR_INTERVAL,
    SUSPECT,
    UNKNOWN_BASIS,
    Summary,
)
from bedplate.study.records import IMPORTED
from bedplate.units import format_size, percent

_AMOUNT = re.compile(
    r"(?:(?<=\s)|^)[+-]?[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?(?=%|\)|\s|;|:|$|,(?![0-9])|\.(?:\s|$))"
)

# Behind these a number is a name.
_NAMING = re.compile(
    r"\b(?:query|stream|pass|visit|repetition|run|node|test|block|blocks|inode|sector|line|page|relation|pid|cpu|port|"
    r"error|errno|status|code|signal)[\s:#=]*$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Told:
    """A sentence on runs. From the character `amounts_from` on, its numbers are amounts; None where it has none."""

    sentence: str
    amounts_from: int | None = None


def shape(told: Told) -> tuple[str, ...]:
    """The text between the amounts, the same for all that make one sentence."""
    return tuple(_parts(told)[::2])


def one_sentence(told: Iterable[Told]) -> str:
    """What has one shape: each amount that they differ in is a range, from the smallest to the largest."""
    columns = zip(*map(_parts, dict.fromkeys(told)), strict=True)
    return "".join(_range(found) if place % 2 else found[0] for place, found in enumerate(columns))


def _parts(told: Told) -> list[str]:
    """Text and amount by turns, a text at both ends."""
    if told.amounts_from is None:
        return [told.sentence]
    head, rest = told.sentence[: told.amounts_from], told.sentence[told.amounts_from :]
    parts, end = [head], 0
    for found in _AMOUNT.finditer(rest):
        if not _is_name(found):
            parts[-1] += rest[end : found.start()]
            parts += [found[0], ""]
            end = found.end()
    parts[-1] += rest[end:]
    return parts


def _is_name(found: re.Match[str]) -> bool:
    return _NAMING.search(found.string, 0, found.start()) is not None


def _range(amounts: Iterable[str]) -> str:
    ordered = sorted(set(amounts), key=lambda text: float(text.replace(",", "")))
    least, most = ordered[0], ordered[-1]
    if least == most:
        return least
    return f"{least} to {most}" if any(text[0] in "+-" for text in ordered) else f"{least}–{most}"


VALID_MARK = "✓"

SUSPECT_MARK = "!"

UNKNOWN_MARK = "?"

FAILED_MARK = "✗"

MISSING_MARK = "·"

UNKNOWN_VALIDITY = "validity unknown"

OF_UNKNOWN_VALIDITY = "of unknown validity"

AFTER_POWER_CUT = "after a power cut"

VERDICT_REFUSED = "verdict refused"

# As the page colours what cannot be told.
_UNTOLD = "untold"

SIDES = "contender, beside its baseline"

SECTORS_512 = "512-byte sectors"

SECTORS_4K = "4 KiB sectors"

OTHER_SECTORS = "other sectors"

# What the page's script fills too, for the cells and pairs that its reader chooses.
SAME_IN_FORCE = "effectively the same as {cells}"

IDENTICAL = "effectively the same as its baseline under another name: one result, not two"

SAME_COUNTS = "the same"

SAME_WITHIN = "same within {margin}"

OF_RATIOS = "{margin} %"

OF_DIFFERENCES = "{margin} points"

LEFT_OUT = "left out: {runs}"

STOPPED = "stopped at a limit, which counts as the figure: {n} run{s}"

NONE_CAN_TELL = "No comparison here has an interval, so none can tell."

CAN_TELL = "{told} of {n} comparison{s} with an interval can tell{counts}."

WRONG_ON_AVERAGE = (
    f"Of the verdicts on one figure {percent(RATE)} are wrong on average; for that an interval that shows a difference has a "
    "confidence of {confidence}."
)

NO_RUN_IN_BOTH = "no run was due in both cells of any pair"

PROMISES_DIFFER = (
    "what survives a power cut differs: {first} beside {second}; the two are not ranked by speed alone"
)

PROMISES_DIFFER_ELSEWHERE = (
    "on a device with {sectors} what survives a power cut differs: {first} beside {second}"
)

ONE_RECORDING = "the cuts of one recording; how recordings of the same cell differ is not in the interval"

SEVERAL_RECORDINGS = "the cuts of {n} recordings each; how recordings differ is not in the interval"

WITHIN_RECORDINGS = "the cuts of {n} recordings each; the interval is the wider of that of the cuts and that of the recordings"

_TROUBLE_MARKS = {
    Trouble.FAILED: FAILED_MARK,
    Trouble.SUSPECT: SUSPECT_MARK,
    Trouble.UNKNOWN: UNKNOWN_MARK,
    Trouble.NOT_RUN: MISSING_MARK,
}

# Of a run in doubt, numbers are what was measured of the doubt.
_DOUBTS = (Trouble.SUSPECT, Trouble.UNKNOWN)

# Of a figure that rests on no trusted run.
BASIS_MARKS = {SUSPECT: SUSPECT_MARK, UNKNOWN_BASIS: UNKNOWN_MARK}

# Between two values in a table.
VALUES = " · "

# By the number of runs: the power of ten, beside that of the figure, below which nothing is believed of its scatter.
_PRESUMED = {1: 0, 2: -1}

# Enough for every difference that repetitions can tell, few enough to read.
_SHORT = Context(prec=4, rounding=ROUND_HALF_UP)

# Of what has more zeros than a reader counts.
_SHORTER = Context(prec=3, rounding=ROUND_HALF_UP)


def number_words(value: float | None, scatter: float | None = None) -> str:
    """Four significant digits, thousands apart: `24,310`, `12.41`; a whole one is a count, `2`; `–` where nothing was measured.

    With a `scatter` above zero, the half width of an interval, no digit that it leaves open: as many as give the scatter itself two, `1,320` of
    `1,316` within 188.
    """
    if value is None:
        return "–"
    if value == 0:
        return "0"
    short = _SHORT.create_decimal_from_float(value)
    if not -4 <= short.adjusted() < 9:
        return f"{_SHORTER.create_decimal_from_float(value):.{_SHORTER.prec - 1}e}"
    digits = _SHORT.prec
    if scatter:
        digits = min(digits, max(1, short.adjusted() - math.floor(math.log10(scatter)) + 2))
    decimals = 0 if value == math.floor(value) else max(0, digits - 1 - short.adjusted())
    return f"{Context(digits, ROUND_HALF_UP).create_decimal_from_float(value):,.{decimals}f}"


def ratio_figure(value: float) -> str:
    """A ratio in a table: `1.084`, three digits behind the point where it is near 1; `1,240` where it is far."""
    return f"{value:.3f}" if 0.01 <= value < 10 else number_words(value)


# From this factor between its ends on the interval of a ratio, or of a positive figure, says nothing.
NOTHING_TOLD = 10.0

# What the page's script says too.
NOT_KNOWN = "interval not known"


def tells_nothing(kind: EstimateKind, low: float, high: float) -> bool:
    """Whether an interval leaves open what is asked, so that its ends are not worth reading."""
    return high >= NOTHING_TOLD * low if kind is EstimateKind.RATIO else False


def says_nothing(comparison: Comparison) -> bool:
    """The same of a comparison; False where it has no interval, or an open one."""
    low, high = comparison.low, comparison.high
    return low is not None and high is not None and tells_nothing(comparison.kind, low, high)


def ends_words(
    kind: EstimateKind,
    low: float | None,
    high: float | None,
    write: Callable[[float], str],
    between: str = " to ",
) -> str:
    """`0.91 to 0.97` with each end as `write` has it, dots for one that is open; words in their place where it says nothing, empty where both are open."""
    if low is None and high is None:
        return ""
    if low is not None and high is not None and tells_nothing(kind, low, high):
        return NOT_KNOWN
    return between.join("…" if end is None else write(end) for end in (low, high))


def confidence_words(confidences: Iterable[float]) -> str:
    """From the least to the greatest of some confidences: `95 %`, `97.5 to 99.89 %`."""
    own = sorted(confidences)
    return f"{' to '.join(dict.fromkeys(f'{100 * each:.4g}' for each in (own[0], own[-1])))} %"


def margin_words(comparison: Comparison) -> str:
    """What `same` is within: a share may be zero and has no ratio, so its margin is in points of a hundred."""
    template = OF_RATIOS if comparison.kind is EstimateKind.RATIO else OF_DIFFERENCES
    return filled(template, margin=f"{100 * (comparison.margin or 0.0):g}")


def verdict_word(comparison: Comparison) -> str:
    """The verdict; `same within 5 %` where it is that."""
    if comparison.verdict is Verdict.SAME and comparison.margin is None:
        # Counts have no margin: these agree to the last one.
        return SAME_COUNTS
    if comparison.verdict is Verdict.SAME:
        return filled(SAME_WITHIN, margin=margin_words(comparison))
    return comparison.verdict.value


@dataclass(frozen=True)
class FigureWords:
    """A summary's mean and what bounds it, with no digit that the bounds leave open.

    `low` and `high` are its interval where it has one (`is_interval`), else the range of its values, or the two (`are_values`); empty below two
    values. Of an interval that says nothing `low` says so, and there is no `high`.
    """

    mean: str
    low: str = ""
    high: str = ""
    is_interval: bool = False
    are_values: bool = False

    def between(self, word: str) -> str:
        """Both bounds with a word, or a dash, between them; two values with a dot or `and`, as nobody takes those for an interval; empty where there are none."""
        if self.are_values:
            word = VALUES if word == "–" else word.replace("to", "and")
        return f"{self.low}{word}{self.high}" if self.high else self.low


def centre_words(metric: Metric) -> str:
    """What the figure of a cell is (decision 15), where all its values are above zero."""
    return "geometric mean" if metric.scale is Scale.RATIO else "mean"


def unit_words(metric: Metric) -> str:
    """Its unit behind a figure; empty where the metric's name, which stands before or above it, says it: `tps`."""
    return "" if metric.unit in ("1", "1/s", "share") else metric.unit


def capital(text: str) -> str:
    """A sentence with its first letter; one that begins with the name of a metric keeps that."""
    return text if text.partition(" ")[0] in METRICS else f"{text[:1].upper()}{text[1:]}"


def figure(summary: Summary) -> FigureWords:
    """How a summary is written wherever a person reads it."""
    is_interval = summary.low is not None
    low, high = (summary.low, summary.high) if is_interval else (summary.minimum, summary.maximum)
    scatter = scatter_of(summary)
    mean = number_words(summary.centre, scatter)
    if summary.centre_kind == ARITHMETIC_MEAN:
        # It stands under “geometric mean”, which figures of which some are 0 have not.
        mean = f"{mean} (mean)"
    if summary.n < 2 or low is None or high is None:
        return FigureWords(mean)
    if is_interval and tells_nothing(EstimateKind.RATIO, low, high):
        return FigureWords(mean, NOT_KNOWN, is_interval=True)
    return FigureWords(
        mean,
        number_words(low, scatter),
        number_words(high, scatter),
        is_interval,
        are_values=_are_values(summary),
    )


def span(summary: Summary) -> str:
    """The smallest and the largest value, `23,900–24,700`, of two both, `23,900 · 24,700`; nothing below two values, or where they are not kept."""
    if summary.n < 2 or summary.minimum is None:
        return ""
    ends = [number_words(end, scatter_of(summary)) for end in (summary.minimum, summary.maximum)]
    return (VALUES if _are_values(summary) else "–").join(ends)


def _are_values(summary: Summary) -> bool:
    return summary.n == 2 and summary.low is None


def scatter_of(summary: Summary) -> float | None:
    """Half the width of the interval, or of the range where there is none; None where runs do not scatter, or nothing tells how.

    Two runs may agree by chance and one says nothing of scatter, so that of a figure with a ratio it is at least so much as leaves them three
    digits and two.
    """
    low, high = (summary.low, summary.high) if summary.low is not None else (summary.minimum, summary.maximum)
    half = 0.0 if summary.n < 2 or low is None or high is None else (high - low) / 2
    if summary.n in _PRESUMED and summary.centre and summary.centre_kind in RATIO_CENTRES:
        half = max(half, 10.0 ** (math.floor(math.log10(abs(summary.centre))) + _PRESUMED[summary.n]))
    return half or None


def durability_words(durability: Durability | None) -> str:
    """What survives a power cut: one word where all caches agree, else volatile / protected.

    Where a volatile cache with sectors of 512 bytes is in another class than one with 4 KiB, that is said behind it, and so
    is what commits that do not wait promise.
    """
    if durability is None:
        return UNKNOWN
    words = durability.volatile_cache
    if durability.volatile_cache != durability.protected_cache:
        words = f"{words} / {durability.protected_cache}"
    with_512 = durability.class_with(VOLATILE_512)
    if with_512 != durability.volatile_cache:
        words = f"{words}; {with_512} with {SECTORS_512}"
    others = durability_words(durability.without_waiting) if durability.without_waiting else words
    return words if others == words else f"{words}; without sync {others}"


def about_counts(n: int, *, has_interval: bool) -> str:
    """Of what k of n speaks: cuts of one recording share what happened in it. `has_interval` are the recordings."""
    single = ONE_RECORDING if n == 1 else SEVERAL_RECORDINGS
    return filled(WITHIN_RECORDINGS if has_interval else single, n=n)


def device_sectors(found: Overview) -> int | None:
    """The physical sectors of the study's device, as every cell has them; None where nothing tells."""
    return next((cell.sector_bytes for cell in found.cells.values()), None)


def words_on_device(cell: CellFacts) -> str:
    """The same on the study's own device: what only another one's sectors would lose is no difference between its cells."""
    found = cell.durability
    if found is None:
        return UNKNOWN
    here = replace(found, volatile_cache=found.class_with(cell.cache), volatile_cache_512=None)
    return durability_words(here)


def promises_differ(first: CellFacts, second: CellFacts) -> str:
    """What is to be said where two cells are not alike in what survives a power cut, on their device or on another one."""
    words = [durability_words(cell.durability) for cell in (first, second)]
    if words_on_device(first) != words_on_device(second):
        return filled(PROMISES_DIFFER, first=words[0], second=words[1])
    if words[0] == words[1]:
        return ""
    sectors = _other_sectors(first, second)
    return filled(PROMISES_DIFFER_ELSEWHERE, sectors=sectors, first=words[0], second=words[1])


def _other_sectors(first: CellFacts, second: CellFacts) -> str:
    caches = {first.cache, second.cache}
    if len(caches) > 1:
        return OTHER_SECTORS
    return SECTORS_512 if caches == {VOLATILE_4K} else SECTORS_4K


def durability_told(cell: CellFacts) -> str:
    """All that is said of a cell: where sectors decide what its own device has, and what became of its verdict where power was cut."""
    words, found = durability_words(cell.durability), cell.durability
    if found is None:
        return words
    here = f"; this device: {words_on_device(cell)}" if found.tells_sectors else ""
    verdict = ", measured" if found.basis == "measured" else ""
    return f"{words}{here}{f', {VERDICT_REFUSED}' if cell.verdict_refused else verdict}"


def durability_class(durability: Durability | None, cache: str) -> str:
    """The class that a cell is coloured by: with the volatile cache of its device, of the commits that promise least."""
    return UNKNOWN if durability is None else promising_least(durability).class_with(cache)


def badge_class(cell: CellFacts) -> str:
    """The word by which the page colours a cell's class; what is declared alone does not look safe where a verdict was refused."""
    word = durability_class(cell.durability, cell.cache).split(maxsplit=1)[0]
    return _UNTOLD if cell.verdict_refused and word == DURABLE else word


def safety(cell: CellFacts) -> tuple[int, int]:
    """The place of a cell's class among others: what keeps every commit comes first."""
    protected = UNKNOWN if cell.durability is None else promising_least(cell.durability).protected_cache
    return CLASSES.index(durability_class(cell.durability, cell.cache)), CLASSES.index(protected)


def promising_least(durability: Durability) -> Durability:
    """What holds of all commits together, those that do not wait too."""
    others = durability.without_waiting
    if others is None:
        return durability
    return replace(worst_of(durability, others), without_waiting=None)


def mark(measurements: Sequence[Measurement]) -> str:
    """The worst that is to be said of the repetitions of a run: failed, suspect, unknown, missing, or valid."""
    troubles = {m.trouble for m in measurements}
    worst_first = (found for trouble, found in _TROUBLE_MARKS.items() if trouble in troubles)
    return next(worst_first, VALID_MARK if measurements else MISSING_MARK)


def counted(summary: Summary) -> str:
    """How many values stand behind a figure, and what became of the other repetitions."""
    words = [f"n = {summary.n}"]
    if summary.basis in BASIS_MARKS:
        words[0] += f" ({summary.basis if summary.basis == SUSPECT else UNKNOWN_VALIDITY})"
    else:
        for count, word in ((summary.suspect, "suspect"), (summary.unknown, OF_UNKNOWN_VALIDITY)):
            if count:
                words.append(f"{count} {word}, left out")
    for count, word in (
        (summary.failed, "failed"),
        (summary.not_run, "not run"),
        (summary.absent, "without a value"),
        (summary.censored, "censored"),
    ):
        if count:
            words.append(f"{count} {word}")
    return ", ".join(words)


# In place of the command that would add repetitions.
NO_MORE_THAN_ITS_SOURCE = "the study was imported, and has what its source has."


def _how_to_get_more(study: str, executor: str, asked: int) -> str:
    """The command that adds repetitions; only the local executor needs root here."""
    if executor == IMPORTED:
        return f"There are no more: {NO_MORE_THAN_ITS_SOURCE}"
    sudo = "sudo " if executor == "local" else ""
    return f"`{sudo}{COMMAND} run {study} --repetitions {asked}` adds repetitions to this study."


def repetitions_sentence(
    repetitions: int, *, study: str = "STUDY", executor: str = "local", has_speeds: bool = True
) -> str:
    """What this many repetitions can and cannot tell, and how to get more.

    Without speeds there are counted cases, whose shares have exact intervals from the first repetition on.
    """
    more = _how_to_get_more(study, executor, 5 if has_speeds else repetitions + 1)
    if repetitions == 0:
        return "Nothing has been measured yet."
    if not has_speeds:
        return f"Cases are counted: one repetition gives a share with its exact interval, and more narrow it. {more}"
    if repetitions == 1:
        return (
            "One repetition shows what happened once. It does not show how far figures scatter from run to run, so it gives "
            f"no verdicts. {more}"
        )
    if repetitions < REPETITIONS_FOR_INTERVAL:
        return (
            "Two repetitions give ranges, and no verdicts. Three give verdicts; five find most differences above 10 %. "
            f"{more}"
        )
    if repetitions < 5:
        return (
            f"{repetitions} repetitions give each figure a 95 % interval, a wide one: only differences far larger than the "
            f"scatter can be found. {more}"
        )
    return (
        f"{repetitions} repetitions give each figure a 95 % interval. Intervals that overlap may still "
        "differ, and of many intervals some miss: a comparison of cells takes both into account."
    )


def told_of(measurements: Sequence[Measurement]) -> list[Told]:
    """What is to be said of a cell's runs; what is said of several (a failure, a kernel warning) stands once."""
    found: dict[tuple[Trouble, str], dict[str, None]] = {}
    for m in measurements:
        if m.trouble is None:
            continue
        for reason in sentences(m.reasons) or ("no reason was recorded",):
            runs = found.setdefault((m.trouble, reason), {})
            if m.figures:
                runs[m.run] = None
    told = []
    for (trouble, reason), runs in found.items():
        where = f" ({', '.join(runs)})" if runs else ""
        head = "unknown validity" if trouble is Trouble.UNKNOWN else trouble.value
        if trouble is Trouble.NOT_RUN:
            told.append(Told(reason))
            continue
        head = f"{head}{where}: "
        told.append(Told(f"{head}{reason}", len(head) if trouble in _DOUBTS else None))
    return told


def block_words(label: CellLabel) -> str:
    """The block sizes of a cell in few columns: `fs 4k · db 8k`; an engine may have none."""
    database = f" · db {_size(label.database_block_bytes)}" if label.database_block else ""
    return f"fs {_size(label.filesystem_block_bytes)}{database}"


def _size(size_bytes: int | None) -> str:
    """A block size in few columns: `4k`; `default` where nothing was asked for and nothing read back."""
    if size_bytes is None:
        return "default"
    return format_size(size_bytes).replace(" KiB", "k").replace(" MiB", "M").replace(" B", "")


# Enough for every difference that repetitions can tell.
_DIGITS = 4


def rounded(value: float | None, digits: int = _DIGITS) -> float | None:
    """The value to so many significant digits; None for what is no finite number."""
    if value is None or not math.isfinite(value):
        return None
    short = float(f"{value:.{digits - 1}e}")
    if not math.isfinite(short):
        return value
    return int(short) if short == int(short) and abs(short) < 1e15 else short


def recording_words(run: CutRun) -> list[str]:
    """A sentence for each such thing."""
    words = []
    size, syncs = run.verdict.image_bytes, run.verdict.foreign_syncs
    if size is not None and run.verdict.lacks_metadata_room:
        words.append(
            f"recorded on a disk of {format_size(size)}: there Btrfs may have little room for metadata, and then commits an "
            "engine's page by halves, in order too"
        )
    if syncs:
        calls = "once" if syncs == 1 else f"{syncs} times"
        words.append(
            f"another program called sync(2) {calls} meanwhile, which committed the recorded file system too"
        )
    if run.dataset.levels.get(COMPLETIONS) == LATE:
        waiting = run.verdict.waiting
        met = "" if waiting is None else f", and {waiting.get(IN_FLIGHT, 0)} flushes met some on their way"
        words.append(f"writes were complete up to {LATE_US / 1000:g} ms late{met}")
    if run.dataset.levels.get(HAS_FUA) is True and run.recording is not None:
        words.append(
            f"{run.recording.through_writes or 0:,} writes went past the cache (FUA), without a flush of all else"
        )
    unit = run.spec.levels.get(DEVICE_UNIT)
    recording = run.recording
    if isinstance(unit, int) and recording is not None:
        words.append(
            f"cut as a device would leave it that writes {format_size(unit)} whole: no class of the cell on another. It does not "
            f"cover {recording.uncovered_writes or 0:,} of {recording.long_writes or 0:,} writes above 4 KiB, which were longer, "
            "no power of two or not aligned to themselves"
        )
    if recording is not None and (unseen := recording.facts.get("writers")):
        words.append(f"which processes wrote was {unseen}")
    words += _sought_words(run)
    words += _page_words(run)
    if run.verdict.states is not None:
        words.append(run.verdict.states.words)
    return words


def _sought_words(run: CutRun) -> list[str]:
    """How many cuts were to be sought and were not made, and why; nothing where all were."""
    recording = run.recording
    if recording is None or not recording.sought_left_out:
        return []
    why = (
        "none of the profiles tears a write"
        if recording.waiting
        else "no metadata waited that a cut can tear"
    )
    return [f"{recording.sought_left_out:,} cuts that were to be sought were not made: {why}"]


def _page_words(run: CutRun) -> list[str]:
    """How the pages came to the file system, and where they lay; nothing where nobody looked."""
    pages = run.verdict.pages
    if pages is None:
        return []
    before, after = pages.before, pages.after
    words = []
    if pages.counts is not None:
        words.append(f"the server wrote {_counted_words(pages.counts)}")
    recovered = [each.counts for each in run.verdict.recovered_pages if each.counts is not None]
    if recovered:
        counted = _counted_words(PageCounts.together(recovered))
        words.append(f"as it recovered, to be cut again, it wrote {counted}, in {len(recovered)} recoveries")
    if pages.direct_files:
        words.append(
            f"{after.misplaced:,} of {after.pages:,} pages do not lie at a multiple of their size; the data files were in "
            f"{before.extents:,} pieces before the clients and in {after.extents:,} after them"
        )
    else:
        words.append("the server had no data file open with direct I/O")
    return words


def _counted_words(counts: PageCounts) -> str:
    how = f"{counts.atomic:,} pages untorn" if counts.atomic else f"{counts.plain:,} pages plainly"
    return (
        f"{how} over older ones, {counts.refusals:,} refused, and {counts.extensions:,} behind a file's end"
    )


@dataclass(frozen=True)
class FailureRow:
    """A run that failed, is in doubt or is missing; `logs` is a folder within the study, which is called `study`."""

    kind: str
    cell: str
    repetition: str
    reasons: tuple[str, ...]
    logs: str
    study: str


def failures(found: Overview, study: str) -> list[FailureRow]:
    """One entry per visit that failed and per run that failed, is suspect or is missing; `study` is what it is called."""
    entries: dict[FailureRow, None] = {}
    for m in found.measurements:
        if m.trouble is None:
            continue
        cell = found.cells[m.cell].label.full if m.cell in found.cells else "canary"
        entries[
            FailureRow(
                kind=m.trouble.value,
                cell=f"{cell} · {m.run}" if m.figures else cell,
                repetition=f"{'canary ' if m.canary else ''}{m.repetition}",
                reasons=sentences(m.reasons) or ("no reason was recorded",),
                logs=_logs(found, m),
                study=study,
            )
        ] = None
    return [*entries, *_earlier_attempts(found, study)]


def _logs(found: Overview, m: Measurement) -> str:
    if m.directory is not None:
        return str(m.directory.relative_to(found.study.directory) / "logs")
    for visit in found.study.visits:
        key = visit.record.key
        if (key.cell, key.dataset, key.repetition, key.attempt) == (
            m.cell,
            m.dataset,
            m.repetition,
            m.attempt,
        ):
            return str(visit.directory.relative_to(found.study.directory) / "logs")
    return ""


def _earlier_attempts(found: Overview, study: str) -> list[FailureRow]:
    """Attempts that a later one replaced: nothing is overwritten, nothing is hidden."""
    latest: dict[tuple[str, str, int, bool], int] = {}
    for visit in found.study.visits:
        key = visit.record.key
        place = (key.cell, key.dataset, key.repetition, key.canary)
        latest[place] = max(latest.get(place, 0), key.attempt)
    return [
        FailureRow(
            kind="replaced",
            cell=found.cells[key.cell].label.full if key.cell in found.cells else "canary",
            repetition=f"{key.repetition}, attempt {key.attempt}",
            reasons=sentences(visit.record.reasons) or (f"the visit was {visit.record.outcome.value}",),
            logs=str(visit.directory.relative_to(found.study.directory) / "logs"),
            study=study,
        )
        for visit in found.study.visits
        if (key := visit.record.key).attempt < latest[key.cell, key.dataset, key.repetition, key.canary]
    ]
