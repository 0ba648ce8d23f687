"""Replays of kept logs for `power_cut`: by several trees by turns, and with the time of each stage.

A child of it runs with the sources of one tree. Processor time is that of processes and not of the kernel's threads, of which the loop
devices' are the busiest.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bedplate.cuts.choice import building_order
from bedplate.host.ledger import NoLedger
from bedplate.model import codec
from bedplate.workloads.power_cut.bench import JOB_FILE, ReplayJob, replayed
from bedplate.workloads.power_cut.log import unpacked

# Not compared: times, and the words of the kernel and of fsck, which differ from one mount of an image to the next.
BY_CHANCE = ("mount_s", "fsck_s", "engine_start_s", "oracle_s", "problems")
CHILD, STAGES_CHILD = "--child", "--stages"
WHERE = re.compile(r"loop\d+|replay-\d+|bedplate-\d+-\w+")


@dataclass
class Tree:
    """A checkout, and what its replays of one log took."""

    path: Path
    wall_s: list[float] = field(default_factory=list)
    processor_s: list[float] = field(default_factory=list)

    def replay(self, job_file: Path, log: Path, memory: Path) -> list[Mapping[str, Any]]:
        """The records by this tree's code, in the order of their numbers."""
        argv = [sys.executable, str(Path(__file__).resolve()), CHILD, str(job_file), str(log), str(memory)]
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        done = subprocess.run(
            argv, stdout=subprocess.PIPE, check=True, text=True, env=environment_of(self.path)
        )
        self.wall_s.append(time.monotonic() - started)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.processor_s.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        # Which loop device and which worker's folder it was is chance.
        records = (json.loads(WHERE.sub("…", line)) for line in done.stdout.splitlines())
        return sorted(
            ({key: value for key, value in record.items() if key not in BY_CHANCE} for record in records),
            key=lambda record: (record["point"]["number"], record["point"]["position"]),
        )


def environment_of(tree: Path) -> dict[str, str]:
    """Its sources, and the programs of this folder."""
    return {**os.environ, "PYTHONPATH": f"{tree / 'src'}:{Path(__file__).resolve().parent}"}


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


STAGES = ("image", "mount", "start", "questions", "unmount", "check")


def stages_of(folder: Path, tree: Path, *, points: int) -> str:
    """A row of a table: what each stage of a cut takes, in ms, with one worker."""
    with unpacked(folder) as kept:
        job = codec.read(ReplayJob, folder / JOB_FILE)
        job = replace(
            job, points=tuple(building_order(job.points)[:: max(1, len(job.points) // points)]), recuts=()
        )
        codec.write(kept.memory / "job-of-stages.json", job)
        argv = [
            *("unshare", "--mount", "--pid", "--ipc", "--fork", "--kill-child", "--mount-proc"),
            *(sys.executable, str(Path(__file__).resolve()), STAGES_CHILD),
            *(str(kept.memory / "job-of-stages.json"), str(kept.log), str(kept.memory)),
        ]
        done = subprocess.run(argv, stdout=subprocess.PIPE, check=True, text=True, env=environment_of(tree))
    return done.stdout.strip()


def print_stages(job_file: Path, log_file: Path, memory: Path) -> None:
    """In a process of the tree's, and in namespaces of its own: replay each point, and print what its stages took."""
    from bedplate.cuts.log import read_log  # noqa: PLC0415
    from bedplate.filesystem.registry import filesystem_for  # noqa: PLC0415
    from bedplate.host.mount import let_go_of_foreign_mounts, paths_in  # noqa: PLC0415
    from bedplate.workloads.power_cut import worker  # noqa: PLC0415
    from bedplate.workloads.power_cut.bench import ImageBuilder  # noqa: PLC0415

    job = codec.read(ReplayJob, job_file)
    let_go_of_foreign_mounts((job_file, log_file, *paths_in(codec.to_json(job))))
    took = dict.fromkeys(STAGES, 0.0)

    def timed(owner: Any, name: str, stage: str) -> None:
        begin = getattr(owner, name)

        def call(*words: Any, **more: Any) -> Any:
            started = time.monotonic()
            try:
                return begin(*words, **more)
            finally:
                took[stage] += time.monotonic() - started

        setattr(owner, name, call)

    timed(ImageBuilder, "build", "image")
    timed(worker, "mount_beside_twins", "mount")
    timed(worker.CutSite, "_ask", "questions")
    timed(worker, "unmount_beside_twins", "unmount")
    timed(type(filesystem_for(job.filesystem.type)), "check", "check")
    folder = memory / "stages"
    folder.mkdir()
    with read_log(log_file) as log:
        records = worker.WorkerShare(job, log, folder, workers=1).records(
            0, 1, recorder=None, log_folder=None
        )
        # The first one lays down all that was durable before the clients began.
        next(records)
        took.update(dict.fromkeys(STAGES, 0.0))
        started, before = time.monotonic(), processor_s()
        rest = list(records)
        wall_s, used_s = time.monotonic() - started, processor_s() - before
    took["start"] = sum(record.engine_start_s or 0.0 for record in rest)
    took["questions"] -= took["start"]
    cells = [took[stage] for stage in STAGES] + [wall_s - sum(took.values()), wall_s, used_s]
    print(" | ".join([str(len(rest)), *(f"{1000 * seconds / len(rest):.0f}" for seconds in cells)]))


def processor_s() -> float:
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, kinds))


if __name__ == "__main__":
    {CHILD: replay_child, STAGES_CHILD: print_stages}[sys.argv[1]](*map(Path, sys.argv[2:]))
