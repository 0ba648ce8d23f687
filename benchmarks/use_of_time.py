"""How well is time used? A bedplate study against a plain shell loop over the same cells.

    sudo ./benchmarks/run use_of_time [--pairs 2] [--seconds 15] [--pause 5]

Both make, mount, load and measure the same three file systems with the same pgbench for the same
measured seconds; the loop has the sleeps that people write where nothing tells them to go on. Printed:
runs per hour of each, their ratio pair by pair, and measured over wall seconds of the study.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from bedplate.engines.postgresql.builds import BuildSpec, ensure_build
from bedplate.host.command import Commands
from bedplate.host.files import cache_directory
from bedplate.study.store import read_progress
from machine import print_machine

HERE = Path(__file__).resolve().parent
CELLS, RUNS_PER_CELL = 3, 2


def main() -> None:
    """Run the pairs and print the ratio."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=2)
    parser.add_argument("--seconds", type=int, default=15, help="of each run")
    parser.add_argument("--pause", type=int, default=5, help="seconds that the loop sleeps at least")
    given = parser.parse_args()
    print_machine()
    build = ensure_build(
        BuildSpec("18"), cache_directory=cache_directory(), commands=Commands(), progress=lambda _: None
    )
    runs = CELLS * RUNS_PER_CELL
    ratios = []
    for pair in range(given.pairs):
        study_s, share = _study(given.seconds)
        loop_s = _loop(build.prefix, given.seconds, given.pause)
        ratios.append(loop_s / study_s)
        print(
            f"pair {pair + 1}: bedplate {runs / study_s * 3600:.0f} runs per hour ({study_s:.0f} s, "
            f"{share:.0%} of it measured), shell loop {runs / loop_s * 3600:.0f} ({loop_s:.0f} s), "
            f"ratio {ratios[-1]:.2f}",
            flush=True,
        )
    print(f"median ratio {median(ratios):.2f} over {len(ratios)} pairs")


def _study(seconds_of_run: int) -> tuple[float, float]:
    base = Path(tempfile.mkdtemp(prefix="bedplate-use-of-time-"))
    try:
        plan = base / "plan.toml"
        text = (HERE / "use_of_time.toml").read_text(encoding="utf-8")
        plan.write_text(
            text.replace('duration = "15 s"', f'duration = "{seconds_of_run} s"'), encoding="utf-8"
        )
        started = time.monotonic()
        subprocess.run(
            [
                *(sys.executable, "-P", "-m", "bedplate"),
                *("run", str(plan), "--study", str(base / "study")),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        seconds = time.monotonic() - started
        return seconds, read_progress(base / "study").measured_s / seconds
    finally:
        shutil.rmtree(base)


def _loop(prefix: Path, seconds_of_run: int, pause_s: int) -> float:
    base = Path(tempfile.mkdtemp(prefix="bedplate-shell-loop-"))
    base.chmod(0o755)
    try:
        started = time.monotonic()
        subprocess.run(
            [str(HERE / "shell_loop.sh"), str(prefix), str(base), str(seconds_of_run), str(pause_s)],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        return time.monotonic() - started
    finally:
        shutil.rmtree(base)


if __name__ == "__main__":
    main()
