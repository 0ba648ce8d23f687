"""Sentences and numbers that the page and the terminal write alike."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from bedplate.model.device_cache import VOLATILE_512
from bedplate.model.durability import UNKNOWN, worst, worst_with_512
from bedplate.report.overview import Trouble
from bedplate.statistics.summary import REPETITIONS_FOR_INTERVAL, SUSPECT, UNKNOWN_BASIS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bedplate.model.visit import Durability
    from bedplate.report.overview import CellFacts, Measurement, Overview
    from bedplate.statistics.summary import Summary

VALID_MARK = "✓"
SUSPECT_MARK = "!"
UNKNOWN_MARK = "?"
FAILED_MARK = "✗"
MISSING_MARK = "·"
SECTORS_512 = "512-byte sectors"
_TROUBLE_MARKS = {
    Trouble.FAILED: FAILED_MARK,
    Trouble.SUSPECT: SUSPECT_MARK,
    Trouble.UNKNOWN: UNKNOWN_MARK,
    Trouble.NOT_RUN: MISSING_MARK,
}
# Of a figure that rests on no trusted run.
BASIS_MARKS = {SUSPECT: SUSPECT_MARK, UNKNOWN_BASIS: UNKNOWN_MARK}
# Enough for every difference that repetitions can tell, few enough to read.
_DIGITS = 4


def number(value: float | None) -> str:
    """Four significant digits, thousands apart: `24,310`, `12.41`; `–` where nothing was measured."""
    if value is None:
        return "–"
    if value == 0:
        return "0"
    value = float(f"{value:.{_DIGITS - 1}e}")
    magnitude = math.floor(math.log10(abs(value)))
    if magnitude >= 9 or magnitude < -4:
        return f"{value:.3g}"
    decimals = max(0, _DIGITS - 1 - magnitude)
    return f"{value:,.{decimals}f}"


def span(summary: Summary) -> str:
    """The smallest and the largest value, `23,900–24,700`; nothing below two values, or where they are not kept."""
    if summary.n < 2 or summary.minimum is None:
        return ""
    return f"{number(summary.minimum)}–{number(summary.maximum)}"


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


def durability_told(durability: Durability | None) -> str:
    """The same, and that it is measured where power was cut: `unsafe / durable, measured`."""
    is_measured = durability is not None and durability.basis == "measured"
    return f"{durability_words(durability)}{', measured' if is_measured else ''}"


def durability_class(durability: Durability | None, cache: str) -> str:
    """The class that a cell is coloured by: with the volatile cache of its device, of the commits that promise least."""
    return UNKNOWN if durability is None else promising_least(durability).class_with(cache)


def promising_least(durability: Durability) -> Durability:
    """What holds of all commits together, those that do not wait too."""
    others = durability.without_waiting
    if others is None:
        return durability
    return replace(
        durability,
        volatile_cache=worst(durability.volatile_cache, others.volatile_cache),
        protected_cache=worst(durability.protected_cache, others.protected_cache),
        without_waiting=None,
        volatile_cache_512=worst_with_512(durability, others),
    )


def mark(measurements: Sequence[Measurement]) -> str:
    """The worst that is to be said of the repetitions of a run: failed, suspect, unknown, missing, or valid."""
    troubles = {m.trouble for m in measurements}
    worst_first = (found for trouble, found in _TROUBLE_MARKS.items() if trouble in troubles)
    return next(worst_first, VALID_MARK if measurements else MISSING_MARK)


def counted(summary: Summary) -> str:
    """How many values stand behind a figure, and what became of the other repetitions."""
    words = [f"n = {summary.n}"]
    if summary.basis in BASIS_MARKS:
        words[0] += f" ({summary.basis if summary.basis == SUSPECT else 'validity unknown'})"
    else:
        for count, word in ((summary.suspect, "suspect"), (summary.unknown, "of unknown validity")):
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


def repetitions_sentence(repetitions: int, *, study: str = "STUDY", executor: str = "local") -> str:
    """What this many repetitions can and cannot tell, and how to get more; only the local executor needs root here."""
    sudo = "sudo " if executor == "local" else ""
    more = f"`{sudo}./bedplate extend {study} --repetitions 5` adds repetitions to this study."
    if repetitions == 0:
        return "Nothing has been measured yet."
    if repetitions == 1:
        return (
            "One repetition shows what happened once. It cannot show how far figures scatter from run to "
            f"run, so no difference here may be called real. {more}"
        )
    if repetitions < REPETITIONS_FOR_INTERVAL:
        return (
            "Two repetitions describe: they show the level of each figure and whether two runs came out "
            "alike. They cannot tell a difference between cells from scatter between runs, so there are "
            f"ranges and no verdicts. For verdicts, {more}"
        )
    if repetitions < 5:
        return (
            f"{repetitions} repetitions give each figure a 95 % interval, a wide one: differences far larger "
            f"than the scatter stand out, smaller ones cannot be told. {more}"
        )
    return (
        f"{repetitions} repetitions give each figure a 95 % interval. Intervals that overlap may still "
        "differ, and of many intervals some miss: a comparison of cells takes both into account."
    )
