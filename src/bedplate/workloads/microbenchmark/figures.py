"""The figures of a run of the microbenchmark: tests that write, or one pass of tests that read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bedplate.figures.counters import Deltas
from bedplate.figures.evidence import shared_evidence
from bedplate.figures.facts import deltas_of, free_space_figures, step_figure
from bedplate.figures.phased import PhasedFigures, PhasedRun
from bedplate.figures.protocol import Made
from bedplate.figures.tool_parts import device_bytes
from bedplate.figures.tool_validity import Moved
from bedplate.model.course import COURSE_FILE
from bedplate.model.engine import engine_model
from bedplate.model.figure import Status
from bedplate.model.metrics import figure
from bedplate.model.reason import because
from bedplate.workloads.microbenchmark.figures_by_test import (
    left_out,
    missing_tests,
    read_documents,
    run_tests_figures,
    tests_done,
)
from bedplate.workloads.microbenchmark.progress import read_progress
from bedplate.workloads.microbenchmark.tests import COLD, DOCUMENTS, PROGRESS, TESTS
from bedplate.workloads.microbenchmark.validity import (
    VALIDITY,
    BenchEvidence,
    longer_than_asked,
    must_read_bytes,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from bedplate.figures.inputs import RunInputs
    from bedplate.figures.protocol import FigureMaker
    from bedplate.model.figure import Figure, RunFigures
    from bedplate.model.reason import Reason
    from bedplate.workloads.microbenchmark.output import BenchDocument

# They tell whether the run had the machine to itself, whatever its tests were.
_OF_THE_SURROUNDINGS = frozenset({"watching_cpu_share", "others_cpu_share", "steal_share"})


class BenchFigures(PhasedFigures):
    """Makes the figures of runs of the microbenchmark; the driver's documents stay, as they are small."""

    def of_completed(self, inputs: RunInputs, run_directory: Path) -> Made:
        """Of its tests."""
        measured = _Measured(inputs, *read_documents(inputs.record, run_directory))
        told = (run_directory / DOCUMENTS / PROGRESS.format(test=test) for test in tests_done(inputs.record))
        transactions = [each for path in told for each in read_progress(path)]
        return Made(measured.whole(), {COURSE_FILE: measured.course(None, transactions)})


@dataclass(frozen=True)
class _Measured(PhasedRun):
    """One run that came to its end; `problems` say which documents cannot be read."""

    documents: Mapping[str, BenchDocument]
    problems: tuple[str, ...]

    def whole(self) -> RunFigures:
        return self.run_figures(self._figures(), VALIDITY.judge(self._evidence()))

    def _figures(self) -> Iterator[Figure]:
        record, pass_ = self.inputs.record, self._pass
        cell = self.inputs.visit.cell
        model = engine_model(cell.build.engine)
        setting, mode = model.commit_setting, model.commit_mode(cell.cluster.settings)
        yield from run_tests_figures(record, self.documents, setting=setting, mode=mode, pass_=pass_)
        left = tuple(f"{test} was left out: {setting} = {mode}" for test in left_out(record))
        absent = (*missing_tests(record, self.documents), *left)
        seconds = [item.seconds or 0.0 for item in record.items if item.phase == TESTS]
        why = because("tests-missing", "; ".join(absent))
        yield figure("tests_s", None if absent else sum(seconds), pass_=pass_, reason=why)
        yield step_figure(self.inputs.visit, "mkfs_s")
        yield from free_space_figures(self.inputs.visit.free_space)
        # Without the two readings every counter is missing, and every figure says so.
        deltas = deltas_of(record) or Deltas({}, {}, 0.0)
        # What fewer tests wrote, flushed or computed would pass for less of what all of them do.
        for one in self.figures_without_server(deltas, self.first, self.last, pass_=pass_):
            covers_less = bool(left) and one.metric not in _OF_THE_SURROUNDINGS
            yield _made_absent(one, because("tests-left-out", "; ".join(left))) if covers_less else one

    def _evidence(self) -> BenchEvidence:
        record = self.inputs.record
        inputs = replace(self.inputs, problems=(*self.inputs.problems, *self.problems))
        return BenchEvidence(
            **shared_evidence(inputs, self.window.duration_s),
            cold=record.spec.levels.text("pass") == COLD,
            made_cold=record.facts.get("made_cold") is True,
            reads=tuple(self._reads()),
            missing=missing_tests(record, self.documents),
            late=tuple(self._late()),
        )

    def _late(self) -> Iterator[str]:
        for document in self.documents.values():
            for test in document.tests:
                if (words := longer_than_asked(test, document.options)) is not None:
                    yield words

    def _reads(self) -> Iterator[Moved]:
        for test in tests_done(self.inputs.record):
            document = self.documents.get(test)
            if document is not None and document.tests:
                must = must_read_bytes(document.tests[0], document.options)
                yield Moved(test, must, device_bytes(self.inputs.record, test, "read_sectors"))

    @property
    def _pass(self) -> int:
        return self.inputs.record.spec.levels.integer("pass_number") or 1


def _made_absent(found: Figure, reason: Reason) -> Figure:
    return replace(found, value=None, status=Status.ABSENT, reason=reason)


FIGURES: FigureMaker = BenchFigures()
