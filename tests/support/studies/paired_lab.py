"""A study of pairs in a directory of a test's own, with visits whose truth is planted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.studies.search_lab import BEST, search_lab

from bedplate.analysis.paired import UntilTold, looked_at
from bedplate.campaign.paired import measure_pairs, paired_plan, varied_key
from bedplate.campaign.running import Consent
from bedplate.statistics.paired_sequence import FIRST_LOOK
from bedplate.study.stored import read_study

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pytest
    from tests.support.studies.planted_executor import PlantedExecutor, Truth

    from bedplate.analysis.paired import Looked
    from bedplate.campaign.paired import PairedOutcome
    from bedplate.model.cell import Cell, RunSpec

PLAN = """
title = "Pairs"
repetitions = 2
seed = 11
executor = "qemu"
[scratch_device]
image_size = "1 GB"
[[filesystem]]
type = "ext4"
block_size = "4 kB"
[[workload]]
type = "fio"
[[workload.job]]
job = "wal-append"
size = "64 MB"
"""
VARIED = "scratch_device.scheduler=none,mq-deadline"


def slower(share: float) -> Truth:
    """The deadline scheduler is slower by that share."""

    def truth(cell: Cell, _run: RunSpec) -> Mapping[str, float]:
        is_contender = cell.levels.get("device.scheduler") == "mq-deadline"
        return {BEST: 1000.0 * (1 - share if is_contender else 1.0)}

    return truth


class PairedLab:
    """A plan and a study in a directory; `play` measures with an executor."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._search = search_lab(tmp_path, monkeypatch)
        self.base = tmp_path / "base.toml"
        self.base.write_text(PLAN)
        self.plan = tmp_path / "pairs.toml"
        self.study = tmp_path / "pairs"
        self.budget_s = 3600.0
        self.condition: str | None = None
        self.accepted: tuple[str, ...] = ()
        self.metrics: tuple[str, ...] = ()

    def play(self, executor: PlantedExecutor, *, blocks: int = FIRST_LOOK) -> PairedOutcome:
        self.on(executor)
        course = UntilTold(blocks)
        plan = paired_plan(varied_key(VARIED), plan=self.base, repetitions=course.first_blocks)
        self.plan.write_text(plan.text)
        record = plan.record(
            budget_s=self.budget_s,
            margin=0.05,
            metrics=self.metrics,
            condition=self.condition,
            accepted=self.accepted,
        )
        return measure_pairs(self.plan, self.study, record, course, consent=Consent(yes=True))

    def on(self, executor: PlantedExecutor) -> None:
        self._search.on(executor)

    def read(self) -> Looked:
        return looked_at(self.study)

    def order(self) -> list[tuple[str, int]]:
        return [(v.cell_id, v.repetition) for v in read_study(self.study).schedule.visits]


def paired_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PairedLab:
    """A private place for pairs whose visits take no time."""
    return PairedLab(tmp_path, monkeypatch)
