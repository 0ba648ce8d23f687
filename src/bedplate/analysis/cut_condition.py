"""`--fail-if` of power cuts: a condition on the verdict of a cell, and whether it holds, does not, or cannot be told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.analysis.comparison.condition import Truth
from bedplate.model.device_cache import CACHES
from bedplate.model.durability import CLASSES, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bedplate.analysis.power_cut_view import CutRun

BAD = "bad"


def cut_truth(condition: str, runs: Sequence[CutRun]) -> Truth:
    """Of a cell's recordings: `bad`, a cut took or damaged something; `worse`, more than was promised.

    It cannot be told of a cell without a verdict, and `worse` not where nothing was promised. Where cuts in recovery do not
    count, as a recovery that nothing cut left damage, a bad one may be among them: then it holds, or cannot be told.
    """
    truths = {_truth(condition, run) for run in runs} or {Truth.CANNOT_TELL}
    return next(each for each in (Truth.HOLDS, Truth.CANNOT_TELL, Truth.FAILS) if each in truths)


def _truth(condition: str, run: CutRun) -> Truth:
    if run.verdict.refused:
        return Truth.CANNOT_TELL
    recoveries = run.verdict.recoveries
    otherwise = Truth.CANNOT_TELL if recoveries is not None and recoveries.refused else Truth.FAILS
    if condition == BAD:
        return Truth.HOLDS if run.verdict.all.bad else otherwise
    declared, measured = run.declared, run.measured
    if declared is None or measured is None:
        return Truth.CANNOT_TELL
    pairs = [(declared.class_with(cache), measured.class_with(cache)) for cache in CACHES]
    if any(UNKNOWN in pair for pair in pairs):
        return Truth.CANNOT_TELL
    worse = any(CLASSES.index(found) > CLASSES.index(said) for said, found in pairs)
    return Truth.HOLDS if worse else otherwise
