from __future__ import annotations

import os
from pathlib import Path

from bedplate.model.cell import RunSpec
from bedplate.model.visit import RunRecord
from bedplate.visit.recording import Recording, VisitContext, Workload


class Brick(Workload):
    name = "brick"
    protocol = "brick 1"

    def run(self, spec: RunSpec, context: VisitContext, directory: Path) -> RunRecord:
        recording = Recording(spec, context, directory)
        bricks = context.dataset.levels.integer("bricks") or 0
        with (
            (context.data_directory / "wall").open("wb", buffering=0) as wall,
            recording.sampled([], first_phase="lay"),
            recording.timed_phase("lay"),
        ):
            for _ in range(bricks):
                wall.write(bytes(4096))
                os.fsync(wall.fileno())
        recording.facts["bricks"] = bricks
        return recording.record()


RUN: Workload = Brick()
