"""Guests that are never started, and answer what is asked of cuts and of bundles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.unit.model.test_fault_of_a_cut import LOST

from bedplate.cuts.blame import Found
from bedplate.cuts.records import CutPoint, Placement, PointOutcome, PointRecord, Profile
from bedplate.errors import BedplateError
from bedplate.executors.qemu.executor import PreparedGuests
from bedplate.executors.qemu.kernels import GuestKernel
from bedplate.executors.qemu.slot import Errand
from bedplate.model import codec
from bedplate.model.cell import Cell
from bedplate.workloads.power_cut.bundle import AS_ASKED, MENDED, REPRODUCE, ScriptQuestion, TriedScript
from bedplate.workloads.power_cut.cut_questions import CutQuestion, answer_events

CUT = CutPoint(0, 100, Profile.SUBSET_4K, Placement.WEIGHTED, 17)
RECORDED = "6.1.0-1-amd64"


def came_of(point: CutPoint) -> PointRecord:
    """The controls are bad, and nothing else is."""
    return PointRecord(point, PointOutcome.LOST if point.control else PointOutcome.OK, None, 8, 4096, 3, 50)


class Guests:
    """Guests that say of each point that it is lost: all but the last `silent` ones, and none of the runs in `dead`."""

    def __init__(self, kernels: Iterable[str] = (RECORDED,)) -> None:
        self.kernels = tuple(kernels)
        self.errands: list[Errand] = []
        self.asked: list[str | None] = []
        self.silent, self.dead = 0, set[str]()
        # How scripts of bundles end, by their words.
        self.scripts = {
            (): TriedScript(AS_ASKED, "bad: gone"),
            (MENDED,): TriedScript(AS_ASKED, "all is well"),
        }

    def run(self, errand: Errand, on_event: Callable[[Mapping[str, Any]], None]) -> None:
        self.errands.append(errand)
        question = errand.program.request
        # As it goes into the guest.
        assert question == codec.loads(type(question), codec.dumps(question))
        if isinstance(question, ScriptQuestion):
            assert Path(question.folder, REPRODUCE).is_file(), "it is tried once it is made"
            for event in answer_events(self.scripts[question.words]):
                on_event(event)
            return
        assert isinstance(question, CutQuestion)
        on_event({"event": "step", "step": "boot again"})
        if any(name in question.folder for name in self.dead):
            raise BedplateError("in the guest it ended with status 1: no")
        for point in question.points[: len(question.points) - self.silent]:
            answer = (
                Found(replace(LOST, point=point.number), point)
                if question.most is not None
                else came_of(point)
            )
            for event in answer_events(answer):
                on_event(event)

    def find(self, asked: str | None, *, cache_directory: Path) -> GuestKernel | None:
        fitting = [each for each in self.kernels if asked is None or each.startswith(asked)]
        if not fitting:
            return None
        release = fitting[-1]
        return GuestKernel(asked or release, release, cache_directory, None, "", f"digest {release}", None)

    def prepare(self, cells: Iterable[Cell], _: object) -> PreparedGuests:
        self.asked += [cell.kernel.release for cell in cells]
        return PreparedGuests(())
