"""Whether time mattered: a trend or a step over the order of a study or of its canary, and lone outliers.

Only values of the same group (one metric of one run in one cell, or the canary) are compared with each
other, so that fast and slow cells need no common scale; and only their ranks decide, so that noisy cells
have no more say than quiet ones. What the p-values are about is always the same: were time of no
account, every order of a group's values would be as likely.

Nothing is left out or corrected because of what is found here. Repetitions are blocks, so a drift takes no
side between cells; it widens intervals, and says that the machine was not the same all along.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import stdtr

if TYPE_CHECKING:
    from bedplate.statistics.estimation import FloatArray

CONFIDENCE = 0.95

# An outlier is told where chance alone would do as much in one group of a hundred, and by so much.
OUTLIER_LEVEL = 0.01

OUTLIER_RATIO = 1.1

_PERMUTATIONS = 999

_CHUNK = 111


@dataclass(frozen=True)
class Visited:
    """A positive value and when it was measured: `position` in the order of visits, or a time."""

    group: str
    position: float
    value: float

    def __post_init__(self) -> None:
        """ValueError for what has no logarithm or no place."""
        if not 0 < self.value < math.inf or not math.isfinite(self.position):
            raise ValueError(
                f"{self.group} has {self.value} at {self.position}; drift takes positive values, "
                "leave out what is zero or absent"
            )


@dataclass(frozen=True)
class Trend:
    """Values at the last position / at the first, were the change even; `low` and `high` at 95 %.

    The bounds are None where so few values bound nothing.
    """

    ratio: float
    low: float | None
    high: float | None
    p_value: float


@dataclass(frozen=True)
class Step:
    """The likeliest place of one lasting change: values from `position` on / before it, within groups."""

    position: float
    ratio: float
    p_value: float


@dataclass(frozen=True)
class Drift:
    """What `values` values in `groups` groups of two or more say about time; None where nothing can be said.

    A steady trend looks like a step too, and a step like a trend: the smaller p-value tells which it is more
    like.
    """

    values: int
    groups: int
    trend: Trend | None = None
    step: Step | None = None


@dataclass(frozen=True)
class Outlier:
    """One value that its group does not explain: `ratio` to the geometric mean of the `n` - 1 others."""

    group: str
    position: float
    value: float
    ratio: float
    n: int
    p_value: float


def drift(visited: Iterable[Visited], *, seed: int = 1) -> Drift:
    """Look for a trend and for a step. `seed` draws the permutations that a step is judged by."""
    groups = _groups(visited)
    count = sum(map(len, groups))
    if not groups:
        return Drift(0, 0)
    return Drift(count, len(groups), _trend(groups), _step(groups, np.random.default_rng(seed)))


def outliers(visited: Iterable[Visited], *, level: float = OUTLIER_LEVEL) -> tuple[Outlier, ...]:
    """At most one value per group of three or more, the one furthest from the others on logarithms.

    Grubbs' two-sided test (1969, Technometrics 11) at `level`, and at least a factor of `OUTLIER_RATIO`
    away, as three values that happen to lie close make any fourth one look strange. Of three values one
    is only told if the two others all but coincide.
    """
    found = (_outlier(group) for group in _groups(visited))
    return tuple(
        outlier
        for outlier in found
        if outlier is not None
        and outlier.p_value <= level
        and abs(math.log(outlier.ratio)) >= math.log(OUTLIER_RATIO)
    )


def _groups(visited: Iterable[Visited]) -> list[list[Visited]]:
    """Each group in the order of its positions; a value alone has no order."""
    grouped: defaultdict[str, list[Visited]] = defaultdict(list)
    for point in sorted(visited, key=lambda point: (point.position, point.group, point.value)):
        grouped[point.group].append(point)
    return [group for group in grouped.values() if len(group) > 1]


def _arrays(group: Sequence[Visited]) -> tuple[FloatArray, FloatArray]:
    return np.array([point.position for point in group]), np.log([point.value for point in group])


def _trend(groups: Sequence[Sequence[Visited]]) -> Trend | None:
    """Seasonal Kendall test and slope, with groups for seasons (Hirsch, Slack & Smith 1982, Water Resour. Res. 18).

    The distribution of the test is the exact one of values without ties, which is a little cautious with ties.
    """
    slopes, total = [], 0
    for group in groups:
        positions, logs = _arrays(group)
        first, second = np.triu_indices(len(group), k=1)
        apart = positions[second] - positions[first]
        rise = (logs[second] - logs[first])[apart > 0]
        total += int(np.sign(rise).sum())
        slopes.append(rise / apart[apart > 0])
    sorted_slopes = np.sort(np.concatenate(slopes))
    if not len(sorted_slopes):
        return None
    every = [point.position for group in groups for point in group]
    span = max(every) - min(every)
    scores, chances = _kendall([len(group) for group in groups])
    low, high = _bounds(sorted_slopes, scores, chances)
    return Trend(
        ratio=math.exp(float(np.median(sorted_slopes)) * span),
        low=None if low is None else math.exp(low * span),
        high=None if high is None else math.exp(high * span),
        p_value=min(1.0, float(chances[np.abs(scores) >= abs(total)].sum())),
    )


def _kendall(sizes: Sequence[int]) -> tuple[FloatArray, FloatArray]:
    """Every sum of Kendall's scores over groups of such sizes, and its chance when time is of no account.

    The number of inversions of a permutation of n is a sum of independent uniform numbers below 1, 2, … n.
    """
    chances: FloatArray = np.ones(1)
    for size in sizes:
        for places in range(2, size + 1):
            chances = np.convolve(chances, np.full(places, 1 / places)).astype(np.float64)
    pairs = len(chances) - 1
    return np.arange(-pairs, pairs + 1, 2, dtype=np.float64), chances


def _bounds(slopes: FloatArray, scores: FloatArray, chances: FloatArray) -> tuple[float | None, float | None]:
    """Sen's bounds (1968, J. Am. Stat. Assoc. 63): the slopes as many ranks from the ends as chance reaches."""
    tail = np.cumsum(chances)
    outside = np.flatnonzero(tail <= (1 - CONFIDENCE) / 2)
    # With ties in position there are fewer slopes than the distribution has pairs.
    if not len(outside) or len(slopes) != len(scores) - 1:
        return None, None
    rank = int(outside[-1])
    return float(slopes[rank]), float(slopes[-1 - rank])


def _step(groups: Sequence[Sequence[Visited]], random: np.random.Generator) -> Step | None:
    """The largest sum of ranks up to a place, beside those of values shuffled within their groups."""
    points = [point for group in groups for point in group]
    positions = np.array([point.position for point in points])
    logs = np.log([point.value for point in points])
    ends = np.cumsum([len(group) for group in groups])
    parts = [slice(end - len(group), end) for group, end in zip(groups, ends, strict=True)]
    ranks = np.concatenate([_centred_ranks(logs[part]) for part in parts])
    order = np.argsort(positions, kind="stable")
    # Values at one position are on one side of any place.
    places = np.flatnonzero(np.diff(positions[order]) > 0)
    if not len(places):
        return None
    sums = np.abs(np.cumsum(ranks[order]))[places]
    largest = float(sums.max())
    beyond = 0
    for start in range(0, _PERMUTATIONS, _CHUNK):
        shuffled = np.tile(ranks, (min(_CHUNK, _PERMUTATIONS - start), 1))
        for part in parts:
            random.permuted(shuffled[:, part], axis=1, out=shuffled[:, part])
        reached = np.abs(np.cumsum(shuffled[:, order], axis=1))[:, places].max(axis=1)
        # Sums of the same numbers in another order differ in their last digits.
        beyond += int(np.sum(reached >= largest - 1e-9))
    place = places[int(np.argmax(sums))]
    position = float(positions[order][place + 1])
    changes = [
        logs[part][positions[part] >= position].mean() - logs[part][positions[part] < position].mean()
        for part in parts
        if positions[part].min() < position <= positions[part].max()
    ]
    return Step(position, math.exp(float(np.median(changes))), (1 + beyond) / (1 + _PERMUTATIONS))


def _centred_ranks(values: FloatArray) -> FloatArray:
    """Ranks between -1 and 1: how many values are smaller less how many are larger; ties are halfway."""
    signs = np.sign(values[:, None] - values)
    return np.asarray(signs.sum(axis=1) / (len(values) - 1))


def _outlier(group: Sequence[Visited]) -> Outlier | None:
    _, logs = _arrays(group)
    n = len(logs)
    if n < 3:
        return None
    deviation = float(logs.std(ddof=1))
    furthest = int(np.argmax(np.abs(logs - logs.mean())))
    if deviation <= 1e-12:
        return None
    grubbs = abs(float(logs[furthest] - logs.mean())) / deviation
    rest = (n - 1) ** 2 - n * grubbs**2
    # The others coincide: as far out as a value can be.
    t = math.inf if rest <= 1e-12 else math.sqrt(n * (n - 2) * grubbs**2 / rest)
    others = np.delete(logs, furthest)
    return Outlier(
        group=group[furthest].group,
        position=group[furthest].position,
        value=group[furthest].value,
        ratio=math.exp(float(logs[furthest] - others.mean())),
        n=n,
        p_value=min(1.0, 2 * n * float(stdtr(n - 2, -t))),
    )


# Of the chance that a study without dips tells one, over all its cells.
LEVEL = 0.05

# The gap beside the spread of the runs above it; less is a cell that scatters on both sides.
GAP_RATIO = 3.0

# A dip that is told loses a fifth of the speed at least: less of it moves a mean by little.
LOSS_MIN = 0.2

_VALUES_MIN = 3


@dataclass(frozen=True)
class Dips:
    """`dipped` of the `n` values of a group lie far below the others, at `ratio` to their geometric mean."""

    group: str
    dipped: int
    n: int
    ratio: float
    p_value: float


@dataclass(frozen=True)
class _Split:
    """The logarithms of a group, ascending; the first `below` of them lie under the gap, none where there is none."""

    group: str
    logs: FloatArray
    below: int

    @property
    def above(self) -> FloatArray:
        return self.logs[self.below :]


def dips(values: Iterable[tuple[str, float]], *, level: float = LEVEL) -> tuple[Dips, ...]:
    """Groups with dips, among positive values by group, of which more is better; give 1 / value where less is."""
    grouped: defaultdict[str, list[float]] = defaultdict(list)
    for group, value in values:
        grouped[group].append(math.log(value))
    splits = [_split(group, np.sort(np.array(logs))) for group, logs in _large(grouped).items()]
    squares = sum(float(((one.above - one.above.mean()) ** 2).sum()) for one in splits)
    degrees = sum(len(one.above) - 1 for one in splits)
    found = (_judged(one, math.sqrt(squares / degrees), degrees) for one in splits if one.below)
    return tuple(one for one in found if one.p_value <= level / len(splits))


def _large(grouped: Mapping[str, list[float]]) -> dict[str, list[float]]:
    return {group: logs for group, logs in grouped.items() if len(logs) >= _VALUES_MIN}


def _split(group: str, logs: FloatArray) -> _Split:
    """At the largest gap that leaves fewer than half of the values below."""
    gaps = np.diff(logs)[: (len(logs) - 1) // 2]
    below = int(np.argmax(gaps)) + 1
    spread = float(logs[-1] - logs[below])
    gap = float(gaps[below - 1])
    is_dip = gap >= GAP_RATIO * spread and gap >= -math.log1p(-LOSS_MIN)
    return _Split(group, logs, below if is_dip else 0)


def _judged(one: _Split, deviation: float, degrees: int) -> Dips:
    """The upper value below the gap beside those above it, as one more value of theirs; any could have been it."""
    apart = float(one.above.mean() - one.logs[one.below - 1])
    error = deviation * math.sqrt(1 + 1 / len(one.above))
    t = apart / error if error > 0 else math.inf
    return Dips(
        group=one.group,
        dipped=one.below,
        n=len(one.logs),
        ratio=math.exp(float(one.logs[: one.below].mean() - one.above.mean())),
        p_value=min(1.0, len(one.logs) * float(stdtr(degrees, -t))),
    )
