"""Plans with a known truth, their runs, and what a search and other designs find of the best cell.

All figures are made of logarithms; more is better. A design asks for runs one by one, so drift meets each of them when it comes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from tests.support.studies.simulated_studies import log_deviation

from bedplate.model.figure import Better, Metric, Scale
from bedplate.statistics.comparison import CONFIDENCE
from bedplate.statistics.estimation import REPETITIONS_MIN, of_differences
from bedplate.statistics.false_discovery import joint_confidence
from bedplate.statistics.search import (
    Ending,
    NextBlock,
    SearchEnd,
    SearchQuestion,
    SearchSpace,
    Tried,
    following,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from bedplate.model.levels import Scalar
    from bedplate.statistics.estimation import FloatArray

SPEED = Metric("tps", "1/s", Scale.RATIO, Better.HIGHER, "simulated")
LATENCY = Metric("latency_ms_p99", "ms", Scale.RATIO, Better.LOWER, "simulated")
# What the named cell may be worse than the baseline in it.
NOT_WORSE = 0.1
MARGIN = 0.05
REPETITIONS = 5
# A run of a factorial that cannot be believed is repeated so often at most.
ATTEMPTS = 5
# A search's machine slows down over this share of the factorial's visits, which is what a search may take.
SEARCH_SHARE = 0.25


@cache
def small_space() -> SearchSpace:
    """36 cells of four factors, 3 x 2 x 2 x 3, that take a second each."""
    levels = tuple(
        {"a": a, "b": b, "c": c, "d": d} for a, b, c, d in product(range(3), range(2), range(2), range(3))
    )
    return SearchSpace(levels, (1.0,) * len(levels))


@cache
def nested_space() -> SearchSpace:
    """The 360 cells of plans/vondra-2011-oltp.toml, with factors that some file systems have alone."""
    sizes = ("1 kB", "2 kB", "4 kB")
    switch = (True, False)
    own: list[dict[str, Scalar]] = [{"type": "ext2", "block_size": size} for size in sizes]
    own += [
        {"type": kind, "data": data, "barrier": barrier, "block_size": size}
        for kind, data, barrier, size in product(
            ("ext3", "ext4"), ("ordered", "writeback", "journal"), switch, sizes
        )
    ]
    own += [
        {"type": "xfs", "barrier": barrier, "block_size": size}
        for barrier, size in product(switch, ("512 B", *sizes))
    ]
    own += [{"type": "jfs"}]
    own += [{"type": "reiserfs", "barrier": barrier} for barrier in switch]
    own += [
        {"type": "btrfs", "nodatacow": cow, "barrier": barrier} for cow, barrier in product(switch, switch)
    ]
    own += [
        {"type": "nilfs2", "barrier": barrier, "block_size": size} for barrier, size in product(switch, sizes)
    ]
    levels: list[Mapping[str, Scalar]] = [
        {**each, "database": f"{size} kB"} for each, size in product(own, (1, 2, 4, 8, 16, 32))
    ]
    # A slow file system is loaded more slowly.
    seconds = tuple(1.5 if each["type"] in {"nilfs2", "btrfs"} else 1.0 for each in levels)
    return SearchSpace(tuple(levels), seconds)


@dataclass(frozen=True)
class SearchScenario:
    """How true cells differ and runs scatter. `effects` are deviations of levels, of pairs and of cells in logarithms.

    `scatter` is that of even and odd cells; `between` that of blocks and repetitions. `trend` is the speed at a design's end beside
    its start, `step` that after its half. `suspect` is the share of runs that cannot be believed. `budget` is a search's, in
    repetitions of all cells.

    `bound` has effects and scatter of a second figure that the named cell may be at most `NOT_WORSE` worse than cell 0 in; `at_bound`
    puts all other cells' around just that.
    """

    name: str
    effects: tuple[float, float, float] = (0.3, 0.05, 0.01)
    scatter: tuple[float, float] = (0.04, 0.04)
    between: float = 0.02
    trend: float = 1.0
    step: float = 1.0
    suspect: float = 0.0
    space: Callable[[], SearchSpace] = small_space
    budget: float = 2.5
    bound: tuple[tuple[float, float, float], float] | None = None
    at_bound: bool = False


SEARCHED = (
    SearchScenario("strong main effects"),
    SearchScenario("strong interactions", (0.15, 0.15, 0.05)),
    SearchScenario("nearly flat", (0.0, 0.0, 0.01)),
    SearchScenario("4 % beside 45 %", scatter=(0.04, 0.45)),
    SearchScenario("20 % slower from start to end", trend=0.8),
    SearchScenario("20 % slower after half", step=0.8),
    SearchScenario("20 % of runs suspect", suspect=0.2),
    SearchScenario("360 cells, nested factors", (0.3, 0.08, 0.03), space=nested_space),
)


# Searches for the best cell that is not worse than the first one in another figure.
BOUNDED = (
    SearchScenario("latency with effects of its own", bound=((0.2, 0.05, 0.01), 0.04)),
    SearchScenario("the same, latency scatters by 15 %", bound=((0.2, 0.05, 0.01), 0.15)),
    SearchScenario(
        "every latency within some per cent of the bound", bound=((0.0, 0.0, 0.04), 0.04), at_bound=True
    ),
    SearchScenario("the same, latency scatters by 15 %", bound=((0.0, 0.0, 0.04), 0.15), at_bound=True),
)


class SimulatedMachine:
    """Runs of one study, design after design on the same truth."""

    def __init__(self, scenario: SearchScenario, random: np.random.Generator) -> None:
        self.scenario, self.space, self.random = scenario, scenario.space(), random
        self.truth = self._drawn(scenario.effects)
        self.deviation = np.resize([log_deviation(each) for each in scenario.scatter], len(self.truth))
        # By how much each cell keeps the bound, in logarithms; below 0 it violates it.
        self.kept: FloatArray | None = None
        if scenario.bound is not None:
            other = self._drawn(scenario.bound[0])
            self.kept = other - other[0] + math.log1p(NOT_WORSE)
            if scenario.at_bound:
                self.kept[1:] = other[1:]
        self.restarted(1.0)

    def _drawn(self, effects: tuple[float, float, float]) -> FloatArray:
        (main, pair, cell), space, random = effects, self.space, self.random
        drawn: FloatArray = (
            main * space.mains @ random.standard_normal(space.mains.shape[1])
            + pair * space.pairs @ random.standard_normal(space.pairs.shape[1])
            + cell * random.standard_normal(len(space.levels))
        )
        return drawn

    def restarted(self, length: float) -> None:
        """For another design, over whose `length` in visits the machine slows down."""
        self.length, self.visits, self.seconds = length, 0, 0.0
        self.blocks: dict[int, float] = {}

    def run(self, cell: int, block: int) -> float | None:
        """One visit: its logarithm, None where it is suspect."""
        scenario, passed = self.scenario, min(self.visits / self.length, 1.0)
        self.visits += 1
        self.seconds += self.space.seconds[cell]
        own = self.blocks.setdefault(block, float(self.random.normal(0, scenario.between)))
        value = float(self.truth[cell] + own + self.random.normal(0, self.deviation[cell]))
        value += math.log(scenario.trend) * passed + (math.log(scenario.step) if passed > 0.5 else 0.0)
        return None if self.random.random() < scenario.suspect else value

    def believed(self, cell: int, block: int) -> float:
        """The same, repeated until it can be believed; NaN where it never could."""
        found = (self.run(cell, block) for _ in range(ATTEMPTS))
        return next((value for value in found if value is not None), math.nan)

    def others(self, cell: int) -> tuple[float, ...]:
        """The second figure of the visit, a latency; none where there is no bound."""
        if self.kept is None or self.scenario.bound is None:
            return ()
        deviation = log_deviation(self.scenario.bound[1])
        return (math.exp(-float(self.kept[cell] + self.random.normal(0, deviation))),)

    def violates(self, cell: int) -> bool:
        """Whether a cell is truly worse in the second figure than was asked."""
        return self.kept is not None and bool(self.kept[cell] < 0)

    def is_near_best(self, cell: int) -> bool:
        """Whether a cell is truly within the margin of the best, among those that keep the bound."""
        best = np.max(self.truth if self.kept is None else self.truth[self.kept >= 0])
        return not self.violates(cell) and bool(self.truth[cell] >= best - math.log1p(MARGIN))


@dataclass(frozen=True)
class DesignFound:
    """What one design said of one study. `cost` is its time over that of five repetitions of all cells.

    `is_near`: the cell it names first is truly within the margin of the best; `is_in`: one that it names is. Of its `told`
    differences `wrong` have the wrong sign. `ending` is None where a design gives no verdicts. Of the cells that it `names` so many
    `violate` the bound, and `unmarked` of those are not said to be in doubt. `first_violates` says
    whether the first does.
    """

    cost: float
    ending: Ending | None
    is_near: bool
    is_in: bool
    told: int = 0
    wrong: int = 0
    refuted: int = 0
    names: int = 1
    violate: int = 0
    unmarked: int = 0
    first_violates: bool = False


def searched(machine: SimulatedMachine, seed: int) -> DesignFound:
    """A search and its proof, beside cell 0 as the plan's baseline."""
    space = machine.space
    machine.restarted(SEARCH_SHARE * REPETITIONS * len(space.levels))
    question = SearchQuestion(
        SPEED,
        machine.scenario.budget * sum(space.seconds),
        seed,
        baseline=0,
        not_worse=() if machine.kept is None else ((LATENCY, NOT_WORSE),),
    )
    tried: list[Tried] = []
    while not isinstance(after := following(space, question, tried), SearchEnd):
        for block in after:
            tried += visited(machine, block)
    comparisons = list(after.proof.rivals.items()) if after.proof else []
    signs = [
        (np.sign(math.log(each.estimate)), np.sign(machine.truth[cell] - machine.truth[after.proof.leader]))
        for cell, each in comparisons
        if after.proof and each.differs and each.estimate
    ]
    violate = [cell for cell in after.cells if machine.violates(cell)]
    doubtful = after.proof.doubtful if after.proof else ()
    return DesignFound(
        machine.seconds / (REPETITIONS * sum(space.seconds)),
        after.ending,
        machine.is_near_best(after.cells[0]),
        any(machine.is_near_best(cell) for cell in after.cells),
        len(signs),
        sum(found * true < 0 for found, true in signs),
        len(after.refuted),
        len(after.cells),
        len(violate),
        len(set(violate) - set(doubtful)),
        machine.violates(after.cells[0]),
    )


def visited(machine: SimulatedMachine, block: NextBlock) -> list[Tried]:
    """The visits of a block, as a study would record them."""
    found = []
    for cell in block.cells:
        value = machine.run(cell, block.block)
        figure = None if value is None else math.exp(value)
        found.append(
            Tried(
                block.block,
                cell,
                figure,
                machine.space.seconds[cell],
                block.proof,
                leads=cell == block.leader,
                others=machine.others(cell),
            )
        )
    return found


def factorial(machine: SimulatedMachine, repetitions: int) -> DesignFound:
    """All cells in as many repetitions; the best mean beside every other one."""
    cells = len(machine.space.levels)
    machine.restarted(repetitions * cells)
    return _judged(machine, np.array([_repetition(machine, range(cells), r) for r in range(repetitions)]))


def raced(machine: SimulatedMachine) -> DesignFound:
    """Cells are dropped once they are shown worse than the best mean (Student's t per pair), from three repetitions on."""
    cells = len(machine.space.levels)
    machine.restarted(REPETITIONS * cells)
    logs = np.full((REPETITIONS, cells), np.nan)
    left = np.arange(cells)
    for repetition in range(REPETITIONS):
        logs[repetition] = _repetition(machine, left, repetition)
        if repetition + 1 >= REPETITIONS_MIN:
            so_far = logs[: repetition + 1]
            best = left[np.nanargmax(so_far[:, left].mean(axis=0))]
            high = of_differences((so_far[:, left] - so_far[:, [best]]).T).interval(CONFIDENCE)[1]
            left = left[(left == best) | ~(high < 0)]
        if len(left) == 1:
            break
    return _judged(machine, logs[: repetition + 1])


def _repetition(
    machine: SimulatedMachine,
    cells: Sequence[int] | np.ndarray[tuple[int, ...], np.dtype[np.intp]],
    repetition: int,
) -> FloatArray:
    found = np.full(len(machine.space.levels), np.nan)
    for cell in machine.random.permutation(np.asarray(cells)):
        found[cell] = machine.believed(int(cell), repetition)
    return found


def _judged(machine: SimulatedMachine, logs: FloatArray) -> DesignFound:
    """Of the cells with every repetition the best mean, and which others may be better by more than the margin."""
    whole = np.flatnonzero(np.isfinite(logs).all(axis=0))
    best = int(whole[np.argmax(logs[:, whole].mean(axis=0))])
    cost = machine.seconds / (REPETITIONS * sum(machine.space.seconds))
    near = machine.is_near_best(best)
    if len(logs) < REPETITIONS_MIN:
        return DesignFound(cost, None, near, near)
    others = whole[whole != best]
    estimate = of_differences((logs[:, others] - logs[:, [best]]).T)
    high = estimate.interval(CONFIDENCE)[1]
    rivals = others[high > math.log1p(MARGIN)]
    is_in = near or any(machine.is_near_best(int(each)) for each in rivals)
    low, high = estimate.interval(
        float(joint_confidence(estimate.p_difference())) if len(others) else CONFIDENCE
    )
    told = (low > 0) | (high < 0)
    wrong = told & (estimate.mean * (machine.truth[others] - machine.truth[best]) < 0)
    ending = Ending.ONE_OF if len(rivals) else Ending.THIS
    return DesignFound(cost, ending, near, is_in, int(told.sum()), int(wrong.sum()))
