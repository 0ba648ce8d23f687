"""`bedplate bisect` from a call to its text: a history of commits that planted visits make slower."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.sources.histories import commit, repository
from tests.support.studies.paired_lab import VARIED, PairedLab, paired_lab, slower
from tests.support.studies.planted_executor import DURABLE, PlantedExecutor
from tests.support.studies.planted_places import LINKS, OWN_WORDS, make_outside, planted, seen_from
from tests.support.tools.command_line import Done, call_here
from tests.support.tools.watched_folder import watched

from bedplate.campaign.paired import PairedPlan, paired_plan, varied_key
from bedplate.cli import changes
from bedplate.model.visit import Durability

if TYPE_CHECKING:
    from collections.abc import Callable

    from bedplate.model.cell import Cell

UNSAFE = Durability("unsafe", "durable", "declared")


@dataclass
class PlantedHistory:
    """A tree whose commits no build is made of: what a commit does is planted in the visits of its study.

    `slow` are commits that are slower by a third, `broken` do not build, `failing` build and fail in their visits (`failing_both`: the good
    one beside them too), `disturbed` have
    suspect runs alone, `unsafe` lose what they promised.
    """

    lab: PairedLab
    tree: Path
    commits: list[str]
    slow: set[str] = field(default_factory=set)
    broken: set[str] = field(default_factory=set)
    failing: set[str] = field(default_factory=set)
    failing_both: set[str] = field(default_factory=set)
    disturbed: set[str] = field(default_factory=set)
    unsafe: set[str] = field(default_factory=set)
    visits: int = 0

    def paired(self, asked: changes.BisectAsked, good: str, name: str, repetitions: int) -> PairedPlan:
        assert good == self.commits[0]

        def of_contender(cells: set[str]) -> Callable[[Cell, int], bool]:
            return lambda cell, _: name in cells and cell.levels.get("device.scheduler") == "mq-deadline"

        is_unsafe, is_broken = of_contender(self.unsafe), of_contender(self.broken)
        is_failing = of_contender(self.failing)
        executor = PlantedExecutor(
            slower(0.3 if name in self.slow else 0.0),
            fails=lambda cell, at: name in self.failing_both or is_failing(cell, at),
            suspect=of_contender(self.disturbed),
            unbuilt=lambda cell: is_broken(cell, 1),
            durability=lambda cell: UNSAFE if is_unsafe(cell, 1) else DURABLE,
        )
        self.lab.on(executor)
        return paired_plan(varied_key(VARIED), plan=self.lab.base, repetitions=repetitions, title=name)


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PlantedHistory:
    lab = paired_lab(tmp_path, monkeypatch)
    tree = repository(tmp_path / "tree")
    commits = [commit(tree, f"commit {n}", {"file": str(n)}) for n in range(9)]
    found = PlantedHistory(lab, tree, commits)

    def paired(asked: changes.BisectAsked, good: str, name: str, repetitions: int) -> PairedPlan:
        return found.paired(asked, good, name, repetitions)

    monkeypatch.setattr(changes.BisectAsked, "paired", paired)
    return found


@pytest.fixture
def bisect(tmp_path: Path, history: PlantedHistory) -> Any:
    def call(*words: str, condition: str = "slower 10%", ends: tuple[str, ...] = ()) -> Done:
        good, bad = ends or (history.commits[0], "master")
        fixed = ("--postgres", str(history.tree), "--directory", "own", "--yes", "--fail-if", condition)
        return call_here("bisect", good, bad, *fixed, *words, cwd=tmp_path, COLUMNS="160")

    return call


def test_the_commit_is_found_in_fewer_visits_than_all_comparisons(
    bisect: Any, history: PlantedHistory, tmp_path: Path
) -> None:
    history.slow = set(history.commits[5:])
    done = bisect()
    assert 0 == done.returncode
    text = (tmp_path / "own" / "mail.txt").read_text(encoding="utf-8")
    assert history.commits[5] in text
    assert text in done.stdout
    assert max(map(len, text.splitlines())) <= 72
    # Both ends and three commits, in four blocks of two.
    assert "32 visits, 8 commits between the ends." in " ".join(text.split())
    # Who reads the text has to know what was measured.
    assert "\nOn ext4: fio.\n" in text
    again = bisect("--json")
    document = json.loads(again.stdout)
    assert document["ending"] == "found"
    assert document["first_bad"]["hash"] == history.commits[5]
    assert {each["verdict"] for each in document["judged"]} == {"good", "bad"}
    assert text in again.stderr


def test_a_history_in_which_nothing_changed_has_no_bad_commit(bisect: Any, history: PlantedHistory) -> None:
    done = bisect("--accept", "two-speeds")
    assert 1 == done.returncode
    assert "There is no bad commit" in done.stdout
    assert "has one of these words or codes: 'two-speeds'." in " ".join(done.stdout.split())


def test_an_emulated_device_is_called_so(bisect: Any, history: PlantedHistory) -> None:
    base = history.lab.base
    base.write_text(
        base.read_text().replace('image_size = "1 GB"', 'image_size = "1 GB"\nthrottle = "hdd-7200"')
    )
    assert "On ext4: fio. The device is emulated: hdd-7200." in " ".join(bisect().stdout.split())


def test_what_is_unsafe_is_found_by_one_block_of_each_commit(bisect: Any, history: PlantedHistory) -> None:
    history.unsafe = set(history.commits[3:])
    done = bisect(condition="unsafe")
    assert 0 == done.returncode
    assert history.commits[3] in done.stdout
    assert "unsafe after a power cut (declared); the good one: durable" in " ".join(done.stdout.split())
    assert "8 visits, 8 commits" in " ".join(done.stdout.split())
    assert "known after 1 block: " in done.stdout


def test_a_good_end_that_is_bad_itself_is_said(bisect: Any, history: PlantedHistory) -> None:
    done = bisect(condition="operations_per_s > 1")
    assert done.returncode not in (0, 1)
    assert "holds of the good commit too" in done.stderr


@pytest.mark.parametrize("kind", ["broken", "failing"])
def test_only_what_cannot_be_built_or_run_is_skipped_and_why_is_said(
    bisect: Any, history: PlantedHistory, kind: str
) -> None:
    history.slow = set(history.commits[6:])
    getattr(history, kind).add(history.commits[4])
    done = bisect()
    assert 0 == done.returncode
    assert history.commits[6] in done.stdout
    said = " ".join(done.stdout.split())
    assert f"skip {history.commits[4][:12]} commit 4" in said
    reason = "it was not built: make ended with status 2" if kind == "broken" else "completed: mkfs failed"
    assert reason in said


def test_a_commit_that_cannot_be_built_costs_no_visit_of_the_good_one(
    bisect: Any, history: PlantedHistory, tmp_path: Path
) -> None:
    history.slow, history.broken = set(history.commits[6:]), {history.commits[4]}
    bisect()
    folder = tmp_path / "own" / history.commits[4][:12]
    assert [] == list(folder.glob("study/visits/*/*/*"))


def test_an_end_that_cannot_be_built_is_said_and_no_commit_is_looked_for(
    bisect: Any, history: PlantedHistory
) -> None:
    history.broken = {history.commits[-1]}
    done = bisect()
    assert 3 == done.returncode
    assert "make ended with status 2: error: x" in done.stderr


def test_an_end_that_does_not_run_ends_it_after_one_block_with_its_cause(
    bisect: Any, history: PlantedHistory, tmp_path: Path
) -> None:
    history.failing = {history.commits[-1]}
    done = bisect()
    assert done.returncode not in (0, 1)
    said = " ".join(done.stderr.split())
    assert "both ends must have what is asked for before a commit is looked for; no run of" in said
    assert "completed: mkfs failed in" in said
    assert "--budget" not in said
    assert 2 == len(list((tmp_path / "own" / "both-ends" / "study" / "visits").glob("*/*/*/visit.json")))


def test_a_figure_that_no_end_has_ends_it_after_one_block(bisect: Any, tmp_path: Path) -> None:
    done = bisect(condition="tps worse 10%")
    assert done.returncode not in (0, 1)
    said = " ".join(done.stderr.split())
    assert "no run has tps: no run has a value of tps; they have" in said
    assert "--budget" not in said
    assert 2 == len(list((tmp_path / "own" / "both-ends" / "study" / "visits").glob("*/*/*/visit.json")))


def test_a_commit_beside_which_the_good_one_fails_is_not_skipped(
    bisect: Any, history: PlantedHistory
) -> None:
    history.slow = set(history.commits[6:])
    history.failing_both = {history.commits[4]}
    done = bisect()
    assert done.returncode not in (0, 1)
    assert "the good commit has no figure beside it, so nothing is said of this one" in " ".join(
        done.stderr.split()
    )


def test_a_commit_whose_runs_cannot_be_believed_is_not_skipped(bisect: Any, history: PlantedHistory) -> None:
    history.slow = set(history.commits[6:])
    history.disturbed = {history.commits[4]}
    done = bisect("--budget", "12min")
    assert done.returncode not in (0, 1)
    assert "no run of it could be believed, and a commit is not skipped for that" in " ".join(
        done.stderr.split()
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--fail-if", "slow"), "these would do: 'slower 10%'"),
        (("--linux", "/tree"), "by one of --postgres TREE and --linux TREE"),
        (("--budget", "1min"), "the first look comes after 4 blocks"),
    ],
)
def test_a_wrong_call_is_refused_before_anything_is_made(
    bisect: Any, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    done = bisect(*words)
    assert 2 == done.returncode
    assert said in " ".join(done.stderr.split())
    assert not (tmp_path / "own").exists()


def test_one_commit_as_both_ends_is_refused(bisect: Any, history: PlantedHistory, tmp_path: Path) -> None:
    done = bisect(ends=("master", history.commits[-1]))
    assert 2 == done.returncode
    assert "are the same commit" in done.stderr
    assert not (tmp_path / "own").exists()


def test_kernels_of_a_tree_are_said_to_be_built_and_not_to_be_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bedplate.campaign.preparation.is_root", lambda: True)
    tree = repository(tmp_path / "linux")
    good, bad = (
        commit(tree, f"commit {n}", {"Makefile": f"VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = {n}\n"})
        for n in range(2)
    )
    done = call_here(
        *("bisect", good, bad, "--kernel", str(tree), "--fail-if", "unsafe"),
        cwd=tmp_path,
        COLUMNS="250",
        BEDPLATE_CACHE=str(tmp_path / "cache"),
    )
    assert "nobody can be asked here" in done.stderr
    assert f"to build 2 commits of {tree} before that" in done.stdout
    assert "fetches" not in done.stdout


@pytest.mark.parametrize(
    "name", ["both-ends", "both-ends/plan.toml", "both-ends/study", "bisect.json", "mail.txt"]
)
def test_nothing_is_written_through_a_link_in_the_folder_of_a_bisection(
    bisect: Any, history: PlantedHistory, tmp_path: Path, name: str
) -> None:
    outside = make_outside(tmp_path / "outside")
    before = seen_from(outside)
    (tmp_path / "own").mkdir()
    for kind in LINKS:
        with planted(tmp_path / "own" / name, kind, outside), watched(outside) as events:
            done = bisect()
            assert [] == events.events(), done.stderr
            assert OWN_WORDS not in done.stdout + done.stderr
        shutil.rmtree(tmp_path / "own")
        (tmp_path / "own").mkdir()
    assert before == seen_from(outside)
