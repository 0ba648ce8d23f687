"""Do the statistics keep what they promise? Simulated studies of which the truth is known.

    ./benchmarks/run calibration [--studies 20000] [--seed 1] [--jobs 2] [--only-advice | --only-pooled | --only-contrasts]

Each scenario is simulated for 3 and 5 repetitions, of 12 cells in an order drawn for each repetition, and
judged by the lines that judge a real study. docs/METHOD.md has what follows from its tables:
how often the 95 % interval holds the truth, how often a verdict is false or has the wrong sign, what many
comparisons do, what advice says of cells that are alike, what dips do and how often they are found, and how
large a difference must be to be found.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from dataclasses import dataclass
from functools import partial
from itertools import product
from multiprocessing.pool import Pool
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

from tests.support.studies.simulated_studies import (  # noqa: E402
    OUTSIDE_MARGIN,
    PAIRS,
    POOLED_SCENARIOS,
    SCENARIOS,
    Scenario,
    log_deviation,
    pair_differences,
    simulate,
    tally,
    tally_pooled,
    tally_together,
)
from tests.support.studies.unbalanced_designs import Planted, design_cells, planted  # noqa: E402

from bedplate.model.metrics import METRICS  # noqa: E402
from bedplate.statistics.comparison import Comparison, confidences  # noqa: E402
from bedplate.statistics.comparison import all_pairs as pairs_of  # noqa: E402
from bedplate.statistics.design import DesignCell  # noqa: E402
from bedplate.statistics.drift import dips  # noqa: E402
from bedplate.statistics.effects import (  # noqa: E402
    Effect,
    Effects,
    Interaction,
    effects,
    within_classes,
)
from bedplate.statistics.estimation import Estimate, chance_of_verdict, paired, unpaired  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from bedplate.model.levels import Scalar

REPETITIONS = (3, 5)
POOLED_REPETITIONS = (3, 5, 8, 10)
# Where a true difference is so small that nearly every verdict is chance, its sign is at its worst.
SMALL = 1.02
FAMILY = 20
POWER_REPETITIONS = (3, 4, 5, 7, 10)
POWER_SCATTER = (0.01, 0.02, 0.04, 0.1, 0.2, 0.45)


def percent(share: float) -> str:
    return f"{100 * share:.1f}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    print("| " + " | ".join(head) + " |")
    print("|" + " --- |" * len(head), flush=True)
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)
    print()


def alone(studies: int, random: np.random.Generator) -> None:
    """One comparison at a time: coverage, false verdicts, wrong directions, what is found."""
    rows = []
    for scenario in SCENARIOS:
        for repetitions in REPETITIONS:
            logs = simulate(scenario, random, studies=studies, repetitions=repetitions)
            estimate = paired(logs[..., 0], logs[..., 1])
            equal, small = tally(estimate, 0.0), tally(estimate, math.log(SMALL))
            edge, tenth = tally(estimate, math.log(OUTSIDE_MARGIN)), tally(estimate, math.log(1.1))
            half = tally(estimate, math.log(1.5))
            shares = (equal.covered, equal.false, edge.false, small.wrong_direction, tenth.wrong_direction)
            found = (equal.same, tenth.differs, half.differs)
            rows.append([scenario.name, str(repetitions), *map(percent, (*shares, *found))])
    print(f"One comparison, paired by repetition ({studies} studies each; all in %)\n")
    table(
        (
            "scenario",
            "repetitions",
            "covers",
            "false, truth 1",
            f"false, truth {OUTSIDE_MARGIN:.2f}",
            f"wrong sign, truth {SMALL}",
            "wrong sign, truth 1.1",
            "“same”, truth 1",
            "found, truth 1.1",
            "found, truth 1.5",
        ),
        rows,
    )


def between_studies(studies: int, random: np.random.Generator) -> None:
    """Cells of two studies, whose repetitions have nothing in common."""
    rows = []
    for scenario in SCENARIOS:
        for first, second in ((3, 3), (5, 5), (3, 5), (5, 3)):
            before = simulate(scenario, random, studies=studies, repetitions=first)[..., 0]
            after = simulate(scenario, random, studies=studies, repetitions=second)[..., 1]
            found = tally(unpaired(before, after), 0.0)
            rows.append(
                [scenario.name, f"{first} and {second}", percent(found.covered), percent(found.false)]
            )
    print("One comparison between two studies, without repetitions in common (all in %)\n")
    table(("scenario", "repetitions", "covers", "false, truth 1"), rows)


def against_baseline(logs: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Estimate:
    return paired(np.swapaxes(logs[..., :1], -1, -2), np.swapaxes(logs[..., 1:], -1, -2))


def all_pairs(logs: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Estimate:
    first, second = np.triu_indices(logs.shape[-1], k=1)
    cells = np.swapaxes(logs, -1, -2)
    return paired(cells[..., first, :], cells[..., second, :])


def pooled(studies: int, random: np.random.Generator) -> None:
    """One ratio over 18 matched pairs, and whether pairs are said to disagree: alike, and where half differ by 1.1."""
    rows = []
    for scenario, missing, repetitions in product(POOLED_SCENARIOS, (0.0, 0.1), POOLED_REPETITIONS):
        found = pair_differences(scenario, random, studies=studies, repetitions=repetitions, missing=missing)
        shares = ("–" if share is None else percent(share) for share in tally_pooled(found))
        rows.append([scenario.name, f"{100 * missing:g} %", str(repetitions), *shares])
    print(f"One ratio over {PAIRS} matched pairs ({studies} studies each; all in %)\n")
    table(
        (
            "scenario",
            "visits missing",
            "repetitions",
            "covers",
            "false, truth 1",
            "covers the mean, half of the pairs 1.1 more",
            "found, truth 1.08",
            "found by one pair alone",
            "“disagree”, all alike",
            "“disagree”, half 1.1 more",
        ),
        rows,
    )


def together(studies: int, random: np.random.Generator) -> None:
    """Families of comparisons: the share of false ones among the verdicts."""
    designs: tuple[tuple[str, int, Callable[..., Estimate]], ...] = (
        (f"{FAMILY} beside one baseline", FAMILY + 1, against_baseline),
        ("all pairs of 7 cells", 7, all_pairs),
    )
    rows = []
    for name, cells, estimated in designs:
        for differing, ratio in ((0, 1.0), (cells // 2, 1.3)):
            shift = np.zeros(cells)
            shift[cells - differing :] = math.log(ratio)
            truth = estimated(np.broadcast_to(shift, (1, 2, cells))).mean[0]
            # Where many are shown to be the same, that must not let differences through.
            for scenario in (SCENARIOS[0], SCENARIOS[1], Scenario("equal, 2 %", (0.02, 0.02)), SCENARIOS[7]):
                for repetitions in (*REPETITIONS, 10):
                    logs = simulate(scenario, random, studies=studies, repetitions=repetitions, cells=cells)
                    found = tally_together(estimated(logs + shift), truth)
                    shares = (
                        found.false,
                        found.told_apart,
                        1 - found.covered,
                        found.wrong_direction,
                        found.differs,
                        found.same,
                    )
                    words = f"{differing} of {cells} cells differ by 1.3" if differing else "all equal"
                    rows.append([name, words, scenario.name, str(repetitions), *map(percent, shares)])
    print(f"Many comparisons at a false discovery rate of 5 % ({studies} studies each; all in %)\n")
    table(
        (
            "family",
            "truth",
            "scenario",
            "repetitions",
            "false of the verdicts",
            "studies that tell a difference that is none",
            "intervals that miss",
            "wrong sign",
            "found",
            "called the same",
        ),
        rows,
    )


def factors(designs: int, random: np.random.Generator) -> None:
    """A design of 36 cells with one strong factor, one weak one, one without effect, and one real interaction."""
    levels = [{"a": a, "b": b, "c": c} for a, b, c in product(range(3), range(4), range(3))]
    true = _effects(levels, np.tile([_truth(cell) for cell in levels], (3, 1)))
    rows = []
    for scenario in (SCENARIOS[0], SCENARIOS[1], SCENARIOS[2], SCENARIOS[7]):
        for repetitions in REPETITIONS:
            logs = simulate(scenario, random, studies=designs, repetitions=repetitions, cells=len(levels))
            tallies = [_judged_design(levels, study, true) for study in logs]
            shares = np.mean(np.array(tallies), axis=0)
            rows.append([scenario.name, str(repetitions), *map(percent, shares)])
    print(f"Effects of three factors in 36 cells ({designs} designs each; all in %)\n")
    table(
        (
            "scenario",
            "repetitions",
            "false ratios of those found",
            "ratios of 1.3 found",
            "ratios of 1.05 found",
            "false interactions of those found",
            "interactions of 1.5 found",
            "shares covered",
        ),
        rows,
    )


def unbalanced(designs: int, random: np.random.Generator) -> None:
    """Designs that are not complete: what is planted within a durability class must come back."""
    rows = []
    for found in planted():
        for scenario in (SCENARIOS[0], SCENARIOS[1], SCENARIOS[7]):
            for repetitions in REPETITIONS:
                logs = simulate(
                    scenario, random, studies=designs, repetitions=repetitions, cells=len(found.cells)
                )
                tallies = [_judged_unbalanced(found, study) for study in logs]
                rows.append(
                    [found.name, scenario.name, str(repetitions), *map(percent, np.mean(tallies, axis=0))]
                )
    print(f"Effects in designs that are not complete ({designs} designs each; all in %)\n")
    table(
        ("design", "scenario", "repetitions", "false of those found", "wrong sign of those found", "found"),
        rows,
    )


@dataclass(frozen=True)
class Gaps:
    """What a study has that nobody planned; `reversed_at` turns the order of two file systems round at one block size."""

    name: str
    missing_cells: bool = False
    lost_visits: bool = False
    two_runs: bool = False
    nested: bool = False
    scatter: tuple[float, ...] = (0.04,)
    drift: float = 0.0
    reversed_at: bool = False


GAPS = (
    Gaps("complete"),
    Gaps("cells missing", missing_cells=True),
    Gaps("visits lost", lost_visits=True),
    Gaps("two runs left of one cell", two_runs=True),
    Gaps("a factor of one type alone", nested=True),
    Gaps("4 % beside 45 %", scatter=(0.04, 0.45)),
    Gaps("15 % slower from start to end", drift=0.15),
    Gaps("order reversed at one block size", reversed_at=True),
    Gaps("cells missing, visits lost, 4 % beside 45 %", True, True, scatter=(0.04, 0.45)),
    Gaps("a factor of one type, visits lost, 15 % slower", lost_visits=True, nested=True, drift=0.15),
    Gaps("order reversed, cells missing, 4 % beside 45 %", True, scatter=(0.04, 0.45), reversed_at=True),
    Gaps("all of these", True, True, True, True, (0.04, 0.45), 0.15, True),
)


def contrasts(studies: int, seed: int, jobs: int) -> None:
    """What one contrast of two levels keeps, in studies with gaps of every kind; half of the studies have nothing to find."""
    print(f"Ratios of two levels in studies with gaps ({studies} studies each; all in %)\n")
    head = (
        "study",
        "repetitions",
        "covers",
        "confidence",
        "wrong sign",
        "factors without effect that are said to have one",
        "differences found",
    )
    with Pool(jobs) as pool:
        numbers = range(len(GAPS) * len(POOLED_REPETITIONS))
        table(head, pool.imap(partial(_contrasts_row, studies, seed), numbers))


def _contrasts_row(studies: int, seed: int, number: int) -> list[str]:
    """A row of the table, with random numbers of its own, so that it is the same however many run at once."""
    gaps, repetitions = list(product(GAPS, POOLED_REPETITIONS))[number]
    random = np.random.default_rng([seed, 4, number])
    counts = np.sum(
        [_contrasts_of(gaps, random, repetitions, alike=at % 2 == 0) for at in range(studies)], axis=0
    )
    covered, promised, judged, wrong, speaking, empty, telling, true = counts
    shares = (covered / judged, promised / judged, wrong / true, speaking / empty, telling / true)
    return [gaps.name, str(repetitions), *map(percent, shares)]


def _contrasts_of(gaps: Gaps, random: np.random.Generator, repetitions: int, *, alike: bool) -> list[float]:
    """Counts of one study, for the columns of the table.

    Ratios covered, the sum of their confidences, and their number; wrong signs; factors without effect that are said to have
    one, and all such factors; differences found, and all that there are.
    """
    cells, truth = _with_gaps(gaps, random, repetitions, alike=alike)
    true = {
        (part.within, each.factor, each.level, each.baseline): math.log(each.ratio)
        for part in effects(truth)
        for each in part.effects
    }
    found: list[tuple[tuple[object, str], float, Comparison]] = []
    for part in effects(cells):
        for each in part.effects:
            if each.judged.low is not None and each.judged.high is not None:
                known = true[part.within, each.factor, each.level, each.baseline]
                found.append(((part.within, each.factor), known, each.judged))
    families: dict[tuple[object, str], list[tuple[float, Comparison]]] = {}
    for family, known, judged in found:
        families.setdefault(family, []).append((known, judged))
    empty = [own for own in families.values() if all(abs(known) < 1e-9 for known, _ in own)]
    different = [(known, judged) for _, known, judged in found if abs(known) > 1e-9]
    return [
        sum(
            math.log(judged.low or 1e-300) <= known + 1e-12
            and known - 1e-12 <= math.log(judged.high or 1e300)
            for _, known, judged in found
        ),
        sum(judged.confidence or 0.0 for *_, judged in found),
        len(found),
        sum(
            judged.is_told_apart and math.log(judged.estimate or math.nan) * known < 0
            for known, judged in different
        ),
        sum(any(judged.is_told_apart for _, judged in own) for own in empty),
        len(empty),
        sum(judged.is_told_apart for _, judged in different),
        len(different),
    ]


def _with_gaps(
    gaps: Gaps, random: np.random.Generator, repetitions: int, *, alike: bool
) -> tuple[list[DesignCell], list[DesignCell]]:
    """A study's cells, and the same without scatter."""
    kinds, blocks = ("ext4", "xfs", "btrfs"), (2048, 8192, 32768)
    levels: list[dict[str, Scalar]] = [
        {"filesystem.type": kind, "block": block, **data}
        for kind, block in product(kinds, blocks)
        for data in (({"data": "ordered"}, {"data": "journal"}) if gaps.nested and kind == "ext4" else ({},))
    ]
    if gaps.missing_cells:
        gone = {int(at) for at in random.choice(len(levels), 2, replace=False)}
        levels = [own for at, own in enumerate(levels) if at not in gone]
    speeds = {kind: 0.0 if alike else float(random.normal(0, 0.1)) for kind in kinds}
    lost = random.random((len(levels), repetitions)) < (0.1 if gaps.lost_visits else 0.0)
    if gaps.two_runs:
        lost[int(random.integers(len(levels))), 2:] = True
    cells, truth = [], []
    for at, own in enumerate(levels):
        speed = speeds[str(own["filesystem.type"])]
        if gaps.reversed_at and not alike and own["block"] == blocks[-1]:
            speed = -speed
        scatter = log_deviation(gaps.scatter[at % len(gaps.scatter)])
        passed = (np.arange(repetitions) + random.random(repetitions)) / repetitions
        logs = speed + random.standard_normal(repetitions) * scatter + math.log1p(-gaps.drift) * passed
        kept = [r for r in range(repetitions) if not lost[at, r]]
        usual = frozenset({"data"}) if own.get("data") == "ordered" else frozenset[str]()
        cells.append(DesignCell(own, {r: math.exp(logs[r]) for r in kept}, usual, str(at)))
        truth.append(DesignCell(own, {r: math.exp(speed) for r in kept}, usual, str(at)))
    return cells, truth


def _judged_unbalanced(
    found: Planted, logs: np.ndarray[tuple[int, ...], np.dtype[np.float64]]
) -> tuple[float, float, float]:
    """Of the ratios that are found the shares that miss the planted one and that have the wrong sign; the share found."""
    repetitions, cells = logs.shape
    by_run = {(at, r + 1): float(logs[r, at]) for r in range(repetitions) for at in range(cells)}
    parts, _ = within_classes(design_cells(found, by_run, repetitions=repetitions))
    pairs = [
        (each.judged, known[0])
        for part in parts
        for each in part.effects
        if (known := found.ratios.get((each.factor, each.level, each.baseline))) is not None
    ]
    told = [(judged, ratio) for judged, ratio in pairs if judged.is_told_apart]
    missed = sum(not (one.low or 0) <= ratio <= (one.high or math.inf) for one, ratio in told)
    turned = sum(math.log(one.estimate or math.nan) * math.log(ratio) < 0 for one, ratio in told)
    count = max(len(told), 1)
    return missed / count, turned / count, len(told) / max(len(pairs), 1)


def _truth(levels: Mapping[str, int]) -> float:
    """The logarithm of a cell: `a` is a factor of 1.3 per level, `b` one of 1.05, and 1.5 where both are 0."""
    both = math.log(1.5) if levels["a"] == levels["b"] == 0 else 0.0
    return math.log(1.3) * levels["a"] + math.log(1.05) * levels["b"] + both


def _judged_design(
    levels: Sequence[dict[str, int]],
    logs: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    true: Effects,
) -> tuple[float, ...]:
    found = _effects(levels, logs + [_truth(cell) for cell in levels])
    ratios = list(zip(found.effects, true.effects, strict=True))
    pairs = list(zip(found.interactions, true.interactions, strict=True))
    shares = {share.factors: share.share for share in true.variation.shares} if true.variation else {}
    divided = found.variation.shares if found.variation else ()
    # Where nothing is divided, no bound is wrong.
    covered = [(s.low or 0) - 1e-9 <= shares[s.factors] <= (s.high or 1) + 1e-9 for s in divided] or [True]
    return (
        _false_share(ratios),
        _told([pair for pair in ratios if pair[0].factor == "a"]),
        _told([pair for pair in ratios if pair[0].factor == "b" and _one_apart(pair[0])]),
        _false_share(pairs),
        _told([pair for pair in pairs if abs(math.log(pair[1].ratio)) > 0.1]),
        float(np.mean(covered)),
    )


def _effects(
    levels: Sequence[dict[str, int]], logs: np.ndarray[tuple[int, ...], np.dtype[np.float64]]
) -> Effects:
    (found,) = effects(
        DesignCell(cell, {r: math.exp(value) for r, value in enumerate(logs[:, at])})
        for at, cell in enumerate(levels)
    )
    return found


def _one_apart(effect: Effect) -> bool:
    return int(effect.level) - int(effect.baseline) == 1


def _false_share(pairs: Sequence[tuple[Effect, Effect]] | Sequence[tuple[Interaction, Interaction]]) -> float:
    """Of those that are found, the share whose interval misses the truth."""
    told = [(one.judged, true.ratio) for one, true in pairs if one.judged.is_told_apart]
    missed = sum(not (one.low or 0) <= true <= (one.high or math.inf) for one, true in told)
    return missed / max(len(told), 1)


def _told(pairs: Sequence[tuple[Effect, Effect]] | Sequence[tuple[Interaction, Interaction]]) -> float:
    return sum(one.judged.is_told_apart for one, _ in pairs) / max(len(pairs), 1)


ADVISED_CELLS = 10
# How much the figures of advice scatter: speed, the 99th percentile, steadiness.
ADVISED = ("tps", "latency_ms_p99", "tps_cv")
ADVISED_SCATTER = (0.04, 0.1, 0.2)


def advice(studies: int, random: np.random.Generator) -> None:
    """Ten cells in four figures, of which space does not scatter: what is told where nothing, or little, differs."""
    cases: tuple[tuple[str, Scenario, float, float], ...] = (
        ("nothing differs", SCENARIOS[0], 1.0, 1.0),
        ("nothing differs, heavy tails (t3)", SCENARIOS[2], 1.0, 1.0),
        ("nothing differs, 4 % beside 45 %", SCENARIOS[1], 1.0, 1.0),
        ("only space differs", SCENARIOS[0], 1.0, 1.1),
        ("5 of 10 differ by 1.3 in speed", SCENARIOS[0], 1.3, 1.0),
    )
    rows = []
    for name, scenario, speed, space in cases:
        for repetitions in (*REPETITIONS, 10):
            told = [_advised(scenario, repetitions, random, speed=speed, space=space) for _ in range(studies)]
            rows.append([name, str(repetitions), *map(percent, np.mean(np.array(told), axis=0))])
    print(f"Advice on {ADVISED_CELLS} cells ({studies} studies each; all in %)\n")
    table(
        (
            "truth",
            "repetitions",
            "studies with a cell behind or ruled out",
            "false of the differences found",
            "pairs told apart in speed",
            "pairs called the same in speed",
        ),
        rows,
    )


def _advised(
    scenario: Scenario, repetitions: int, random: np.random.Generator, *, speed: float, space: float
) -> tuple[float, ...]:
    comparable = np.ones(ADVISED_CELLS * (ADVISED_CELLS - 1) // 2, dtype=np.bool_)
    shift = np.repeat([0.0, math.log(speed)], ADVISED_CELLS // 2)
    figures, shifts = [], []
    for name, scatter in zip(ADVISED, ADVISED_SCATTER, strict=True):
        own = simulate(scenario, random, studies=1, repetitions=repetitions, cells=ADVISED_CELLS)[0].T
        shifts.append(shift if name == "tps" else np.zeros(ADVISED_CELLS))
        logs = own * scatter / ADVISED_SCATTER[0] + shifts[-1][:, None]
        figures.append(pairs_of(np.exp(logs), METRICS[name], comparable=comparable))
    sizes = np.repeat([[1.0], [space]], ADVISED_CELLS // 2, axis=0) * np.ones(repetitions)
    figures.append(pairs_of(sizes, METRICS["database_mib"], comparable=comparable))
    told = [pairs.verdicts(own) for pairs, own in zip(figures, confidences(figures), strict=True)]
    better, same = (np.array(each) for each in zip(*told, strict=True))
    false = [larger & (true[:, None] <= true) for larger, true in zip(better, shifts, strict=False)]
    return (
        bool(better[0].any()),
        float(np.sum(false)) / max(int(np.sum(better[: len(shifts)])), 1),
        float(better[0].sum()) / len(comparable),
        float(same[0].sum()) / 2 / len(comparable),
    )


DIP = 0.5
DIP_SHARE = 0.1


def one_sided_dips(studies: int, random: np.random.Generator) -> None:
    """One cell loses half of its speed in a tenth of its runs: what its interval is worth, and whether that is found."""
    rows = []
    truth = DIP_SHARE * math.log(DIP)
    for name, cells, deviations in (
        ("2 cells, 4 %", 2, (0.04, 0.04)),
        ("12 cells, 4 %", 12, (0.04, 0.04)),
        ("2 cells, 4 % beside 45 % without dips", 2, (0.04, 0.45)),
        ("12 cells, 10 %", 12, (0.1, 0.1)),
    ):
        for repetitions in (*REPETITIONS, 10):
            logs = simulate(
                Scenario("", deviations), random, studies=studies, repetitions=repetitions, cells=cells
            )
            quiet = np.mean([bool(_dipping(study)) for study in logs])
            dipped = random.random((studies, repetitions)) < DIP_SHARE
            logs[..., 0] += dipped * math.log(DIP)
            low, high = paired(logs[..., 1], logs[..., 0]).interval(0.95)
            found = np.array([_dipping(study) for study in logs], dtype=object)
            right = np.array(["0" in names for names in found])
            happened = dipped.any(axis=-1)
            shares = (
                np.mean((low <= truth) & (truth <= high)),
                np.mean(happened),
                np.mean(right[happened]),
                np.mean(right),
                quiet,
            )
            rows.append([name, str(repetitions), *map(percent, shares)])
    print(f"One cell loses half of its speed in a tenth of its runs ({studies} studies each; all in %)\n")
    table(
        (
            "scenario",
            "repetitions",
            "interval covers",
            "a run dipped",
            "found where one dipped",
            "found in all",
            "found without dips",
        ),
        rows,
    )


def _dipping(study: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> tuple[str, ...]:
    values = ((str(cell), float(value)) for cell, runs in enumerate(np.exp(study).T) for value in runs)
    return tuple(one.group for one in dips(values))


def smallest_found(scatter: float, repetitions: int, confidence: float) -> float:
    """The ratio that is found with a chance of 80 %, by bisection."""
    deviation = math.sqrt(2) * log_deviation(scatter)
    low, high = 0.0, 40.0
    for _ in range(50):
        middle = (low + high) / 2
        chance = chance_of_verdict(
            middle, deviation, np.array([float(repetitions)]), confidence=confidence, margin=0.0
        )
        low, high = (low, middle) if chance[0] >= 0.8 else (middle, high)
    return math.exp(high)


def power() -> None:
    """How large a difference is found, by scatter and repetitions."""
    print("The smallest ratio that is found four times in five: alone / as the only one of 20\n")
    rows = []
    for scatter in POWER_SCATTER:
        found = []
        for repetitions in POWER_REPETITIONS:
            ratios = [smallest_found(scatter, repetitions, 1 - 0.05 / size) for size in (1, FAMILY)]
            found.append(" / ".join(f"{ratio:.2f}" if ratio < 10 else "> 10" for ratio in ratios))
        rows.append([f"{100 * scatter:g} %", *found])
    table(("scatter of a run", *(f"{n} repetitions" for n in POWER_REPETITIONS)), rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--studies", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="rows of studies with gaps at once"
    )
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--only-advice", action="store_true", help="only the tables of advice and of dips")
    only.add_argument("--only-pooled", action="store_true", help="only the table of pooled pairs")
    only.add_argument("--only-contrasts", action="store_true", help="only ratios in studies with gaps")
    asked = parser.parse_args()
    random = np.random.default_rng(asked.seed)
    started = time.perf_counter()
    if asked.only_contrasts:
        contrasts(asked.studies, asked.seed, asked.jobs)
        return
    if not (asked.only_advice or asked.only_pooled):
        alone(asked.studies, random)
        between_studies(asked.studies, random)
        # Numbers of its own, so that it may be run alone.
        together(asked.studies, np.random.default_rng([asked.seed, 2]))
        factors(max(asked.studies // 40, 1), random)
        unbalanced(max(asked.studies // 40, 1), random)
        contrasts(max(asked.studies // 40, 1), asked.seed, asked.jobs)
        power()
    # Numbers of their own, so that they are the same with the other tables and without.
    if not asked.only_advice:
        pooled(asked.studies, np.random.default_rng([asked.seed, 3]))
    if asked.only_pooled:
        return
    advice(max(asked.studies // 20, 1), np.random.default_rng(asked.seed))
    one_sided_dips(max(asked.studies // 5, 1), np.random.default_rng(asked.seed))
    print(f"{time.perf_counter() - started:.0f} s, seed {asked.seed}, numpy {np.__version__}")


if __name__ == "__main__":
    main()
