"""`bedplate ab` from the call: what is refused, what is shown, and the answer of planted visits."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.studies.paired_lab import VARIED, PairedLab, paired_lab, slower
from tests.support.studies.planted_executor import PlantedExecutor
from tests.support.studies.planted_places import LINKS, OWN_WORDS, make_outside, planted, seen_from
from tests.support.tools.command_line import Done, call_here
from tests.support.tools.watched_folder import watched

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PairedLab:
    return paired_lab(tmp_path, monkeypatch)


@pytest.fixture
def ab(tmp_path: Path, lab: PairedLab) -> Any:
    def call(*words: str) -> Done:
        return call_here("ab", *words, cwd=tmp_path, COLUMNS="160", BEDPLATE_CACHE=str(tmp_path / "cache"))

    return call


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "say what changes, by one of --postgres TREE, --kernel OLD NEW and --vary KEY=ONE,OTHER"),
        (("--kernel", "6.1", "6.12", "--vary", "barrier=true,false"), "found --kernel and --vary"),
        (
            ("--kernel", "--vary", "barrier=true,false"),
            "--kernel takes two kernels, found '--vary barrier=true,false'",
        ),
        (("--kernel", "6.1"), "option '--kernel' requires 2 arguments"),
        (("6.1", "--vary", "barrier=true,false"), "--vary has both sides itself; '6.1' is not needed"),
        (("--vary", "barrier=true,false", "--budget", "1min"), "the first look comes after 4 blocks"),
        (("--vary", "barrier=true,false", "--fail-if", "slow"), "these would do: 'slower 10%'"),
        (("--vary", "barrier=true,false", "--plan", "quick", "--on", "xfs"), "leave out --on"),
    ],
)
def test_a_call_that_cannot_be_answered_is_refused_before_anything_is_written(
    ab: Any, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    before = sorted(tmp_path.iterdir())
    done = ab(*words)
    assert done.returncode in (2, 125)
    assert said in " ".join(done.stderr.split())
    assert before == sorted(tmp_path.iterdir())


def test_the_plan_is_shown_with_its_time_and_nobody_to_ask_begins_nothing(ab: Any, tmp_path: Path) -> None:
    done = ab("--vary", "barrier=true,false")
    assert 2 == done.returncode
    assert "nobody can be asked here" in done.stderr
    assert "ends      when it can tell, or after 2 h 00 min of visits" in done.stdout
    assert "barrier = { vary = [true, false] }" in done.stdout
    place = tmp_path / "ab-barrier-true-barrier-false"
    assert ["plan.toml"] == [path.name for path in place.iterdir()]


def test_it_ends_with_an_answer_of_at_most_eight_lines_and_a_page(
    ab: Any, lab: PairedLab, tmp_path: Path
) -> None:
    lab.on(PlantedExecutor(slower(0.2)))
    done = ab("--vary", VARIED, "--plan", str(lab.base), "--directory", "own", "--yes")
    assert 0 == done.returncode
    _, _, said = done.stdout.partition("report: own/report.html\n\n")
    assert said.startswith("Slower: scheduler=mq-deadline beside scheduler=none.")
    assert len(said.splitlines()) <= 8
    page = (tmp_path / "own" / "report.html").read_text(encoding="utf-8")
    assert "Slower: scheduler=mq-deadline beside scheduler=none." in page
    again = ab("--vary", VARIED, "--plan", str(lab.base), "--directory", "own", "--yes")
    assert said == again.stdout.partition("report: own/report.html\n\n")[2]


def test_as_json_the_answer_is_one_document_and_all_else_goes_to_standard_error(
    ab: Any, lab: PairedLab
) -> None:
    lab.on(PlantedExecutor(slower(0.2)))
    done = ab("--vary", VARIED, "--plan", str(lab.base), "--directory", "own", "--yes", "--json")
    assert 0 == done.returncode
    document = json.loads(done.stdout)
    assert document["answer"][0] == "Slower: scheduler=mq-deadline beside scheduler=none."
    assert (document["study"], document["report"]) == ("own/study", "own/report.html")
    assert (document["is_known"], document["condition_holds"]) == (True, None)
    first = document["lines"][0]
    assert (first["metric"], first["verdict"]) == ("operations_per_s", "slower")
    assert 0.7 < first["low"] <= first["estimate"] <= first["high"] < 0.9
    assert "report: own/report.html" in done.stderr


@pytest.mark.parametrize(("share", "code"), [(0.2, 1), (0.0, 0)])
def test_a_condition_is_the_exit_code(ab: Any, lab: PairedLab, share: float, code: int) -> None:
    lab.on(PlantedExecutor(slower(share)))
    done = ab("--vary", VARIED, "--plan", str(lab.base), "--yes", "--fail-if", "slower 10%")
    assert code == done.returncode
    assert f"“slower 10%” {'holds' if code else 'does not hold'}" in done.stdout


@pytest.mark.parametrize("name", ["plan.toml", "study", "report.html", ".report.html.part"])
def test_nothing_is_written_through_a_link_in_the_place_of_a_question(
    ab: Any, lab: PairedLab, tmp_path: Path, name: str
) -> None:
    """The place may have come with somebody's study in it; the call names the place alone."""
    lab.on(PlantedExecutor(slower(0.2)))
    outside = make_outside(tmp_path / "outside")
    before = seen_from(outside)
    for kind in LINKS:
        place = tmp_path / f"own {kind}"
        place.mkdir()
        with planted(place / name, kind, outside), watched(outside) as events:
            done = ab("--vary", VARIED, "--plan", str(lab.base), "--directory", str(place), "--yes")
            assert [] == events.events(), done.stderr
            assert OWN_WORDS not in done.stdout + done.stderr
            if name in ("plan.toml", "study"):
                assert 2 == done.returncode, done.stdout
    assert before == seen_from(outside)
