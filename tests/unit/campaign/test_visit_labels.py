"""What visits are called while a study runs: whatever tells two of them apart is named."""

from __future__ import annotations

from pathlib import Path

from tests.support.studies.synthetic_study import MACHINE

from bedplate.campaign.start import Labels
from bedplate.plan.expand import expand
from bedplate.plan.load import load_plan
from bedplate.plan.order import order

PLAN = """
    repetitions = 2
    [canary]
    enabled = false
    [[filesystem]]
    type = "ext4"
    block_size = "4 kB"
    [sqlite]
    journal_mode = { vary = ["delete", "wal"] }
    [[workload]]
    type = "microbenchmark"
    engine = { vary = ["sqlite", "lmdb"] }
"""


def test_visits_of_several_engines_are_told_apart() -> None:
    plan = load_plan(PLAN, source="plan.toml", directory=Path())
    expansion = expand(plan, MACHINE)
    labels = Labels(expansion)
    found = {
        labels.of(*expansion.find(visit.cell_id, visit.dataset_id, canary=False), visit)
        for visit in order(plan, expansion).visits
    }
    assert {
        f"ext4 · {engine} · repetition {repetition}"
        for engine in ("SQLite · journal_mode delete", "SQLite · journal_mode wal", "LMDB")
        for repetition in (1, 2)
    } == found
