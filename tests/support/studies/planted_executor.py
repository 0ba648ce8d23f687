"""An executor that measures nothing: each visit's figures are what a test planted for its cell."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tests.support.studies.planted_reasons import planted
from tests.support.studies.synthetic_power_cuts import RawCuts, controls, points_of, write_cut_visit
from tests.support.studies.synthetic_study import MACHINE

from bedplate.cuts.records import DEFAULT_PROFILES, PointOutcome
from bedplate.executors.protocol import Executor
from bedplate.model import codec
from bedplate.model.cell import digest
from bedplate.model.figure import DEFINITIONS_VERSION, RunFigures
from bedplate.model.metrics import figure
from bedplate.model.plan import model_of
from bedplate.model.visit import FORMAT_VERSION, Durability, Outcome, RunRecord, Validity, VisitRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from bedplate.executors.protocol import Listener, Start, StartOutcome
    from bedplate.host.requirement import Need
    from bedplate.model.cell import Cell, RunSpec
    from bedplate.model.levels import Scalar
    from bedplate.model.machine import Machine, NodeFacts
    from bedplate.model.plan import Plan, ScheduledVisit
    from bedplate.model.visit import VisitRequest
    from bedplate.study.records import StudyFacts
    from bedplate.study.store import StudyStore

    # The figures of a run of a cell by metric, before noise.
    Truth = Callable[[Cell, RunSpec], Mapping[str, float]]

DURABLE = Durability("durable", "durable", "declared")


class PlantedNodes:
    """Nodes that are all like the machine of a synthetic study; nobody looks at them."""

    def machine(self, plan: Plan, nodes: Mapping[str, NodeFacts]) -> Machine | None:
        return MACHINE

    def look(
        self, plan: Plan, study: Path, listener: Listener, *, erase_foreign: bool
    ) -> Mapping[str, NodeFacts]:
        return {}

    def require_same(self, plan: Plan, store: StudyStore, listener: Listener, *, erase_foreign: bool) -> None:
        pass


@dataclass
class PlantedExecutor(Executor):
    """`truth` says what runs of a cell come to, `noise` how they scatter.

    `absent` are figures that a cell's runs do not have, and why. `fails` and `suspect` name visits by the cell and the attempt, `unbuilt` cells whose build fails, `durability` what a cell promises and `loses` of which a power cut
    loses commits all the same. `stop_after` visits a Ctrl-C comes.
    """

    truth: Truth
    noise: float = 0.02
    seconds: float = 60.0
    fails: Callable[[Cell, int], bool] = lambda _cell, _attempt: False
    suspect: Callable[[Cell, int], bool] = lambda _cell, _attempt: False
    absent: Callable[[Cell], Mapping[str, str]] = lambda _cell: {}
    unbuilt: Callable[[Cell], bool] = lambda _cell: False
    durability: Callable[[Cell], Durability] = lambda _cell: DURABLE
    loses: Callable[[Cell], bool] = lambda _cell: False
    cut_seconds: float = 120.0
    same: Callable[[Cell], str] = lambda cell: cell.id
    why: Callable[[Cell], str] = lambda cell: f"mkfs failed in {cell.id}"
    stop_after: int | None = None
    requests: list[VisitRequest] = field(default_factory=list)
    starts: list[tuple[ScheduledVisit, ...]] = field(default_factory=list)
    name: str = "nowhere"
    runs_here: bool = False
    estimate_words: str = ""
    fleet: PlantedNodes | None = None

    def needs(self, filesystems: Iterable[str], workloads: Iterable[str]) -> tuple[Need, ...]:
        return ()

    def another_machine(self, plan: Plan, facts: StudyFacts, machine: Machine) -> str | None:
        return None

    def run(self, start: Start) -> StartOutcome:
        unbuilt = {each.cell.id for each in start.expansion.planned if self.unbuilt(each.cell)}
        start = start.without(unbuilt, "it", ("make ended with status 2: error: x",))
        self.starts.append(tuple(start.visits))
        return start.one_by_one(self)

    def close(self) -> None:
        pass

    def run_visit(
        self,
        request: VisitRequest,
        directory: Path,
        on_event: Callable[[Mapping[str, Scalar]], None],
        *,
        boot: int | None = None,
    ) -> None:
        if self.stop_after is not None and len(self.requests) >= self.stop_after:
            raise KeyboardInterrupt
        self.requests.append(request)
        if model_of(request.dataset.workload).cuts_power:
            self._cut(request, directory)
            return
        failed = self.fails(request.cell, request.key.attempt)
        codec.write(directory / "visit.json", self._record(request, failed=failed))
        if not failed:
            for at, spec in enumerate(request.runs):
                self._write_run(request, directory / "runs" / f"{at:02d}-{spec.id}", spec)

    def _cut(self, request: VisitRequest, directory: Path) -> None:
        """A visit that cuts power: what its points found is planted, the verdict is made of them."""
        (spec,) = request.runs
        found = dict.fromkeys(DEFAULT_PROFILES[:3], PointOutcome.LOST) if self.loses(request.cell) else {}
        raw = RawCuts(
            request.cell,
            (*points_of(found), *controls()),
            durability=self.durability(request.cell),
            dataset=request.dataset,
            spec=spec,
        )
        write_cut_visit(directory, raw)
        record = codec.read(VisitRecord, directory / "visit.json")
        codec.write(
            directory / "visit.json",
            replace(
                record,
                key=request.key,
                seconds=self.cut_seconds,
                effective_digest=digest({"same": self.same(request.cell)}),
            ),
        )

    def _record(self, request: VisitRequest, *, failed: bool) -> VisitRecord:
        return VisitRecord(
            format_version=FORMAT_VERSION,
            key=request.key,
            cell=request.cell,
            dataset=request.dataset,
            outcome=Outcome.FAILED if failed else Outcome.COMPLETED,
            reasons=planted(self.why(request.cell)) if failed else (),
            failed_step="mkfs" if failed else None,
            # Visits that follow each other; what they take is in `seconds`, as no time passes here.
            started_wall_s=1000.0 * len(self.requests),
            seconds=self.seconds,
            boot_id=MACHINE.boot_id,
            executor=self.name,
            effective_digest=digest({"same": self.same(request.cell)}),
            durability=self.durability(request.cell),
            runs=() if failed else tuple(f"{at:02d}-{spec.id}" for at, spec in enumerate(request.runs)),
            provenance=request.provenance,
        )

    def _write_run(self, request: VisitRequest, folder: Path, spec: RunSpec) -> None:
        key = request.key
        chance = random.Random(f"{key.cell} {key.dataset} {key.repetition} {key.attempt} {spec.name}")
        level = math.exp(chance.gauss(0.0, self.noise))
        absent = self.absent(request.cell)
        folder.mkdir(parents=True)
        record = RunRecord(spec, Outcome.COMPLETED)
        codec.write(folder / "record.json", record)
        is_suspect = not key.canary and self.suspect(request.cell, key.attempt)
        figures = RunFigures(
            definitions=DEFINITIONS_VERSION,
            format_version=FORMAT_VERSION,
            run=spec.name,
            run_id=spec.id,
            workload=spec.workload,
            outcome=Outcome.COMPLETED,
            reasons=(),
            validity=Validity.SUSPECT if is_suspect else Validity.VALID,
            validity_reasons=planted("other programs used the processors") if is_suspect else (),
            measure_start_wall_s=1000.0 * len(self.requests),
            warmup_s=1.0,
            duration_s=10.0,
            figures=tuple(
                figure(name, None, reason=planted(absent[name])[0])
                if name in absent
                else figure(name, value * level)
                for name, value in self.truth(request.cell, spec).items()
            ),
        )
        codec.write(folder / "run.json", figures)
