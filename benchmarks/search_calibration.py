"""Whether a search finds the best cell, for what share of the time, and is right when it says so.

    ./benchmarks/run search_calibration [--studies 1000] [--seed 1] [--jobs 2] [--only 1,8]

Simulated studies of which the truth is known, in eight scenarios. Each is searched and proved by the lines that do so in a
real one; beside it the same cells by five and by two repetitions of the factorial, and by racing.
docs/METHOD.md has a part of its table. Costs are times over those of five repetitions.

Scenarios from 9 on are searches with `--not-worse latency_ms_p99:10%`, of which a table of its own says how often a cell is named that
is truly worse than that.
"""

from __future__ import annotations

import os

# The matrices are small: one thread each, and as many studies at once as there are jobs. Before numpy is loaded.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import argparse  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from functools import partial  # noqa: E402
from multiprocessing.pool import Pool  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import TYPE_CHECKING  # noqa: E402

import numpy as np  # noqa: E402

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

from tests.support.studies.simulated_searches import (  # noqa: E402
    BOUNDED,
    REPETITIONS,
    SEARCHED,
    DesignFound,
    SimulatedMachine,
    factorial,
    raced,
    searched,
)

from bedplate.statistics.search import Ending  # noqa: E402
from machine import print_machine  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

BOUNDED_HEAD = (
    "scenario",
    "cells that violate",
    "cost, median (p90)",
    "“this one”",
    "of those within 5 %",
    "of those it violates",
    "“one of these”",
    "of those the first violates",
    "named there that violate (not marked)",
    "“not known”",
    "of those the guess violates",
    "a leader refuted",
)
DESIGNS = ("search and proof", "5 repetitions", "2 repetitions", "racing")
HEAD = (
    "scenario",
    "design",
    "cost, median (p90)",
    "named first within 5 %",
    "“this one”",
    "of those within 5 %",
    "“one of these”",
    "of those one within 5 %",
    "“not known”",
    "wrong sign, of differences told / of studies",
    "a leader refuted",
)


def one_study(number: int, seed: int, study: int) -> tuple[DesignFound, ...]:
    """All designs on one truth, in the order of `DESIGNS`."""
    random = np.random.default_rng([seed, number, study])
    machine = SimulatedMachine(SEARCHED[number], random)
    return (
        searched(machine, study),
        factorial(machine, REPETITIONS),
        factorial(machine, 2),
        raced(machine),
    )


def percent(values: Sequence[bool]) -> str:
    return f"{100 * float(np.mean(values)):.1f}" if len(values) else "–"


def row(found: Sequence[DesignFound]) -> list[str]:
    costs = [each.cost for each in found]
    told, wrong = sum(each.told for each in found), sum(each.wrong for each in found)
    if found[0].ending is None:
        endings = ["–"] * 6
    else:
        these = [each for each in found if each.ending is Ending.THIS]
        several = [each for each in found if each.ending is Ending.ONE_OF]
        endings = [
            percent([each.ending is Ending.THIS for each in found]),
            percent([each.is_near for each in these]),
            percent([each.ending is Ending.ONE_OF for each in found]),
            percent([each.is_in for each in several]),
            percent([each.ending is Ending.NOT_KNOWN for each in found]),
            f"{100 * wrong / told:.2f} / {percent([each.wrong > 0 for each in found])}" if told else "–",
        ]
    cost = f"{np.median(costs):.2f} ({np.quantile(costs, 0.9):.2f})"
    return [cost, percent([each.is_near for each in found]), *endings]


def one_bounded(number: int, seed: int, study: int) -> tuple[float, DesignFound]:
    """The share of cells that violate the bound, and what the search came to."""
    random = np.random.default_rng([seed, len(SEARCHED) + number, study])
    machine = SimulatedMachine(BOUNDED[number], random)
    cells = range(len(machine.truth))
    return float(np.mean([machine.violates(cell) for cell in cells])), searched(machine, study)


def bounded_row(found: Sequence[DesignFound]) -> list[str]:
    costs = [each.cost for each in found]
    these = [each for each in found if each.ending is Ending.THIS]
    several = [each for each in found if each.ending is Ending.ONE_OF]
    unknown = [each for each in found if each.ending is Ending.NOT_KNOWN]
    named = sum(each.names for each in several)

    def share(counts: Iterable[int]) -> str:
        return f"{100 * sum(counts) / named:.1f}"

    return [
        f"{np.median(costs):.2f} ({np.quantile(costs, 0.9):.2f})",
        percent([each.ending is Ending.THIS for each in found]),
        percent([each.is_near for each in these]),
        percent([each.first_violates for each in these]),
        percent([each.ending is Ending.ONE_OF for each in found]),
        percent([each.first_violates for each in several]),
        f"{share(each.violate for each in several)} ({share(each.unmarked for each in several)})"
        if named
        else "–",
        percent([each.ending is Ending.NOT_KNOWN for each in found]),
        percent([each.first_violates for each in unknown]),
        percent([each.refuted > 0 for each in found]),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", default="", help="numbers of scenarios, from 1 on")
    asked = parser.parse_args()
    every = range(len(SEARCHED) + len(BOUNDED))
    numbers = [int(each) - 1 for each in asked.only.split(",")] if asked.only else every
    print_machine()
    print(f"{asked.studies} studies each, seed {asked.seed}, numpy {np.__version__}; shares in %\n")
    started = time.perf_counter()
    with Pool(asked.jobs) as pool:
        print_designs(pool, asked, [each for each in numbers if each < len(SEARCHED)])
        print_bounded(pool, asked, [each - len(SEARCHED) for each in numbers if each >= len(SEARCHED)])
    print(f"\n{time.perf_counter() - started:.0f} s")


def print_head(head: Sequence[str]) -> None:
    print("| " + " | ".join(head) + " |\n|" + " --- |" * len(head))


def print_designs(pool: Pool, asked: argparse.Namespace, numbers: Sequence[int]) -> None:
    if numbers:
        print_head(HEAD)
    for number in numbers:
        studies = pool.map(partial(one_study, number, asked.seed), range(asked.studies), chunksize=1)
        for name, found in zip(DESIGNS, zip(*studies, strict=True), strict=True):
            refuted = percent([each.refuted > 0 for each in found]) if name == DESIGNS[0] else "–"
            print("| " + " | ".join([SEARCHED[number].name, name, *row(found), refuted]) + " |", flush=True)


def print_bounded(pool: Pool, asked: argparse.Namespace, numbers: Sequence[int]) -> None:
    if numbers:
        print_head(BOUNDED_HEAD)
    for number in numbers:
        studies = pool.map(partial(one_bounded, number, asked.seed), range(asked.studies), chunksize=1)
        shares, found = zip(*studies, strict=True)
        violating = f"{100 * float(np.mean(shares)):.0f}"
        print("| " + " | ".join([BOUNDED[number].name, violating, *bounded_row(found)]) + " |", flush=True)


if __name__ == "__main__":
    main()
