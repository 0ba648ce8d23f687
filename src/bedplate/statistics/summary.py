"""What the repetitions of one cell say about one metric: descriptions, and an interval where one is due.

The run is the unit, never the second. Runs that are suspect or of unknown validity are left out where a
cell has at least one trusted run, and shown, marked, where it has none; failed, absent and censored
values are counted, never taken for zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean
from typing import NamedTuple

from scipy.special import stdtrit

from bedplate.model.figure import Scale, Status
from bedplate.model.visit import Outcome, Validity

GEOMETRIC_MEAN = "geometric mean"

# Of a figure that is compared as a ratio where some values are 0, which has no logarithm.
ARITHMETIC_MEAN = "arithmetic mean"

# What stands for figures that are compared as ratios.
RATIO_CENTRES = (GEOMETRIC_MEAN, ARITHMETIC_MEAN)

MEAN = "mean"

MEDIAN = "median"

TRUSTED = "trusted"

SUSPECT = "suspect"

UNKNOWN_BASIS = "unknown"

CONFIDENCE = 0.95

# Two values have a range; the interval of one degree of freedom is about nine times wider than it.
REPETITIONS_FOR_INTERVAL = 3


class SummaryKey(NamedTuple):
    """What is summarised: one metric of one run on one dataset in one cell.

    `phase` and `item` name the part of the run; as they stand here they mean the run as a whole.
    """

    cell: str
    dataset: str
    run: str
    metric: str
    phase: str = "measure"
    item: str = ""


@dataclass(frozen=True)
class Observation:
    """One metric of one run as it was found. `value` is None unless it was measured.

    `limit` is where a censored value was cut off, in the metric's unit. `of` is (k, n) where the value is k of n that
    were counted one by one.
    """

    value: float | None
    status: Status = Status.MEASURED
    outcome: Outcome = Outcome.COMPLETED
    validity: Validity = Validity.VALID
    limit: float | None = None
    of: tuple[int, int] | None = None


@dataclass(frozen=True)
class Summary:
    """The repetitions together.

    `n` counts the values behind the statistics, whose `basis` is `trusted`, `suspect` or `unknown`; None where
    there are no values. `centre` is the one figure that stands for them everywhere (docs/decisions/0015): their geometric mean
    where they are compared as ratios, else their mean, as `centre_kind` says. `low` and `high` bound its 95 % interval. `suspect`
    counts suspect runs with a value, `unknown` those whose validity is, `failed` runs that failed, `not_run` those that never began,
    `absent` completed runs without the value, `censored` those that only know a limit. A figure that is made
    over several cells, as TPC-H's scores are, has its value in `centre` and nothing in `minimum` and `maximum`.
    """

    n: int
    basis: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    centre: float | None = None
    centre_kind: str | None = None
    variation: float | None = None
    low: float | None = None
    high: float | None = None
    suspect: int = 0
    failed: int = 0
    not_run: int = 0
    absent: int = 0
    censored: int = 0
    unknown: int = 0


def basis_of(validities: Iterable[Validity]) -> str:
    """What figures rest on that are made of runs of these validities: the worst that is to be said of them."""
    found = set(validities)
    if Validity.SUSPECT in found:
        return SUSPECT
    return UNKNOWN_BASIS if Validity.UNKNOWN in found else TRUSTED


def summarise(observations: Iterable[Observation], scale: Scale) -> Summary:
    """Summarise the repetitions of one metric in one cell."""
    known: list[tuple[float, Validity]] = []
    failed = not_run = absent = censored = 0
    for observation in observations:
        if observation.outcome is Outcome.FAILED:
            failed += 1
        elif observation.outcome is Outcome.NOT_RUN:
            not_run += 1
        elif observation.status is Status.CENSORED:
            censored += 1
        elif observation.value is None or not math.isfinite(observation.value):
            absent += 1
        else:
            known.append((observation.value, observation.validity))
    counting = [one for one in known if one[1].is_trusted] or known
    values = [value for value, _ in counting]
    if not values:
        return Summary(0, failed=failed, not_run=not_run, absent=absent, censored=censored)
    centre, kind = _centre(values, scale)
    low, high = log_interval(values) if scale is Scale.RATIO else (None, None)
    return Summary(
        n=len(values),
        basis=basis_of(validity for _, validity in counting),
        minimum=min(values),
        maximum=max(values),
        centre=centre,
        centre_kind=kind,
        variation=coefficient_of_variation(values),
        low=low,
        high=high,
        suspect=sum(validity is Validity.SUSPECT for _, validity in known),
        failed=failed,
        not_run=not_run,
        absent=absent,
        censored=censored,
        unknown=sum(validity is Validity.UNKNOWN for _, validity in known),
    )


class Summaries(Mapping[SummaryKey, Summary]):
    """Summaries by key, in the order of the keys, each of them made when it is first asked for.

    A study has a hundred times as many as a table shows.
    """

    def __init__(self, keys: Iterable[SummaryKey], make: Callable[[SummaryKey], Summary]) -> None:
        self._made: dict[SummaryKey, Summary | None] = dict.fromkeys(keys)
        self._make = make

    def __getitem__(self, key: SummaryKey) -> Summary:
        found = self._made[key]
        if found is None:
            found = self._made[key] = self._make(key)
        return found

    def __iter__(self) -> Iterator[SummaryKey]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)

    def __contains__(self, key: object) -> bool:
        return key in self._made


def coefficient_of_variation(values: Sequence[float]) -> float | None:
    """Sample standard deviation / mean, as a share; None below two values or around zero."""
    if len(values) < 2:
        return None
    mean = fmean(values)
    if mean <= 0:
        return None
    return _deviation(values) / mean


def log_interval(
    values: Sequence[float], *, confidence: float = CONFIDENCE
) -> tuple[float, float] | tuple[None, None]:
    """Student's t-interval of the mean logarithm, taken back: bounds of the geometric mean.

    None below three values and where one of them is not positive: a zero has no logarithm.
    """
    if len(values) < REPETITIONS_FOR_INTERVAL or min(values) <= 0:
        return None, None
    logarithms = [math.log(value) for value in values]
    centre = fmean(logarithms)
    quantile = _quantile(len(values) - 1, confidence)
    half = quantile * _deviation(logarithms) / math.sqrt(len(values))
    try:
        return math.exp(centre - half), math.exp(centre + half)
    except OverflowError:
        return None, None


def _deviation(values: Sequence[float]) -> float:
    """Sample standard deviation; `statistics.stdev` reckons in fractions, a hundred times slower."""
    if min(values) == max(values):
        return 0.0
    mean = fmean(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


@cache
def _quantile(degrees: int, confidence: float) -> float:
    return float(stdtrit(degrees, 0.5 + confidence / 2))


def _centre(values: Sequence[float], scale: Scale) -> tuple[float, str]:
    if scale is Scale.RATIO and min(values) > 0:
        geometric = math.exp(fmean(math.log(value) for value in values))
        # Rounding may carry the mean of equal values past them.
        return min(max(geometric, min(values)), max(values)), GEOMETRIC_MEAN
    if scale is Scale.RATIO and max(values) > 0:
        return fmean(values), ARITHMETIC_MEAN
    return fmean(values), MEAN
