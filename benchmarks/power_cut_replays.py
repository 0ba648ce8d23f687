"""Whether two trees judge the cuts of kept logs alike, and how many each judges in a minute.

    benchmarks/run power_cut_replays STUDY TREE [TREE …] [--pairs 2] [--points 40] [--runs ext4,xfs-1]

STUDY is of power cuts with `keep_logs = "all"`, a TREE is a checkout. The trees replay each log by turns, so that what else the machine does
meets all of them, with as many workers as a visit has. Records are compared in all but their times. Processor time is that of the processes
and not of the kernel's threads, of which the loop devices' are the busiest.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bedplate.cli.cuts import run_names
from bedplate.host.ledger import NoLedger
from bedplate.model import codec
from bedplate.model.power_cut import LOG_FILE
from bedplate.workloads.power_cut.bench import JOB_FILE, ReplayJob, building_order, replayed
from bedplate.workloads.power_cut.log import unpacked
from machine import print_machine

TIMES = ("mount_s", "fsck_s", "engine_start_s", "oracle_s")
CHILD = "--child"


@dataclass
class Tree:
    """A checkout, and what its replays of one log took."""

    path: Path
    wall_s: list[float] = field(default_factory=list)
    processor_s: list[float] = field(default_factory=list)

    def replay(self, job_file: Path, log: Path, memory: Path) -> list[Mapping[str, Any]]:
        """The records by this tree's code, in the order of their numbers."""
        argv = [sys.executable, str(Path(__file__).resolve()), CHILD, str(job_file), str(log), str(memory)]
        sources = f"{self.path / 'src'}:{Path(__file__).resolve().parent}"
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        done = subprocess.run(
            argv, stdout=subprocess.PIPE, check=True, text=True, env={**os.environ, "PYTHONPATH": sources}
        )
        self.wall_s.append(time.monotonic() - started)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.processor_s.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        records = (json.loads(line) for line in done.stdout.splitlines())
        return sorted(
            ({key: value for key, value in record.items() if key not in TIMES} for record in records),
            key=lambda record: (record["point"]["number"], record["point"]["position"]),
        )


def replay_child(job_file: Path, log: Path, memory: Path) -> None:
    """In a process of the tree's: print what comes of each point."""
    job = codec.read(ReplayJob, job_file)
    for record in replayed(
        log, job, lambda words: print(words, file=sys.stderr), memory=memory, ledger=NoLedger()
    ):
        print(codec.dumps(record, indent=None), flush=True)


def compare(folder: Path, trees: Sequence[Tree], *, pairs: int, points: int) -> tuple[int, list[str]]:
    """How many points of a run were judged, and where a tree says another thing than the first one."""
    with unpacked(folder) as kept:
        job = codec.read(ReplayJob, folder / JOB_FILE)
        # Recoveries need the recorder, whose threads make another recording each time.
        job = replace(
            job, points=tuple(building_order(job.points)[:: max(1, len(job.points) // points)]), recuts=()
        )
        job_file = kept.memory / "job-of-trees.json"
        codec.write(job_file, job)
        first: list[Mapping[str, Any]] = []
        found = []
        for turn in range(pairs):
            for tree in trees if turn % 2 == 0 else reversed(trees):
                records = tree.replay(job_file, kept.log, kept.memory)
                first = first or records
                found += [f"{tree.path}: {difference}" for difference in differences(first, records)]
        return len(job.points), found


def differences(first: Sequence[Mapping[str, Any]], second: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if len(first) != len(second):
        yield f"{len(second)} records and not {len(first)}"
    for one, other in zip(first, second, strict=False):
        for key in sorted({*one, *other}):
            if one.get(key) != other.get(key):
                yield f"point {one['point']['number']}, {key}: {one.get(key)!r:.200} and {other.get(key)!r:.200}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("study", type=Path)
    parser.add_argument("trees", type=Path, nargs="+")
    parser.add_argument("--pairs", type=int, default=2)
    parser.add_argument("--points", type=int, default=40, help="of each log, at most about so many")
    parser.add_argument("--runs", help="short names; without it all with a kept log")
    given = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("a replay mounts, which needs root; start the benchmark as root")
    print_machine()
    print(
        "| run | points | "
        + " | ".join(f"{tree.name}: a minute, processor ms a point" for tree in given.trees)
        + " | differ |"
    )
    print("|" + " --- |" * (3 + len(given.trees)))
    wanted, different = (given.runs or "").split(",") if given.runs else None, 0
    for name, folder in run_names(given.study).items():
        if not (folder / LOG_FILE).exists() or (wanted is not None and name not in wanted):
            continue
        trees = [Tree(path.resolve()) for path in given.trees]
        points, found = compare(folder, trees, pairs=given.pairs, points=given.points)
        different += len(found)
        cells = (
            f"{60 * points / statistics.median(tree.wall_s):.0f}, {1000 * statistics.median(tree.processor_s) / points:.0f}"
            for tree in trees
        )
        # The name of a cell says the engine, too.
        print(
            f"| {name} {folder.parents[3].name} | {points} | {' | '.join(cells)} | {len(found)} |", flush=True
        )
        for difference in found:
            print(f"    {difference}", file=sys.stderr, flush=True)
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    if sys.argv[1:2] == [CHILD]:
        replay_child(*map(Path, sys.argv[2:]))
    else:
        main()
