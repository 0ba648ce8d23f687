"""A build that cannot be made fails its own visits, and no other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bedplate.campaign.display import LineDisplay
from bedplate.campaign.running import StudyOutcome
from bedplate.campaign.start import SharedInputs, StudyStart
from bedplate.errors import EXIT_REQUIREMENT_MISSING, BuildFailed
from bedplate.executors.protocol import StartOutcome
from bedplate.host.facts import read_machine
from bedplate.model.cell import BuildLevels
from bedplate.model.plan import Plan
from bedplate.model.visit import EngineBuild
from bedplate.plan.expand import expand
from bedplate.plan.load import load_plan
from bedplate.plan.order import order
from bedplate.study.store import StudyStore

PLAN = """repetitions = 2
[[filesystem]]
type = "ext4"
[postgresql]
block_size = { vary = ["4 kB", "8 kB"] }
[canary]
enabled = false
"""


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return load_plan(PLAN, source="plan.toml", directory=tmp_path)


@pytest.fixture
def start(plan: Plan, tmp_path: Path) -> Iterator[StudyStart]:
    expansion = expand(plan, None)
    schedule = order(plan, expansion, executor="local")
    with StudyStore.create(
        tmp_path / "study",
        plan=plan,
        plan_text=PLAN,
        plan_files={},
        machine=read_machine(),
        expansion=expansion,
        schedule=schedule,
    ) as store:
        small, usual = plan.builds
        builds = {usual: EngineBuild("/p", "18.6", 8192, 8192, "", "", "", (), "d")}
        assert small not in builds
        shared = SharedInputs(plan, expansion, builds, {}, (), erase_foreign=False)
        yield StudyStart(store, shared, LineDisplay(), store.due_visits(schedule))


def failed(*builds: BuildLevels) -> dict[BuildLevels, BuildFailed]:
    return {build: BuildFailed("patch x.patch does not apply") for build in builds}


def test_visits_of_a_failed_build_do_not_run_and_the_rest_is_due(plan: Plan, start: StudyStart) -> None:
    left = start.without_builds(failed(plan.builds[0]))
    assert {plan.builds[1]} == {start.expansion.find(v.cell_id, v.dataset_id)[0].build for v in left.visits}
    (sentence,) = left.not_built
    assert (
        "2 visits of PostgreSQL 18, 4 kB blocks did not run, as it was not built: patch x.patch does not apply"
        == sentence
    )
    outcome = StudyOutcome(
        Path("/study"), plan, 4, 0, StartOutcome(2, 0, 1.0, not_built=left.not_built), "6.1"
    )
    assert EXIT_REQUIREMENT_MISSING == outcome.exit_code


def test_a_side_alone_is_no_pair(plan: Plan, start: StudyStart, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StudyStore, "paired", object())
    left = start.without_builds(failed(plan.builds[0]))
    assert ((), 1) == (left.visits, len(left.not_built))


def test_nothing_is_due_where_no_build_is_there_and_everything_where_all_are(
    plan: Plan, start: StudyStart
) -> None:
    assert () == start.without_builds(failed(*plan.builds)).visits
    assert start.visits == start.without_builds({}).visits
