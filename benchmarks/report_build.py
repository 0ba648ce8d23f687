"""How long `bedplate report` takes: 24 cells × 2 runs × 3 repetitions × 60 s, aiming at 5 s.

Run: benchmarks/run report_build [--repetitions 3] [--seconds 60]
The process is started anew for each build, imports included, as a person starts it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.support.studies.synthetic_study import Recipe, cells_of, write_study

_BUILD = """
import sys
from pathlib import Path
from bedplate.page.build import build_report
build_report([Path(sys.argv[1])], Path(sys.argv[2]))
"""


def main() -> None:
    """Build a report a few times and print how long it took and what it weighs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--builds", type=int, default=5)
    asked = parser.parse_args()
    recipe = Recipe(filesystem_blocks=(4096,), repetitions=asked.repetitions, course_s=asked.seconds)
    with tempfile.TemporaryDirectory(prefix="bedplate-report-") as name:
        study = write_study(Path(name) / "study", recipe)
        output = Path(name) / "report.html"
        times = []
        for _ in range(asked.builds):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", _BUILD, str(study), str(output)], check=True)
            times.append(time.perf_counter() - start)
        size_mib = output.stat().st_size / 2**20
    runs = len(cells_of(recipe)) * len(recipe.runs) * recipe.repetitions
    print(f"{len(cells_of(recipe))} cells, {runs} runs of {recipe.course_s} s")
    print(f"build: {min(times):.2f} s best, {sorted(times)[len(times) // 2]:.2f} s median of {len(times)}")
    print(f"page:  {size_mib:.1f} MiB")


if __name__ == "__main__":
    main()
