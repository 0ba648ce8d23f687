"""What a search refuses, each in a sentence and before anything is touched."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.support.studies.planted_executor import PlantedExecutor
from tests.support.studies.search_lab import BEST, CELLS, SearchLab, search_lab, truth

from bedplate.campaign.questions import SearchAsked
from bedplate.campaign.running import run
from bedplate.errors import PlanError, StudyError
from bedplate.model.plan import NotWorse

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SearchLab:
    return search_lab(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"best": "opperations_per_s"},
            r"metric .opperations_per_s. is not known; did you mean operations_per_s",
        ),
        ({"best": "transactions"}, "transactions has no best"),
        ({"runs": ("wal-apend",)}, r"no run is called 'wal-apend'; did you mean wal-append"),
        ({"runs": ()}, "a search needs --run RUN"),
        ({"best": None}, "a search needs --best METRIC"),
        ({"budget_s": None}, "a search needs --budget TIME"),
        ({"budget_s": 60.0}, "less than one block of 6 visits"),
        ({"not_worse": (NotWorse("latency_p99", 0.1),)}, "metric 'latency_p99' is not known; did you mean"),
        ({"best": "p999"}, "metric 'p999' is not known; did you mean .*p99"),
        ({"not_worse": (NotWorse(BEST, 0.1),)}, "that is the figure whose best cell is looked for"),
        ({"durable": "measured"}, r"--durable measured cuts power: give the plan a \[\[workload\]\]"),
    ],
)
def test_bad_input_is_a_sentence_each_and_touches_nothing(
    lab: SearchLab, change: dict[str, object], words: str
) -> None:
    executor = PlantedExecutor(truth)
    with pytest.raises(PlanError, match=words):
        lab.play(executor, replace(lab.asked, **change))  # type: ignore[arg-type]
    assert not lab.study.exists()
    assert [] == executor.requests


def test_all_that_is_wrong_is_said_at_once(lab: SearchLab) -> None:
    with pytest.raises(PlanError) as error:
        lab.play(PlantedExecutor(truth), SearchAsked(best="tsp", runs=("none",)))
    assert 3 == len(error.value.reasons)


def test_a_plan_of_one_cell_is_no_search(lab: SearchLab) -> None:
    one = CELLS.replace('{ vary = ["none", "mq-deadline"] }', '"none"').replace(
        '{ vary = ["128 kB", "4 MB"] }', '"4 MB"'
    )
    lab.plan.write_text(one.replace('{ vary = ["ext4", "xfs", "btrfs"] }', '"ext4"'))
    with pytest.raises(PlanError, match="a search needs two cells, and 1 of this plan's 1"):
        lab.play(PlantedExecutor(truth))


def test_a_figure_that_no_run_has_is_told_after_the_first_block(lab: SearchLab) -> None:
    executor = PlantedExecutor(truth)
    with pytest.raises(
        StudyError, match=r"6 runs of wal-append so far, and none has tps; .*operations_per_s"
    ):
        lab.play(executor, replace(lab.asked, best="tps"))
    assert 6 == len(executor.requests)


def test_an_ordinary_study_is_no_search_and_a_search_no_ordinary_study(
    lab: SearchLab, tmp_path: Path
) -> None:
    lab.on(PlantedExecutor(truth))
    run(lab.plan, tmp_path / "plain")
    ordinary, lab.study = lab.study, tmp_path / "plain"
    with pytest.raises(StudyError, match="a study of all its cells and no search"):
        lab.play(PlantedExecutor(truth))
    lab.study = ordinary
    with pytest.raises(KeyboardInterrupt):
        lab.play(PlantedExecutor(truth, stop_after=3))
    with pytest.raises(StudyError, match="is a search; `bedplate search PLAN --study"):
        run(lab.plan, lab.study)


def test_another_question_is_refused_and_an_old_budget_too(lab: SearchLab) -> None:
    with pytest.raises(KeyboardInterrupt):
        lab.play(PlantedExecutor(truth, stop_after=3))
    with pytest.raises(PlanError) as error:
        lab.play(PlantedExecutor(truth), SearchAsked(best="latency_ms_p99", durable="any", budget_s=60.0))
    assert ["--best", "--durable", "--budget"] == [
        reason.partition(":")[0] for reason in error.value.reasons[:3]
    ]


def test_nothing_is_visited_before_the_device_was_named_once_more(lab: SearchLab) -> None:
    lab.plan.write_text(CELLS.replace('image_size = "1 GB"', 'device = "/dev/disk/by-id/mine"'))
    executor = PlantedExecutor(truth)
    with pytest.raises(
        PlanError, match="this plan erases /dev/disk/by-id/mine; say that you mean it: --erase"
    ):
        lab.play(executor)
    assert not lab.study.exists()
    assert [] == executor.requests


def test_a_directory_of_something_else_is_left_alone(lab: SearchLab) -> None:
    lab.study.mkdir()
    (lab.study / "letter.txt").write_text("dear")
    with pytest.raises(StudyError, match="is not empty and no study; name another directory with --study"):
        lab.play(PlantedExecutor(truth))
    assert ["letter.txt"] == [path.name for path in lab.study.iterdir()]
