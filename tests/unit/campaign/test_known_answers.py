"""What a study's finished visits teach of right answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.support.studies.planted_reasons import planted

from bedplate.campaign.start import KnownAnswers
from bedplate.model import codec
from bedplate.model.cell import RunSpec
from bedplate.model.visit import Outcome, RunRecord, TimedItem


def run(answers: dict[str, str]) -> RunRecord:
    items = tuple(
        TimedItem("queries", asked, 1.0, facts={"answer_key": asked, "answer": digest})
        for asked, digest in answers.items()
    )
    return RunRecord(RunSpec("cold", "tpch"), Outcome.COMPLETED, items=items)


def write(visits: Path, name: str, record: RunRecord) -> Path:
    directory = visits / "cell" / "dataset" / name / "runs" / "01-cold"
    directory.mkdir(parents=True)
    codec.write(directory / "record.json", record)
    return directory / "record.json"


def test_the_first_answer_stays(tmp_path: Path) -> None:
    write(tmp_path, "1.1", run({"q1": "a"}))
    write(tmp_path, "2.1", run({"q1": "b", "q2": "c"}))
    known = KnownAnswers.of_study(tmp_path)
    assert {"q1": "a", "q2": "c"} == known.digests
    assert {
        "q1": "run cold of cell, repetition 1",
        "q2": "run cold of cell, repetition 2",
    } == known.sources


def test_an_attempt_that_is_not_the_first_is_named(tmp_path: Path) -> None:
    write(tmp_path, "3.2", run({"q1": "a"}))
    assert "run cold of cell, repetition 3, attempt 2" == KnownAnswers.of_study(tmp_path).sources["q1"]


def test_a_failed_run_and_a_damaged_record_teach_nothing(tmp_path: Path) -> None:
    write(tmp_path, "1.1", replace(run({"q1": "wrong"}), outcome=Outcome.FAILED, reasons=planted("wrong")))
    write(tmp_path, "2.1", run({"q1": "a"})).write_text("{")
    known = KnownAnswers.of_study(tmp_path)
    assert {} == known.digests
    known.learn([write(tmp_path, "3.1", run({"q1": "right"}))])
    assert {"q1": "right"} == known.digests


def test_a_timeout_and_other_items_have_no_answer(tmp_path: Path) -> None:
    record = RunRecord(
        RunSpec("cold", "tpch"),
        Outcome.COMPLETED,
        items=(TimedItem("queries", "1", None, 300.0, {"answer_key": "q1"}), TimedItem("load", "part", 2.0)),
    )
    write(tmp_path, "1.1", record)
    assert {} == KnownAnswers.of_study(tmp_path).digests
