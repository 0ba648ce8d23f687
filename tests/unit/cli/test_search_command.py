"""`bedplate search`: what is refused before anything is touched, and what the end says."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from html import unescape
from typing import TYPE_CHECKING

import pytest
from tests.support.studies.synthetic_search import SearchRecipe, write_search

from bedplate.analysis.answer import fitted, instead_lines
from bedplate.analysis.overview import overview
from bedplate.analysis.search import answer_lines, name, searched, set_up
from bedplate.campaign import searching
from bedplate.campaign.searching import SearchOutcome
from bedplate.cli.app import call
from bedplate.cli.ask import tell
from bedplate.errors import PlanError, StudyError
from bedplate.executors.protocol import StartOutcome
from bedplate.model.plan import NotWorse
from bedplate.statistics.search import Ending

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.campaign.questions import SearchAsked


def words(tmp_path: Path, *more: str) -> list[str]:
    return ["search", "quick", "--study", str(tmp_path / "s"), *more]


def test_a_budget_that_is_no_time_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == call(words(tmp_path, "--budget", "soon"))
    assert "'soon' is not a duration" in capsys.readouterr().err


def test_a_class_that_there_is_not_is_refused_with_those_that_there_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 2 == call(words(tmp_path, "--durable", "somewhat"))
    assert "'volatile', 'protected', 'bounded', 'measured', 'any'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("p99", "write a figure and a share"),
        ("latency_ms_p99:much", "is no share"),
        ("p99:much", "is no share"),
        (":10%", "write a figure"),
    ],
)
def test_a_bound_that_is_not_understood_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(PlanError, match=said):
        call(words(tmp_path, "--not-worse", text))
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("name", ["p99", "latency_ms_p99"])
def test_percentiles_are_asked_for_by_their_short_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    asked: list[SearchAsked] = []

    def search(plan: Path, study: Path, question: SearchAsked, *_: object, **__: object) -> SearchOutcome:
        asked.append(question)
        raise PlanError("nothing is visited")

    monkeypatch.setattr(searching, "search", search)
    with pytest.raises(PlanError, match="nothing is visited"):
        call(words(tmp_path, "--best", "p50", "--not-worse", f"{name}:10%"))
    assert [("latency_ms_p50", (NotWorse("latency_ms_p99", 0.1),))] == [
        (each.best, each.not_worse) for each in asked
    ]


def test_the_end_says_the_cell_its_lines_the_proof_what_mattered_and_what_more_time_would_buy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = write_search(tmp_path / "study")
    outcome = SearchOutcome(study, StartOutcome(33, 0, 60.0), True, True, "6.12")
    assert 0 == tell(outcome, "bedplate search plan.toml --study study")
    said = capsys.readouterr().out
    for part in (
        "33 visits completed, 0 failed",
        "This one: xfs",
        "mkfs.xfs -b size=4096 DEVICE",
        "mount -o noatime DEVICE DIRECTORY",
        "over the plan's first cell, ext4 barrier",
        "5 repetitions that took no part in the choice",
        "mattered     file system: xfs is 1.",
        "left out     6 cells: without barriers",
        "another hour is about 37 visits",
        f"`bedplate run {study} --repetitions 3`",
    ):
        assert part in said


def test_a_search_under_way_says_where_it_is_and_names_no_winner(tmp_path: Path) -> None:
    found = searched(overview(write_search(tmp_path / "study", SearchRecipe(blocks=2))))
    assert found is not None
    (line,) = answer_lines(found)
    assert " leads; " in line
    assert "chance" not in line
    assert "This one" not in line


def test_an_end_without_time_says_the_best_guess_its_chance_and_the_budget_that_would_do(
    tmp_path: Path,
) -> None:
    found = searched(overview(write_search(tmp_path / "study", SearchRecipe(budget_visits=13))))
    assert found is not None
    said = "\n".join(answer_lines(found))
    assert said.startswith(
        "Not known: the budget ended, and there was no time for a proof.\nThe best guess is xfs"
    )
    assert "--budget " in said


def test_the_proof_of_a_cell_that_is_not_the_best_guess_names_whose_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = searched(overview(write_search(tmp_path / "study")))
    assert found is not None
    end = found.end
    assert end is not None
    assert end.proof is not None
    visits = Counter(each.cell for each in found.tried if each.value is not None)
    others = [at for at in range(len(found.entrants.cells)) if at != end.proof.leader]
    never, once, often = (
        next(at for at in others if visits[at] in wanted) for wanted in ((0,), (1, 2), range(3, 99))
    )
    # A chance from fewer than three visits is what the model was given, not what was seen.
    seen = {
        never: (", which was never visited: the model expects ",),
        once: (", with ", f"{visits[once]} visit{'s' * (visits[once] > 1)} of it cannot give a chance."),
        often: (", with ", "It is within 5 % of the best"),
    }
    for guess, words in seen.items():
        unknown = replace(found)
        # As where the budget ends while the model trusts a cell outside of the proof most.
        unknown.__dict__["after"] = replace(end, ending=Ending.NOT_KNOWN, cells=(guess,), chance=0.2)
        with monkeypatch.context() as patch:
            patch.setattr("bedplate.analysis.search.stages", lambda _, only=unknown: (only,))
            lines = answer_lines(unknown)
        assert f"The best guess is {name(found, guess)}{words[0]}" in lines[1]
        assert words[-1] in " ".join(lines[1:3])
        whose = [line for line in lines if line.startswith("  proof        of ")]
        assert [
            f"  proof        of {name(found, end.proof.leader)}, which led when the last proof began"
        ] == whose
        assert any(
            line.startswith("  gain         of that cell over the plan's first cell") for line in lines
        )
    assert not any("which led when" in line for line in answer_lines(found))


def test_status_says_who_leads_and_what_is_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = write_search(tmp_path / "study", SearchRecipe(blocks=2))
    assert 0 == call(["show", str(study), "--status"])
    said = capsys.readouterr().out
    assert "search       xfs" in said
    assert "2 h 51 min of its budget at most" in said
    assert 0 == call(["show", str(study), "--status", "--json"])
    assert '"leader": ' in capsys.readouterr().out


def test_advice_of_a_search_is_its_answer_and_never_the_best_of_chosen_means(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = write_search(tmp_path / "study")
    found = searched(overview(study))
    assert found is not None
    assert not call(["show", str(study), "--advice"])
    said = capsys.readouterr().out
    assert list(answer_lines(found)) == said.splitlines()
    assert not call(["show", str(study), "--advice", "--json"])
    document = json.loads(capsys.readouterr().out)
    assert list(answer_lines(found)) == document["answer"]
    assert "this one" == document["search"]["ending"]
    for option in (("--workload", "read-write"), ("--durability", "durable"), ("--cells", "type=xfs")):
        with pytest.raises(StudyError, match="leave --cells, --workload and --durability out"):
            call(["show", str(study), "--advice", *option])


def test_a_summary_and_the_page_of_all_studies_give_the_answer_of_a_search(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = write_search(tmp_path / "study")
    found = searched(overview(study))
    assert found is not None
    first = answer_lines(found)[0]
    assert not call(["show", str(study), "--mail"])
    said = capsys.readouterr().out
    assert first.split(".")[0] in " ".join(said.split())
    assert "Take" not in said
    # No table of the means of cells that were chosen.
    assert "mean of n" not in said
    assert not call(["show", str(study), "--mail", "--cells", "type=xfs"])
    said = " ".join(capsys.readouterr().out.split())
    assert "The answer of a search is of all its cells" in said
    assert "Take" not in said
    assert not call(["index", str(tmp_path)])
    text = unescape((tmp_path / "index.html").read_text(encoding="utf-8"))
    assert first in text
    assert "Take" not in text


def test_a_command_of_the_named_cell_is_copied_whole(tmp_path: Path) -> None:
    found = searched(overview(write_search(tmp_path / "study")))
    assert found is not None
    assert found.end is not None
    made = set_up(found.overview, found.id_of(found.end.cells[0]))
    assert made.commands
    lines = instead_lines(found.overview)
    assert list(made.commands) == [line.text for line in lines if line.copied]
    assert "Search" == lines[0].head
    short = " ".join(fitted(lines, columns=80))
    assert made.commands[0] in short


def test_cells_that_would_do_as_well_are_counted(tmp_path: Path) -> None:
    found = searched(overview(write_search(tmp_path / "study")))
    assert found is not None
    assert found.end is not None
    said = "  as good      "
    assert not [line for line in answer_lines(found) if line.startswith(said)]
    named = {found.id_of(number) for number in found.end.cells}
    first, second = [each.id for each in found.cells if each.id not in named and each.closed is None][:2]
    near = {first: 0.96, second: 0.99}
    # What the model says of a flatter plan.
    vars(found)["cells"] = tuple(replace(each, near=near.get(each.id, each.near)) for each in found.cells)
    (line,) = (line for line in answer_lines(found) if line.startswith(said))
    assert "2 more cells are within 5 % of the best, each with a chance of 95 % at least" in line
    assert line.endswith(found.labels[second].full)
