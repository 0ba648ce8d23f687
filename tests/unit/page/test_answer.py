"""What stands first on a page says what the commands say, and nothing that they cannot bear out."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.studies.known_study import Place, known_study
from tests.support.studies.synthetic_power_cuts import RECIPE as CUT_RECIPE
from tests.support.studies.synthetic_power_cuts import power_cut_study
from tests.support.studies.synthetic_study import MACHINE, Recipe, write_study

from bedplate.analysis.answer import headline, headline_lines, short_names
from bedplate.analysis.claims import ClaimFile, claim_sentences, judge_claims, load_claims
from bedplate.analysis.overview import Overview, overview
from bedplate.model.codec import write
from bedplate.page.answer import CHOICES, StudyAnswer, study_answer
from bedplate.page.build import build_report
from bedplate.page.static import chapters_of
from bedplate.page.views import claims_view, effects_view, machines_view, page_effects
from bedplate.statistics.comparison import Verdict
from bedplate.terminal.advice_tables import advice_document, claims_document
from bedplate.terminal.compare_tables import effects_document

CLAIMS = sorted(Path(__file__).parents[3].joinpath("claims").glob("*.toml"))
RECIPE = Recipe(
    filesystem_blocks=(1024, 4096),
    database_blocks=(2048, 8192),
    runs=("read-only", "read-write"),
    repetitions=5,
    course_s=2,
)


def tps(place: Place) -> float:
    """XFS is twice as fast in writing, and small database blocks by a half; reading knows no file system."""
    noise = random.Random(f"{place.cell.id} {place.run} {place.repetition} {place.canary}").gauss(0, 0.01)
    speed = 1000.0 * (1 + noise)
    if place.run == "read-only":
        return speed
    speed *= 1.5 if place.cell.build.block_size_bytes == 2048 else 1.0
    return speed * (2.0 if place.cell.filesystem.type == "xfs" else 1.0)


def files() -> tuple[ClaimFile, ...]:
    return load_claims(CLAIMS)


def answered(found: Overview) -> StudyAnswer:
    return study_answer(found, page_effects(found), judge_claims([found], files()), 0)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Overview:
    return overview(known_study(tmp_path_factory.mktemp("answer") / "study", tps, RECIPE))


@pytest.fixture(scope="module")
def answer(found: Overview) -> StudyAnswer:
    return answered(found)


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> Overview:
    return overview(write_study(tmp_path_factory.mktemp("twice") / "study", replace(RECIPE, repetitions=2)))


def test_the_first_screen_is_the_headline_of_the_commands(found: Overview, answer: StudyAnswer) -> None:
    lines = [line.text for line in headline_lines(headline(found))]
    shown = [
        text
        for point in answer.points
        for text in (*("".join(parts) for parts in point.texts), *point.commands)
    ]
    assert sorted(lines) == sorted(shown)
    assert "Take" == answer.points[0].head
    ((cell, figures), *_) = answer.points[0].texts
    # A command stands right behind the words that it is of.
    assert lines == [f"{lead}{rest}" for point in answer.points for lead, rest, _ in point.lines]
    assert ("xfs", True) == (cell.split()[0], "db 2k" in cell)
    assert "tps" in figures


def test_sentences_beside_it_are_those_of_the_commands(found: Overview, answer: StudyAnswer) -> None:
    assert 2 <= len(answer.said) <= 3
    claims = judge_claims([found], files())
    commands: set[str] = set()
    commands |= set(claim_sentences(claims))
    effects = effects_document(page_effects(found))["effects"]
    commands |= {each["strongest"] for each in effects}
    commands |= {words for each in effects for part in each["parts"] for words in part["sentences"]}
    for said in answer.said:
        assert said.text in commands


def test_what_matters_is_that_of_the_writing_run(answer: StudyAnswer) -> None:
    matters = next(said for said in answer.said if said.section == "effects")
    assert matters.text.startswith("The factor file system has the largest share of the variation of tps")


def test_its_tables_are_those_of_the_command(found: Overview, answer: StudyAnswer) -> None:
    document = advice_document(headline(found))
    names = short_names(found)
    assert [(each["run"], each["durability"]) for each in document["contests"]] == [
        (each.run, each.durability) for each in answer.volatile.contests
    ]
    for contest, told in zip(answer.volatile.contests, document["contests"], strict=True):
        assert [names[each["cell"]] for each in told["cells"]][:CHOICES] == [
            each.cell for each in contest.choices[:CHOICES]
        ]
        assert len(told["cells"]) == len(contest.choices) + contest.more
        is_worse = [each["standing"] == "ruled out" for each in told["cells"]]
        assert is_worse[:CHOICES] == [
            each.standing.startswith(("shown worse", "worse than")) for each in contest.choices[:CHOICES]
        ]
        (taken,) = [each for each in contest.choices if each.is_taken]
        assert ("take this one", "") == (taken.standing, taken.beside)
        assert "the cell to take" == contest.relative
        assert any(each.beside.startswith("×") for each in contest.choices)


def test_unsafe_cells_are_named_and_never_recommended(answer: StudyAnswer) -> None:
    (unsafe,) = (point for point in answer.points if point.head == "Unsafe")
    assert any("nobarrier" in f"{lead}{rest}" for lead, rest in unsafe.texts)
    assert not any(
        "nobarrier" in choice.cell for contest in answer.volatile.contests for choice in contest.choices
    )


def test_a_protected_cache_makes_another_answer(answer: StudyAnswer) -> None:
    assert answer.protected is not None
    assert all("Unsafe" != point.head for contest in answer.protected.contests for point in contest.points)
    assert all("Take" == contest.points[0].head for contest in answer.protected.contests)
    cells = {each.run: len(each.choices) + each.more for each in answer.volatile.contests}
    # The four cells without barriers are as durable as the others now.
    assert {run: count + 4 for run, count in cells.items()} == {
        each.run: len(each.choices) + each.more for each in answer.protected.contests
    }


def test_two_repetitions_recommend_nothing(twice: Overview) -> None:
    found = answered(twice)
    choices = [choice for contest in found.volatile.contests for choice in contest.choices]
    assert {"not judged"} == {choice.standing for choice in choices}
    assert found.points[0].texts[0][1].startswith("read-write: 2 trusted repetitions show a figure")
    assert not any("share" in said.text for said in found.said)


def test_a_study_without_a_run_has_an_answer_too(tmp_path: Path) -> None:
    recipe = Recipe(
        filesystem_blocks=(None,),
        database_blocks=(8192,),
        repetitions=1,
        canaries=0,
        missing=((0, 1), (1, 1), (2, 1), (3, 1)),
    )
    found = answered(overview(write_study(tmp_path / "study", recipe)))
    assert "no run has a figure" in found.points[0].texts[0][1]
    assert any("are still due" in rest for point in found.points for _, rest in point.texts)


def test_effects_of_the_page_are_those_of_the_command(found: Overview) -> None:
    effects = page_effects(found)
    shown = effects_view([effects], found.runs)
    document = effects_document(effects)["effects"]
    assert {("read-write", "tps"), ("read-only", "tps")} <= {
        (found.runs[each["run"]][1], each["metric"]) for each in shown
    }
    for entry, whole in zip(shown, document, strict=True):
        assert entry["strongest"] == whole["strongest"]
        within = [design for design in entry["designs"] if not design["across"]]
        for design, part in zip(within, whole["parts"], strict=True):
            assert design["interactions"] == part["sentences"]
            baselines = {(factor, baseline) for factor, _, baseline, *_ in design["ratios"]}
            assert len(baselines) == len({factor for factor, _ in baselines})
            ratios = [effect["judged"]["ratio"] for effect in part["effects"]]
            for *_, ratio, low, high, verdict in design["ratios"]:
                assert any(abs(ratio - each) < 1e-3 * each for each in ratios)
                leaves_out = (low is not None and low > 1) or (high is not None and high < 1)
                # An interval within the margin may leave out 1 and be the same all the same.
                assert verdict == Verdict.SAME or leaves_out == bool(verdict)
    json.dumps(shown, allow_nan=False)


def test_claims_of_the_page_are_those_of_the_command(found: Overview) -> None:
    judged = judge_claims([found], files())
    view, document = claims_view(judged), claims_document(judged)
    assert tuple(document["sentences"]) == view.sentences
    for source, file in zip(view.sources, document["files"], strict=True):
        assert source.title == file["title"]
        rows = {row.id: row for row in (*source.rows, *source.not_measured)}
        assert {each["id"]: each["finding"] for each in file["claims"]} == {
            name: row.finding for name, row in rows.items()
        }
        assert all("not measured" == row.finding and row.notes for row in source.not_measured)


def test_claims_of_two_studies_say_in_which(found: Overview, twice: Overview) -> None:
    view = claims_view(judge_claims([found, twice], files()))
    studies = {row.study for source in view.sources for row in source.rows}
    assert 2 == len(studies)
    assert "" not in studies


def test_studies_of_one_machine_share_a_column_and_differences_are_marked(
    found: Overview, tmp_path: Path
) -> None:
    study = write_study(tmp_path / "other", replace(RECIPE, title="Elsewhere"))
    write(study / "machine.json", replace(MACHINE, hostname="other", tools={"mkfs.ext4": "mke2fs 1.47.3"}))
    rebooted = replace(
        found, study=replace(found.study, machine=replace(found.study.machine, boot_id="another"))
    )
    view = machines_view([found, rebooted, overview(study)])
    assert 2 == len(view.heads)
    facts = {fact.name: fact for fact in view.facts}
    assert ("bench", "other") == facts["Host"].values
    assert facts["Host"].differs
    assert not facts["CPU"].differs
    tools = {fact.name: fact.values for _, kind in view.details for fact in kind}
    assert ("mkfs.xfs version 6.13.0", None) == tools["mkfs.xfs"]


def test_a_page_judges_the_claims_that_it_is_given(tmp_path: Path) -> None:
    study = write_study(tmp_path / "study", replace(RECIPE, filesystem_blocks=(4096,)))
    own = tmp_path / "own.toml"
    own.write_text(
        'title = "Mine <b>"\n[[claim]]\nid = "one"\nsentence = "XFS is <i>fast</i>."\n[[claim.check]]\nkind = "ratio"\n'
        'run = "read-write"\nmetric = "tps"\nbaseline = "type=btrfs"\ncontender = "type=xfs"\nat_least = 1.05\n',
        encoding="utf-8",
    )
    build_report([study], tmp_path / "report.html", claims=[own])
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "XFS is &lt;i&gt;fast&lt;/i&gt;." in page
    assert "Mine &lt;b&gt;" in page
    build_report([study], tmp_path / "report.html")
    assert "What was concluded elsewhere" not in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_page_of_power_cuts_has_durability_first_and_no_word_of_speed(tmp_path: Path) -> None:
    study = power_cut_study(tmp_path / "study", recipe=replace(CUT_RECIPE, runs=(), repetitions=1))
    found = overview(study)
    told = answered(found)
    assert "Open" == told.points[0].head
    assert ((), None) == (told.volatile.contests, told.protected)
    chapters = chapters_of([found])
    assert ["answer", "durability"] == [chapter.id for chapter in chapters][:2]
    parts = {part.id for chapter in chapters for part in chapter.parts}
    assert {"effects", "courses"}.isdisjoint(parts)
    build_report([study], tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.index('id="durability-head"') < page.index('id="comparison-head"')


def test_a_page_of_speeds_has_durability_behind_them(found: Overview) -> None:
    chapters = [chapter.id for chapter in chapters_of([found])]
    assert chapters.index("durability") > chapters.index("time")
