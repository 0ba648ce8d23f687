"""Stands where a visit would: without root, device or database, and does what a folder of files asks of it.

hold-<node>       keeps the visit until the file is gone
fail-<cell>       the visit's process ends with status 7 and leaves nothing
unfit-<node>      the machine keeps every visit on it from running
lived             one line for every visit that was lived to its end, by every process
begun             one line for every visit that began
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from bedplate.errors import EXIT_REQUIREMENT_MISSING
from bedplate.executors.slurm.payload import STARTED
from bedplate.host.process import wait_until
from bedplate.model import codec
from bedplate.model.visit import FORMAT_VERSION, Outcome, VisitRecord, VisitRequest


def main(words: list[str]) -> int:
    behaviour, directory = Path(words[0]), Path(words[-1])
    stop_file = Path(words[words.index("--stop-file") + 1])
    request = codec.read(VisitRequest, Path(words[-2]))
    node = os.environ["SLURMD_NODENAME"]
    key = request.key
    line = f"{node} {key.cell} {key.dataset} {key.repetition}.{key.attempt} {key.canary}\n"
    note(behaviour / "begun", line)
    hold = behaviour / f"hold-{node}"
    wait_until(lambda: stop_file.exists() or not hold.exists(), deadline_s=300)
    if stop_file.exists():
        return 130
    (directory / STARTED).touch()
    if (behaviour / f"unfit-{node}").exists():
        print("the disk is full")
        return EXIT_REQUIREMENT_MISSING
    if (behaviour / f"fail-{request.cell.filesystem.type}").exists():
        print("the disk is on fire")
        return 7
    note(behaviour / "lived", line)
    codec.write(
        directory / "visit.json",
        VisitRecord(
            format_version=FORMAT_VERSION,
            key=key,
            cell=request.cell,
            dataset=request.dataset,
            outcome=Outcome.COMPLETED,
            reasons=(),
            failed_step=None,
            started_wall_s=time.time(),
            seconds=0.1,
            boot_id="b",
            executor="slurm",
            provenance={**request.provenance, "executor": "slurm"},
        ),
    )
    return 0


def note(path: Path, line: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
