from __future__ import annotations

from pathlib import Path

from bedplate.figures.facts import number
from bedplate.figures.phased import PhasedRun, phase_seconds
from bedplate.figures.run import FigureMaker, Made
from bedplate.figures.samples import COURSE, read_inputs
from bedplate.model.course import COURSE_FILE
from bedplate.model.metrics import figure
from bedplate.model.visit import RunRecord, Validity


class BrickFigures:
    bulky: tuple[str, ...] = (COURSE,)

    def make(self, visit_directory: Path, run_directory: Path, record: RunRecord) -> Made:
        run = PhasedRun(read_inputs(visit_directory, run_directory, record))
        bricks = number(record, "bricks") or 0.0
        rate = figure("operations_per_s", bricks / phase_seconds(record)["lay"])
        return Made(run.run_figures((rate,), (Validity.VALID, ())), {COURSE_FILE: run.course(None)})


FIGURES: FigureMaker = BrickFigures()
