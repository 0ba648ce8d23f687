"""A plan and a study in a directory of a test's own, searched with visits whose truth is planted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.analysis.overview import overview
from bedplate.analysis.search import Course, searched
from bedplate.campaign import planning, start
from bedplate.campaign.questions import SearchAsked
from bedplate.campaign.searching import search
from bedplate.campaign.start import keep
from bedplate.study.stored import read_study

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pytest
    from tests.support.studies.planted_executor import PlantedExecutor

    from bedplate.analysis.search import Searched
    from bedplate.campaign.searching import SearchOutcome
    from bedplate.model.cell import Cell, RunSpec
    from bedplate.model.figure import RunFigures
    from bedplate.model.visit import VisitRecord
    from bedplate.study.store import Attempt

CELLS = """
title = "Small"
repetitions = 2
seed = 11
executor = "qemu"
[scratch_device]
image_size = "1 GB"
scheduler = { vary = ["none", "mq-deadline"] }
read_ahead = { vary = ["128 kB", "4 MB"] }
[[filesystem]]
type = { vary = ["ext4", "xfs", "btrfs"] }
block_size = "4 kB"
[[workload]]
type = "fio"
[[workload.job]]
job = "wal-append"
size = "64 MB"
[canary]
enabled = false
"""
RUN = "wal-append"
BEST = "operations_per_s"
SPEEDS = {"ext4": 1.0, "xfs": 1.3, "btrfs": 0.6}


def truth(cell: Cell, _run: RunSpec) -> Mapping[str, float]:
    """XFS with the deadline scheduler and 4 MB of read-ahead is the fastest."""
    speed = SPEEDS[cell.filesystem.type]
    speed *= 1.2 if cell.levels.get("device.scheduler") == "mq-deadline" else 1.0
    speed *= 1.15 if cell.levels.get("device.read_ahead_kb") == 4096 else 1.0
    return {BEST: 1000.0 * speed, "latency_ms_p99": 5.0 / speed}


class SearchLab:
    """A plan and a study in a directory; `play` searches with an executor."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.study = tmp_path / "study"
        self.plan = tmp_path / "plan.toml"
        self.plan.write_text(CELLS)
        self.patch = monkeypatch
        self.asked = SearchAsked(best=BEST, runs=(RUN,), durable="volatile", budget_s=100 * 60.0)

    def play(self, executor: PlantedExecutor, asked: SearchAsked | None = None) -> SearchOutcome:
        self.on(executor)
        return search(self.plan, self.study, self.asked if asked is None else asked, Course())

    def on(self, executor: PlantedExecutor) -> None:
        self.patch.setattr(planning, "executor_for", lambda _: executor)

    def read(self) -> Searched:
        found = searched(overview(self.study))
        assert found is not None
        return found

    def order(self) -> list[tuple[str, int]]:
        return [(v.cell_id, v.repetition) for v in read_study(self.study).schedule.visits]


def search_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SearchLab:
    """A private place for searches whose visits take no time."""

    def kept(
        attempt: Attempt, record: VisitRecord, *, seconds_before: float
    ) -> tuple[VisitRecord, list[RunFigures]]:
        # Visits of a test take no time; what they would take is in their records.
        del seconds_before
        return keep(attempt, record, seconds_before=record.seconds)

    monkeypatch.setattr(start, "keep", kept)
    monkeypatch.setenv("BEDPLATE_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("BEDPLATE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return SearchLab(tmp_path, monkeypatch)


def best_of(found: Searched) -> Cell:
    """The cell that a search names first."""
    end = found.end
    assert end is not None
    return found.overview.study.schedule.cells[found.id_of(end.cells[0])]
