"""Claims judged on studies: each holds, does not hold, cannot be told, or was not measured, and why.

A claim is judged in every study that measured it, and all of these together keep the false discovery rate, as
comparisons do: of the words `holds` and `does not hold` that are given together, 5 % are wrong on average.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from bedplate.analysis.claims.checks import TooFewError, check_doubt
from bedplate.analysis.claims.evidence import LeftOut, NothingMeasuredError, evidences
from bedplate.analysis.claims.file import Bounded, SpreadCheck
from bedplate.analysis.comparison.compared import candidates_of
from bedplate.analysis.comparison.surroundings import surroundings_between
from bedplate.statistics.claims import all_of
from bedplate.statistics.false_discovery import RATE, joint_confidence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bedplate.analysis.cell_filter import Candidate
    from bedplate.analysis.claims.file import Check, Claim, ClaimFile
    from bedplate.analysis.overview import Overview
    from bedplate.statistics.claims import Doubt, Witness


class Finding(StrEnum):
    """What a study says of a claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
    CANNOT_TELL = "cannot tell"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class JudgedClaim:
    """A claim in one study, counted from 0; None where no study measured it.

    `words` name the figure that the finding rests on: where it holds the part that is least sure, where it fails the
    part that refutes it. `estimate`, `low` and `high` are ratios where `is_ratio`, else differences or values in
    `unit`; a bound that is None is open. `confidence` is that of this interval: higher where it was looked for among
    many. `reasons` say why there is less than a finding, `notes` stand beside it.
    """

    claim: Claim
    study: int | None
    finding: Finding
    words: str = ""
    metric: str = ""
    is_ratio: bool = True
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    confidence: float | None = None
    n: int = 0
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ClaimsAnswer:
    """All claims of some files on some studies; `confidence` is that of one interval among all that were judged."""

    overviews: tuple[Overview, ...]
    files: tuple[ClaimFile, ...]
    judged: tuple[tuple[JudgedClaim, ...], ...]
    confidence: float
    told: int
    asked: int


@dataclass(frozen=True)
class _Weighed:
    """A claim in one study before all are judged together; `doubt` is None where nothing can be judged."""

    claim: Claim
    study: int
    doubt: Doubt | None
    checks: tuple[tuple[Check, Doubt], ...]
    lacking: tuple[str, ...]
    few: TooFewError | None
    few_check: Check | None
    notes: tuple[str, ...]


def judge_claims(overviews: Sequence[Overview], files: Sequence[ClaimFile]) -> ClaimsAnswer:
    """Judge every claim of the files in every study that has measured it."""
    cells = candidates_of(overviews)
    by_study = [tuple(cell for cell in cells if cell.study == number) for number in range(len(overviews))]
    weighed: list[list[list[_Weighed]]] = []
    for file in files:
        of_file = []
        for claim in file.claim:
            found = [
                _weigh(claim, number, overview, own)
                for number, (overview, own) in enumerate(zip(overviews, by_study, strict=True))
            ]
            measured = [each for each in found if each.doubt is not None or each.few is not None]
            of_file.append(measured or found)
        weighed.append(of_file)
    p_values = [
        each.doubt.p_value
        for of_file in weighed
        for found in of_file
        for each in found
        if each.doubt is not None
    ]
    confidence = float(joint_confidence(p_values)) if p_values else 1 - RATE
    judged = tuple(
        tuple(one for found in of_file for one in _judged(found, confidence)) for of_file in weighed
    )
    told = sum(one.finding in {Finding.HOLDS, Finding.FAILS} for of_file in judged for one in of_file)
    return ClaimsAnswer(tuple(overviews), tuple(files), judged, confidence, told, len(p_values))


def _weigh(claim: Claim, study: int, overview: Overview, cells: Sequence[Candidate]) -> _Weighed:
    tally = LeftOut()
    # Of one study: the levels of its cells name it nowhere, so that no filter pairs it with another.
    surroundings = surroundings_between([overview])
    own = [_alone(cell) for cell in cells]
    checks: list[tuple[Check, Doubt]] = []
    lacking: list[str] = []
    few: tuple[Check, TooFewError] | None = None
    for check in claim.check:
        try:
            doubts = [check_doubt(each) for each in evidences(overview, check, own, surroundings, tally)]
            checks.append((check, all_of(doubts)))
        except TooFewError as error:
            few = few or (check, error)
        except NothingMeasuredError as error:
            lacking.append(str(error))
    return _Weighed(
        claim=claim,
        study=study,
        doubt=_together([doubt for _, doubt in checks], whole=len(checks) == len(claim.check)),
        checks=tuple(checks),
        lacking=tuple(dict.fromkeys(lacking)),
        few=few[1] if few else None,
        few_check=few[0] if few else None,
        notes=tally.notes,
    )


def _alone(cell: Candidate) -> Candidate:
    return replace(cell, study=0)


def _together(doubts: Sequence[Doubt], *, whole: bool) -> Doubt | None:
    """A claim of which a part was not measured may fail, and cannot hold."""
    if not doubts:
        return None
    found = all_of(doubts)
    return found if whole else replace(found, p_holds=1.0)


def _judged(found: Sequence[_Weighed], confidence: float) -> list[JudgedClaim]:
    """One for each study that measured something of the claim, else one that says what each of them lacks."""
    if all(each.doubt is None and each.few is None for each in found):
        reasons = tuple(dict.fromkeys(reason for each in found for reason in each.lacking))
        return [JudgedClaim(found[0].claim, None, Finding.NOT_MEASURED, reasons=reasons)]
    return [_judge(each, confidence) for each in found]


def _judge(found: _Weighed, confidence: float) -> JudgedClaim:
    doubt, rate = found.doubt, 1 - confidence
    if doubt is None:
        return _described(found)
    if doubt.p_fails <= rate:
        return _with_interval(found, Finding.FAILS, doubt.for_fails, rate)
    if doubt.p_holds <= rate:
        return _with_interval(found, Finding.HOLDS, doubt.for_holds, rate)
    finding = Finding.NOT_MEASURED if found.lacking else Finding.CANNOT_TELL
    return _with_interval(found, finding, doubt.for_holds, rate)


def _described(found: _Weighed) -> JudgedClaim:
    """With too few repetitions there is an estimate and nothing else."""
    few, check = found.few, found.few_check
    mean = few.mean if few is not None else None
    is_ratio = check is not None and _is_ratio(check)
    return JudgedClaim(
        claim=found.claim,
        study=found.study,
        finding=Finding.NOT_MEASURED if found.lacking else Finding.CANNOT_TELL,
        words=few.words if few is not None else "",
        metric="" if check is None else check.metric,
        is_ratio=is_ratio,
        estimate=_taken_back(mean, is_ratio=is_ratio),
        n=few.n if few is not None else 0,
        reasons=(*((str(few),) if few is not None else ()), *found.lacking),
        notes=found.notes,
    )


def _with_interval(found: _Weighed, finding: Finding, witness: Witness, rate: float) -> JudgedClaim:
    # `all_of` writes down anew among how many a witness was looked for; its interval stays what it was.
    check = next(
        check
        for check, doubt in found.checks
        if any(witness.interval is each.interval for each in (doubt.for_holds, doubt.for_fails))
    )
    is_ratio = _is_ratio(check)
    confidence = 1 - rate / witness.tries
    low, high = witness.interval.bounds(confidence)
    reasons = found.lacking if finding in {Finding.NOT_MEASURED, Finding.CANNOT_TELL} else ()
    if found.few is not None and not reasons and finding is not Finding.FAILS:
        reasons = (str(found.few),)
    return JudgedClaim(
        claim=found.claim,
        study=found.study,
        finding=finding,
        words=witness.words,
        metric=_figure_name(check),
        is_ratio=is_ratio,
        estimate=_taken_back(witness.mean, is_ratio=is_ratio),
        low=_taken_back(low, is_ratio=is_ratio),
        high=_taken_back(high, is_ratio=is_ratio),
        confidence=confidence,
        n=witness.interval.n,
        reasons=reasons,
        notes=found.notes,
    )


def _figure_name(check: Check) -> str:
    return check.metric if check.per is None else f"{check.metric} / {check.per}"


def _is_ratio(check: Check) -> bool:
    return check.is_ratio or isinstance(check, SpreadCheck)


def _taken_back(value: float | None, *, is_ratio: bool) -> float | None:
    """A logarithm as a ratio; None for what is open or not known."""
    if value is None or math.isnan(value) or math.isinf(value):
        return None
    if not is_ratio:
        return value
    return math.exp(value) if abs(value) < 700 else None


def bounds_words(check: Check) -> str:
    """The bounds of a check as a table has them: `0.85–0.95`, `≥ 1`; empty for a check without any."""
    if not isinstance(check, Bounded):
        return ""
    if check.at_least is not None and check.at_most is not None:
        return f"{check.at_least:g}–{check.at_most:g}"
    return f"≥ {check.at_least:g}" if check.at_least is not None else f"≤ {check.at_most:g}"
