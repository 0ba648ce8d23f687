"""What `power-cut points --json`, `power-cut try --json` and `--junit` say: the same as the words and the export, of the same records."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner
from tests.support.studies.synthetic_power_cuts import power_cut_study, recut_study
from tests.unit.model.test_fault_of_a_cut import LOST

from bedplate.analysis.condition import Truth, cell_truth, exit_status, parse_condition
from bedplate.analysis.overview import overview
from bedplate.cli import asking
from bedplate.cli.app import program
from bedplate.cli.cuts import find_run
from bedplate.cli.tried_documents import EngineTrial, junit_text, tried_document
from bedplate.cuts.blame import story_of
from bedplate.cuts.points import CUT_KINDS, is_bad_cut, read_cuts
from bedplate.cuts.records import POINTS_FILE, PointRecord
from bedplate.errors import EXIT_CANNOT_TELL, EXIT_SOME_RUNS_FAILED, PlanError
from bedplate.model import codec
from bedplate.study.power_cut_stories import keep_stories, run_names

MARKUP = '<script>&"]]>\x1b[31m\x00 says the checker'


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return power_cut_study(tmp_path_factory.mktemp("cuts") / "study")


def printed(*words: str) -> Any:
    done = CliRunner().invoke(program, ["power-cut", *words, "--json"], standalone_mode=False)
    assert done.exception is None
    return json.loads(done.stdout)


def answer_of(study: Path, fail_if: str | None = None, **changes: Any) -> EngineTrial:
    found = overview(study)
    answer = EngineTrial(found, study.with_name("plan.toml"), study.with_name("report.html"), {}, 0)
    if fail_if is not None:
        condition = parse_condition(fail_if, of_cuts=True)
        truths = {cell: cell_truth(condition, found, cell) for cell in found.cells}
        status = exit_status(truths.values())
        answer = replace(answer, condition=fail_if, truths=truths, exit_status=status)
    return replace(answer, **changes)


def parsed(text: str) -> ET.Element:
    return ET.fromstring(text)  # noqa: S314 -- what was written here


def cases(answer: EngineTrial) -> dict[tuple[str | None, str | None], ET.Element]:
    root = parsed(junit_text(answer))
    return {(case.get("classname"), case.get("name")): case for case in root.iter("testcase")}


def test_points_of_a_study_are_counted_by_kind_under_the_names_that_replay_takes(study: Path) -> None:
    document = printed("points", str(study))
    runs = {run["name"]: run for run in document["runs"]}
    assert set(runs) == set(run_names(study))
    drawn = runs["btrfs"]["kinds"]["drawn"]
    assert (drawn["cuts"], drawn["bad"]) == (40, 10)
    assert 0.25 < drawn["bad_share_high"] < 0.5
    assert runs["btrfs"]["kinds"]["control"]["cuts"] == 6
    assert runs["ext4-1"]["kinds"]["drawn"]["bad"] == 0
    assert all("bad_share_high" not in runs["btrfs"]["kinds"][kind] for kind in ("sought", "placed", "every"))
    assert not runs["btrfs"]["log_kept"]


def test_points_of_a_run_are_the_bad_ones_with_their_story(tmp_path: Path) -> None:
    study = power_cut_study(tmp_path / "study")
    run = find_run(study, "btrfs")
    bad = sorted(record.point.number for record in read_cuts(run).points if is_bad_cut(record))
    story = story_of(replace(LOST, point=bad[1]), None)
    keep_stories(study, run, [story])
    document = printed("points", str(study), "btrfs")
    assert [cut["number"] for cut in document["cuts"]] == bad
    first, second = document["cuts"][:2]
    assert (first["fault"], first["story"]) == (None, None)
    assert (second["fault"], second["fault_code"]) == ("engine", "promised-before-flushed")
    assert second["story"] == list(story.lines)
    assert first["problems"] == [f"cut {bad[0]}: {first['finding']}"]
    assert len(printed("points", str(study), "btrfs", "--all")["cuts"]) == 46
    (faults,) = next(run["faults"] for run in printed("points", str(study))["runs"] if run["explained"])
    assert faults == {"fault": "engine", "fault_code": "promised-before-flushed", "cuts": 1}


def test_blame_prints_only_its_document(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def blamed(*_arguments: object, report: Any, **_options: object) -> int:
        print("no cut was bad, but for the controls")
        report("btrfs", Path("visits/btrfs"), story_of(LOST, None))
        return 0

    monkeypatch.setattr("bedplate.cli.cuts.blame", blamed)
    document = printed("blame", str(study))
    (story,) = document["stories"]
    assert document["exit_status"] == 0
    assert (story["name"], story["number"], story["fault"]) == ("btrfs", LOST.point, "engine")
    assert story["evidence"]["lost_writes"] == LOST.lost_writes
    assert story["story"][-1].startswith("fault: engine: ")


def test_a_try_has_every_bad_cut_with_the_command_that_replays_it(study: Path) -> None:
    document = tried_document(answer_of(study, "bad"))
    assert document["exit_status"] == EXIT_SOME_RUNS_FAILED
    assert document["exit_reason"] == "--fail-if bad: holds of a cell"
    runs = {run["name"]: (cell, run) for cell in document["cells"] for run in cell["power_cuts"]}
    assert set(runs) == set(run_names(study))
    cell, btrfs = runs["btrfs"]
    assert (cell["filesystem"], cell["condition_holds"]) == ("btrfs", Truth.HOLDS.value)
    # As `show --json` and the export have it: the run of the plan.
    assert btrfs["run"] == "power-cut"
    assert len(btrfs["bad_cuts"]) == btrfs["kinds"]["drawn"]["bad"] == 10
    cut = btrfs["bad_cuts"][0]
    assert f"power-cut replay {study} btrfs {cut['number']} --keep" in cut["replay"]
    assert cut["sentence"].startswith(f"cut {cut['number']} (")
    assert runs["ext4-1"][1]["bad_cuts"] == []
    assert document["again"].endswith(f"run {study.with_name('plan.toml')} --study {study}-again")


def test_a_reason_of_the_exit_code_is_there_for_each_code(study: Path) -> None:
    answer = answer_of(study)
    assert "only with --fail-if" in answer.exit_reason
    assert replace(answer, exit_status=1).exit_reason == "not every visit was completed"
    unknown = replace(answer, condition="bad", exit_status=EXIT_CANNOT_TELL)
    assert unknown.exit_reason == "--fail-if bad: is not known of a cell"


def test_junit_has_a_test_for_each_kind_that_fails_with_a_line_for_each_bad_cut(study: Path) -> None:
    tests = cases(answer_of(study))
    drawn = tests["btrfs", "drawn"].find("failure")
    assert drawn is not None
    assert drawn.get("message") == "10 of 40 cuts bad"
    numbers = [int(line.split()[1]) for line in (drawn.text or "").splitlines()]
    assert len(numbers) == 10
    assert numbers == sorted(numbers)
    assert all(line.startswith("cut ") for line in (drawn.text or "").splitlines())
    assert len(tests["ext4-1", "drawn"]) == 0
    assert len(tests["btrfs", "verdict"]) == 0
    assert ("btrfs", "states") not in tests
    assert ("btrfs", "control") not in tests


def test_junit_counts_its_tests_and_how_they_ended(study: Path) -> None:
    root = parsed(junit_text(answer_of(study, left_out={"zfs": ("no module zfs",)})))
    tests = list(root.iter("testcase"))
    assert root.get("tests") == str(len(tests)) == str(sum(int(each.get("tests", 0)) for each in root))
    assert root.get("failures") == str(len(list(root.iter("failure")))) != "0"
    skipped = [case.get("message") for case in root.iter("skipped")]
    assert root.get("skipped") == str(len(skipped))
    assert "no module zfs" in skipped


def test_with_a_condition_what_was_not_tried_is_an_error(study: Path) -> None:
    case = cases(answer_of(study, "bad", left_out={"zfs": ("no module zfs",)}))["zfs", "verdict"]
    assert [part.tag for part in case] == ["error"]


def test_where_a_condition_does_not_hold_bad_cuts_are_output_and_no_failure(study: Path) -> None:
    answer = answer_of(study, "bad")
    assert case_parts(answer, "btrfs") == (["failure"], ["failure"])
    spared = replace(answer, truths=dict.fromkeys(answer.truths, Truth.FAILS))
    assert case_parts(spared, "btrfs") == ([], ["system-out"])
    open_question = replace(answer, truths=dict.fromkeys(answer.truths, Truth.CANNOT_TELL))
    assert case_parts(open_question, "btrfs") == (["error"], ["failure"])


def case_parts(answer: EngineTrial, name: str) -> tuple[list[str], list[str]]:
    tests = cases(answer)
    verdict, drawn = ([part.tag for part in tests[name, kind]] for kind in ("verdict", "drawn"))
    return verdict, drawn


def test_a_refused_verdict_is_an_error(tmp_path: Path) -> None:
    study = power_cut_study(tmp_path / "study", refused="xfs")
    error = cases(answer_of(study))["xfs", "verdict"].find("error")
    assert error is not None
    assert (error.get("message") or "").startswith("refused: ")


def test_cuts_in_recovery_are_tests_of_their_own_and_skipped_where_they_do_not_count(tmp_path: Path) -> None:
    study = recut_study(tmp_path / "study")
    tests = {
        name: [part.tag for part in case]
        for (name, kind), case in cases(answer_of(study)).items()
        if kind == "recovery" and name
    }
    assert ["failure"] in tests.values()
    assert [] in tests.values()
    assert tests["btrfs"] == ["skipped"]


def test_words_of_an_engine_are_text_whatever_markup_is_in_them(tmp_path: Path) -> None:
    study = power_cut_study(tmp_path / "study")
    path = find_run(study, "btrfs") / POINTS_FILE
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        record = codec.loads(PointRecord, line, source="a line")
        if record.problems:
            record = replace(record, problems=(MARKUP,))
        lines.append(codec.dumps(record, indent=None))
    path.write_text("\n".join(lines), encoding="utf-8")
    answer = answer_of(study, left_out={"<zfs>": (MARKUP,)})
    text = junit_text(answer)
    assert "<script>" not in text
    assert text.isprintable() or set(filter(lambda letter: not letter.isprintable(), text)) == {"\n"}
    failure = cases(answer)["btrfs", "drawn"].find("failure")
    assert failure is not None
    assert all('<script>&"]]>?[31m? says' in line for line in (failure.text or "").splitlines())
    by_cell = [cell["power_cuts"] for cell in tried_document(answer)["cells"]]
    found = [cut["problems"] for runs in by_cell for run in runs for cut in run["bad_cuts"]]
    assert [MARKUP] in found


def test_each_placement_of_a_cut_has_a_kind_or_is_a_control() -> None:
    assert set(CUT_KINDS.values()) == {"drawn", "sought", "placed", "states", "recovery", "every"}


def test_a_junit_file_that_cannot_be_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    def never(_types: object) -> Any:
        raise AssertionError("a plan is made")

    file = tmp_path / "file"
    file.touch()
    for path in (tmp_path, file / "junit.xml"):
        with pytest.raises(PlanError, match="name another file"):
            asking.tried(never, (), None, yes=True, fail_if=None, junit=path)


def test_a_try_writes_both_and_prints_only_its_document(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*_arguments: object, **_options: object) -> int:
        print("4 visits completed")
        return 0

    written = asking._Written(study.parent, study.with_name("plan.toml"), {})
    monkeypatch.setattr(asking, "_written", lambda *_arguments: written)
    monkeypatch.setattr(asking, "_run", run)
    junit = tmp_path / "new" / "junit.xml"
    status = asking.tried(
        lambda _types: pytest.fail("asked"), (), None, yes=True, fail_if="bad", as_json=True, junit=junit
    )
    output = capsys.readouterr()
    assert status == json.loads(output.out)["exit_status"] == EXIT_SOME_RUNS_FAILED
    assert "4 visits completed" in output.err
    assert parsed(junit.read_text(encoding="utf-8")).get("failures") != "0"
