"""Every program of benchmarks/ runs to its last line, with parameters so small that its figures say nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import find_chromium
from tests.support.fleets.slurm_lab import lacking_programs
from tests.support.studies.study_lab import Lab
from tests.support.tools.patience import AT_MOST_S

pytestmark = pytest.mark.host

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
# No program: what the others print, and import.
NO_PROGRAM = {"machine", "power_cut_trees"}
# With what each is called, and what it says when it has come to its end.
SMALL = {
    "ab_calibration": ("--uses 2", "seed 1"),
    "calibration": ("--studies 20 --only-pooled", "| one pair of 45 %"),
    "disk_model": ("--seconds 1 --size-mb 64", "rows within 10%"),
    "explorer_page": (
        "--cells 8 --repetitions 2 --seconds 5 --builds 1 --rounds 1 --sections 1",
        "choice: another cell",
    ),
    "fleet_dry_run": ("--visits 20 --nodes 2", "wall_s"),
    "guest_overhead": ("--rounds 1 --visits 1", "a hand-over:"),
    "latency_device": ("--requests 20 --rounds 1", "rows within 5%"),
    "log_reading": ("--million-lines 0.1 --pairs 1 --growing-blocks 1", "peak RSS of the reader"),
    "microbenchmark_driver": ("--entries 2000 --rounds 1", "readseq100K "),
    "placed_cuts": (
        "--filesystems ext4 --faults none --runs 1 --points 4 --seconds 1",
        "| none | ext4 | 0 of 1 |",
    ),
    "power_cut": ("--points 4 --duration 1 --filesystems xfs --profile --trees", "| lmdb xfs |"),
    "power_cut_images": ("--points 2 --data-mb 2", "untorn-16k"),
    "power_cut_recorder": ("--rounds 1 --seconds 0.2", "of plain"),
    "real_calibration": ("--plan aa --times 1 --seconds 1 --repetitions 1", "aa: "),
    "report_build": ("--repetitions 1 --seconds 2 --builds 1", "page: "),
    "restored": ("--pairs 1 --scale 1 --seconds 1", "two at least make an interval"),
    "search_calibration": ("--studies 1 --only 1 --jobs 1", "| strong main effects | racing |"),
    "shut_in_cost": ("--pairs 2 --seconds 0.5", "tps, restricted / as it was"),
    "slurm_overhead": ("--repetitions 1", "of a node for each visit"),
    "tpch_load": ("--scale-factor 0.01 --pairs 1", "median ratio"),
    "use_of_time": ("--pairs 1 --seconds 1 --pause 0", "median ratio"),
    "watching_cost": ("--pairs 2 --seconds 1 --scale 1", "tps, watched / bare"),
}
# A study of one repetition has no interval, and misses the aim, which is the exit code.
MAY_MISS = {"real_calibration"}


def test_every_program_is_called() -> None:
    programs = {path.stem for path in BENCHMARKS.glob("*.py")} - NO_PROGRAM
    assert programs == SMALL.keys()


def test_every_program_has_its_figures_in_the_documents() -> None:
    text = (BENCHMARKS.parent / "docs" / "BENCHMARKS.md").read_text(encoding="utf-8")
    assert [] == [name for name in SMALL if f"benchmarks/run {name}" not in text]


# Guests are the second lane's; limits of memory, of which there is one at a time, the first one's. Some go where there is time for them.
LANES = {
    "restored": (),
    **dict.fromkeys(
        ("disk_model", "guest_overhead", "latency_device", "shut_in_cost", "tpch_load", "watching_cost"),
        (pytest.mark.second_lane,),
    ),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=LANES.get(name, (pytest.mark.third_lane,))) for name in SMALL]
)
def test_a_program_runs_to_its_end(name: str, lab: Lab) -> None:
    if name == "slurm_overhead" and lacking_programs():
        pytest.skip("needs Slurm")
    if name == "explorer_page" and find_chromium() is None:
        pytest.skip("needs a browser")
    words, expected = SMALL[name]
    done = subprocess.run(
        [sys.executable, "-P", BENCHMARKS / f"{name}.py", *words.split()],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=AT_MOST_S,
        cwd=lab.base,
        env={
            **os.environ,
            **lab.environment,
            "PYTHONPATH": f"{lab.environment['PYTHONPATH']}:{BENCHMARKS}:{BENCHMARKS.parent}",
        },
    )
    assert done.returncode in ((0, 1) if name in MAY_MISS else (0,)), done.stdout + done.stderr
    assert expected in done.stdout, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
