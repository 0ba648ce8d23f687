"""How many of planted faults of order are found, and whether a correct store is called bad. Whole trials, as an author makes them.

    sudo ./benchmarks/run placed_cuts [--filesystems ext4,xfs] [--faults none,stale-record] [--runs 5] [--points 60] [--seconds 5]

The store is in examples/engines/ordering: a log in segments, a manifest, compaction; each client has one. Each of its faults gets the order of
two changes wrong, and all promise to be durable. A row says in how many trials the fault was found, and how many drawn and placed cuts
were bad, of all trials together. Of the store without a fault (`none`) no cut may be bad. Exit code 1 where one was, or a fault was missed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

from bedplate.cuts.points import is_drawn, read_cuts
from bedplate.cuts.records import POINTS_FILE
from machine import print_machine

REPOSITORY = Path(__file__).resolve().parent.parent
ENGINE = REPOSITORY / "examples/engines/ordering"
NO_FAULT = "none"


@dataclass(frozen=True)
class Trial:
    """Bad cuts and all of them, those that chance placed and the others."""

    drawn_bad: int = 0
    drawn: int = 0
    placed_bad: int = 0
    placed: int = 0

    @property
    def is_bad(self) -> bool:
        """Whether a cut found anything."""
        return self.drawn_bad + self.placed_bad > 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--filesystems", default="ext4,xfs")
    parser.add_argument("--faults", default=",".join(faults()))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--points", type=int, default=60)
    parser.add_argument("--seconds", type=int, default=5, help="how long each is recorded")
    given = parser.parse_args()
    print_machine()
    print("| fault | file system | found | drawn cuts bad | placed cuts bad |")
    print("|" + " --- |" * 5)
    is_good = True
    for fault in given.faults.split(","):
        for filesystem in given.filesystems.split(","):
            trials = [
                trial(fault, filesystem, points=given.points, seconds=given.seconds)
                for _ in range(given.runs)
            ]
            print(row(fault, filesystem, trials), flush=True)
            is_good &= all(each.is_bad == (fault != NO_FAULT) for each in trials)
    sys.exit(0 if is_good else 1)


def faults() -> list[str]:
    """As the store's own description has them."""
    with (ENGINE / "engine.toml").open("rb") as file:
        levels: list[str] = tomllib.load(file)["settings"]["fault"]["levels"]
    return levels


def trial(fault: str, filesystem: str, *, points: int, seconds: int) -> Trial:
    """One recording and its cuts, in a place of its own, which is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="bedplate-placed-cuts-") as folder:
        study = Path(folder) / "trial"
        words = ["--on", filesystem, "--points", str(points), "--recut", "0", "--duration", str(seconds)]
        command = [
            "power-cut",
            "try",
            str(ENGINE),
            *words,
            "--set",
            f"fault={fault}",
            "--directory",
            str(study),
            "--yes",
        ]
        done = subprocess.run(
            [str(REPOSITORY / "bedplate"), *command], check=False, capture_output=True, text=True
        )
        found = [read_cuts(path.parent) for path in study.rglob(POINTS_FILE)]
        if not found:
            sys.exit(f"{fault} on {filesystem} was not cut:\n{done.stdout}{done.stderr}")
    records = [record for cuts in found for record in cuts.points if not record.point.control]
    drawn = [record.outcome.is_bad for record in records if is_drawn(record)]
    placed = [record.outcome.is_bad for record in records if not is_drawn(record)]
    return Trial(sum(drawn), len(drawn), sum(placed), len(placed))


def row(fault: str, filesystem: str, trials: list[Trial]) -> str:
    found = sum(each.is_bad for each in trials)
    drawn = f"{sum(each.drawn_bad for each in trials)} of {sum(each.drawn for each in trials)}"
    placed = f"{sum(each.placed_bad for each in trials)} of {sum(each.placed for each in trials)}"
    return f"| {fault} | {filesystem} | {found} of {len(trials)} | {drawn} | {placed} |"


if __name__ == "__main__":
    main()
