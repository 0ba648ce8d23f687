"""The five lines of docs/EXPORT.md run a study; where its visits run is pretended."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from bedplate import registry
from bedplate.campaign import planning
from bedplate.campaign.running import Consent, plan_doubts
from bedplate.cli.status import status
from bedplate.executors.protocol import Executor, Start, StartOutcome
from bedplate.host.requirement import Need
from bedplate.model import codec
from bedplate.model.levels import Scalar
from bedplate.model.machine import Machine
from bedplate.model.plan import Plan, Pruned
from bedplate.model.reason import because
from bedplate.model.visit import FORMAT_VERSION, Outcome, VisitRecord, VisitRequest
from bedplate.study.records import StudyFacts
from bedplate.study.store import read_progress

PLAN = """
title = "Small"
repetitions = 2
executor = "qemu"
[scratch_device]
image_size = "512 MB"
[[filesystem]]
type = { vary = ["ext4", "xfs"] }
[[workload]]
type = "fio"
[[workload.job]]
job = "wal-append"
size = "64 MB"
[canary]
enabled = false
"""


class Nowhere(Executor):
    """An executor, and the runner of its visits, that need nothing and measure nothing."""

    name = "nowhere"
    runs_here = False

    def __init__(self) -> None:
        self.visits = 0

    def needs(self, filesystems: Iterable[str], workloads: Iterable[str]) -> tuple[Need, ...]:
        return ()

    def another_machine(self, plan: Plan, facts: StudyFacts, machine: Machine) -> str | None:
        return None

    def run(self, start: Start) -> StartOutcome:
        return start.one_by_one(self)

    def run_visit(
        self,
        request: VisitRequest,
        directory: Path,
        on_event: Callable[[Mapping[str, Scalar]], None],
        *,
        boot: int | None = None,
    ) -> None:
        self.visits += 1
        record = VisitRecord(
            format_version=FORMAT_VERSION,
            key=request.key,
            cell=request.cell,
            dataset=request.dataset,
            outcome=Outcome.COMPLETED,
            reasons=(),
            failed_step=None,
            started_wall_s=0.0,
            seconds=1.0,
            boot_id="b",
            executor=self.name,
        )
        codec.write(directory / "visit.json", record)

    def close(self) -> None:
        pass


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Nowhere:
    found = Nowhere()
    executor: Executor = found
    monkeypatch.setattr(planning, "executor_for", lambda _: executor)
    monkeypatch.setenv("BEDPLATE_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("BEDPLATE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return found


def test_the_lines_of_the_page_run_a_study_and_go_on_with_it(
    repository: Path, tmp_path: Path, nowhere: Nowhere, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (repository / "docs" / "EXPORT.md").read_text(encoding="utf-8")
    lines, tables, reading = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert 5 == len(lines.splitlines())
    (tmp_path / "plans").mkdir()
    (tmp_path / "plans" / "quick.toml").write_text(PLAN)
    for times in range(2):
        exec(compile(lines, "docs/EXPORT.md", "exec"), {})  # noqa: S102 -- what the page shows
        said = capsys.readouterr().out
        assert "4 of 4 visits completed" == said.splitlines()[-1]
        assert bool(times) is said.startswith("going on with")
    assert 4 == nowhere.visits
    found = read_progress(tmp_path / "my-study")
    assert (4, 0) == (found.completed, found.left)
    exec(compile(tables, "docs/EXPORT.md", "exec"), {})  # noqa: S102 -- what the page shows
    printed = capsys.readouterr().out
    assert "shape: (4, 4)" in printed
    assert 4 == printed.count("wal-append")
    exec(compile(reading, "docs/EXPORT.md", "exec"), {})  # noqa: S102 -- what the page shows
    lines_read = capsys.readouterr().out.splitlines()
    assert 4 == len(lines_read)
    assert all("wal-append" in line and line.endswith("None") for line in lines_read)


def test_a_plan_is_worked_out_once(tmp_path: Path, nowhere: Nowhere, monkeypatch: pytest.MonkeyPatch) -> None:
    from bedplate.campaign.running import run  # noqa: PLC0415
    from bedplate.plan import expand, load  # noqa: PLC0415

    calls: list[str] = []
    for module, name in ((expand, "expand"), (load, "load_plan")):
        real = getattr(module, name)

        def counted(
            *given: object, name: str = name, real: Callable[..., object] = real, **more: object
        ) -> object:
            calls.append(name)
            return real(*given, **more)

        monkeypatch.setattr(module, name, counted)
    (tmp_path / "plan.toml").write_text(PLAN)
    outcome = run(tmp_path / "plan.toml", tmp_path / "study")
    assert ["load_plan", "expand"] == calls
    assert (4, 0, 0) == (outcome.visits, outcome.failed, outcome.exit_code)
    assert outcome.start is not None
    assert 4 == nowhere.visits == outcome.start.completed


def test_a_new_study_begins_with_the_doubts_that_its_plan_has_and_goes_on_without(
    tmp_path: Path, nowhere: Nowhere, capsys: pytest.CaptureFixture[str]
) -> None:
    from bedplate.campaign.running import run  # noqa: PLC0415

    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN.replace('size = "64 MB"', 'size = "64 GB"'))
    found = planning.planned_study(plan)
    doubts = plan_doubts(found)
    assert any("scratch_device.image_size: 512 MiB may not hold the largest visit" in each for each in doubts)
    run(plan, tmp_path / "study")
    run(plan, tmp_path / "study")
    run(plan, tmp_path / "told", doubts=False)
    said = capsys.readouterr().out
    assert [f"warning: {each}" for each in doubts] == [
        line for line in said.splitlines() if line.startswith("warning: ")
    ]
    assert 8 == nowhere.visits


@pytest.mark.parametrize("doubts", [True, False])
def test_what_the_trial_of_a_start_prunes_is_said_with_its_reasons_and_kept(
    tmp_path: Path,
    nowhere: Nowhere,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    doubts: bool,
) -> None:
    from bedplate.campaign import running  # noqa: PLC0415
    from bedplate.terminal.tables import show_document, show_tables  # noqa: PLC0415

    plan, study = tmp_path / "plan.toml", tmp_path / "study"
    plan.write_text(PLAN)
    known_better = running.known_better

    def tried(found: planning.PlannedStudy, *_: object) -> planning.PlannedStudy:
        found = known_better(found, study, Consent())
        gone = next(each for each in found.expansion.cells if each.cell.filesystem.type == "xfs")
        left = tuple(each for each in found.expansion.cells if each != gone)
        why = (because("mkfs-refused", "the kernel says: no such option"),)
        visits = tuple(visit for visit in found.schedule.visits if visit.cell_id != gone.cell.id)
        numbered = tuple(replace(visit, index=index) for index, visit in enumerate(visits))
        return replace(
            found,
            expansion=replace(found.expansion, cells=left, pruned=(Pruned(gone.cell, why),)),
            schedule=replace(found.schedule, visits=numbered),
        )

    monkeypatch.setattr(running, "known_better", tried)
    running.run(plan, study, doubts=doubts)
    assert 2 == nowhere.visits
    words = "pruned: 1 cell\n    the kernel says: no such option"
    assert words in capsys.readouterr().out
    assert words.split("\n") == list(read_progress(study).pruned)
    status(study, as_json=False)
    assert "  the kernel says: no such option" in capsys.readouterr().out
    assert any(words in str(getattr(each, "plain", "")) for each in show_tables([study]))
    assert [["the kernel says: no such option"]] == [
        each["reasons"] for each in show_document([study])["studies"][0]["pruned"]
    ]


def test_a_setting_that_no_server_here_knows_is_among_the_doubts(
    tmp_path: Path, nowhere: Nowhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    del nowhere
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN)
    asked: list[int] = []

    def check(cells: Iterable[object]) -> tuple[str, ...]:
        asked.append(len(tuple(cells)))
        return ("this build lists no such setting",)

    found = planning.planned_study(plan)
    monkeypatch.setattr(registry, "engine_parts", lambda _: {"one": check, "other": check})
    assert ["this build lists no such setting"] == [each for each in plan_doubts(found) if "setting" in each]
    assert [2, 2] == asked
