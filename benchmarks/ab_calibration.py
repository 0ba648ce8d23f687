"""Does `bedplate ab` keep what it promises, and what does it find? Simulated uses of which the truth is known.

    ./benchmarks/run ab_calibration [--uses 1000] [--seed 1]

Each use measures a baseline and a contender in blocks, looks after each one, and ends at the first look that tells. The
lines that judge a real study judge these. docs/BENCHMARKS.md has a part of its tables: how often identical builds are told
apart, what is found at a true difference, and what a bisection takes a candidate for.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

from tests.support.studies.simulated_pairs import PAIRED, bisected, differences, watched  # noqa: E402

from bedplate.statistics.estimation import of_differences  # noqa: E402
from calibration import percent, table  # noqa: E402
from machine import print_machine  # noqa: E402

if TYPE_CHECKING:
    from tests.support.studies.simulated_pairs import Told

TRUTHS = (1.0, 0.97, 0.95, 0.9, 0.8)
# What the issue asks of, and what two hours of visits of 90 s hold.
BLOCKS = (10, 40)
SLOWER = 0.1


def told(found: Told) -> list[str]:
    return [
        percent(found.share(-1)),
        percent(found.share(1)),
        percent(found.share(0)),
        percent(found.cannot_tell),
    ]


def uses_of_ab(uses: int, seed: int) -> None:
    rows = []
    for scenario in PAIRED:
        for ratio in TRUTHS:
            random = np.random.default_rng([seed, PAIRED.index(scenario), TRUTHS.index(ratio)])
            most = differences(scenario, random, uses=uses, blocks=BLOCKS[-1], ratio=ratio)
            few, many = (watched(most[:, :blocks]) for blocks in BLOCKS)
            spoilt = watched(most, estimated=of_differences)
            wrong = spoilt.share(1) + (spoilt.share(-1) if ratio == 1.0 else 0.0)
            rows.append(
                [
                    scenario.name,
                    f"{100 * (ratio - 1):+.0f} %" if ratio != 1.0 else "none",
                    *told(few),
                    *told(many),
                    f"{np.median(many.blocks):.0f}",
                    percent(wrong),
                ]
            )
    print(f"`bedplate ab` ({uses} uses each; in % of the uses)\n")
    table(
        (
            "scatter of a run",
            "true difference",
            *(
                f"{words}, {blocks} blocks at most"
                for blocks in BLOCKS
                for words in ("slower", "faster", "same", "cannot tell")
            ),
            "blocks, median",
            "false with Student's interval after each block",
        ),
        rows,
    )


def candidates(uses: int, seed: int) -> None:
    rows = []
    for scenario in PAIRED:
        for ratio in TRUTHS:
            random = np.random.default_rng([seed, PAIRED.index(scenario), TRUTHS.index(ratio), 2])
            found = bisected(
                differences(scenario, random, uses=uses, blocks=BLOCKS[0], ratio=ratio), slower=SLOWER
            )
            rows.append(
                [
                    scenario.name,
                    f"{100 * (ratio - 1):+.0f} %" if ratio != 1.0 else "none",
                    percent(found.good),
                    percent(found.bad),
                    percent(found.by_estimate),
                    f"{found.blocks:.0f}",
                ]
            )
    print(
        f"A candidate of `bedplate bisect --fail-if 'slower 10%'`, {BLOCKS[0]} blocks at most; none is skipped\n"
    )
    table(
        (
            "scatter of a run",
            "true difference",
            "good",
            "bad",
            "of all by the estimate's side",
            "blocks, median",
        ),
        rows,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--uses", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    print_machine()
    started = time.perf_counter()
    uses_of_ab(asked.uses, asked.seed)
    candidates(asked.uses, asked.seed)
    print(f"{time.perf_counter() - started:.0f} s, seed {asked.seed}, numpy {np.__version__}")


if __name__ == "__main__":
    main()
