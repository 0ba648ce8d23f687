"""A bisection from both ends to its text: found, not found, killed at each step, skipped, with hostile subjects."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from tests.support.sources.histories import commit, repository

from bedplate.campaign.bisection import (
    BAD,
    BISECT_VERSION,
    BY_ESTIMATE,
    BY_FAILURE,
    BY_INTERVAL,
    COLUMNS,
    GOOD,
    SKIP,
    Bisected,
    BisectEnding,
    BisectionRecord,
    Ends,
    JudgedCommit,
    bisect,
    ends_of,
    mail_text,
    write_bisection,
)
from bedplate.errors import StudyError
from bedplate.model.cell import SourceCommit

CONDITION = "slower 10%"
HOSTILE = "<script>alert(1)</script> \x1b[31mred\x1b[0m \u202e " + "x" * 10_000


@dataclass
class KnownCommits:
    """Judges by what a test planted; `stop_after` verdicts a Ctrl-C comes."""

    bad: set[str]
    skipped: set[str] = field(default_factory=set)
    by_estimate: set[str] = field(default_factory=set)
    bad_end: str = BAD
    stop_after: int | None = None
    asked: list[str] = field(default_factory=list)

    def ends(self, bad: SourceCommit) -> JudgedCommit:
        self._count()
        return JudgedCommit(
            bad.hash,
            bad.subject,
            self.bad_end,
            BY_INTERVAL,
            "tps ×0.80 (0.77 to 0.83): slower",
            "both-ends/study",
            8,
        )

    def commit(self, candidate: SourceCommit) -> JudgedCommit:
        self._count()
        self.asked.append(candidate.hash)
        if candidate.hash in self.skipped:
            return JudgedCommit(
                candidate.hash, candidate.subject, SKIP, BY_FAILURE, "cannot be built: error: x", ""
            )
        verdict = BAD if candidate.hash in self.bad else GOOD
        basis = BY_ESTIMATE if candidate.hash in self.by_estimate else BY_INTERVAL
        return JudgedCommit(
            candidate.hash, candidate.subject, verdict, basis, "tps ×1.00 (0.98 to 1.02)", "study", 8
        )

    def _count(self) -> None:
        if self.stop_after is not None:
            if self.stop_after == 0:
                raise KeyboardInterrupt
            self.stop_after -= 1


@pytest.fixture
def commits(tmp_path: Path) -> list[str]:
    tree = repository(tmp_path / "tree")
    return [commit(tree, f"commit {n}" if n != 5 else HOSTILE, {"file": str(n)}) for n in range(9)]


@pytest.fixture
def ends(tmp_path: Path, commits: list[str]) -> Ends:
    return ends_of(tmp_path / "tree", commits[0], commits[8])


def record(ends: Ends) -> BisectionRecord:
    return BisectionRecord(BISECT_VERSION, str(ends.tree), ends.good.hash, ends.bad.hash, CONDITION, "digest")


def played(tmp_path: Path, ends: Ends, judge: KnownCommits) -> Bisected:
    place = tmp_path / "own"
    place.mkdir(exist_ok=True)
    return bisect(place, ends, record(ends), judge, tell=lambda _: None)


def text_of(found: Bisected) -> str:
    return mail_text(found, sentences=["Measured by bedplate on a machine of a test."])


def test_the_commit_is_found_and_its_parent_bears_it_out(
    tmp_path: Path, ends: Ends, commits: list[str]
) -> None:
    found = played(tmp_path, ends, KnownCommits(set(commits[3:])))
    assert BisectEnding.FOUND is found.ending
    assert found.first_bad is not None
    assert commits[3] == found.first_bad.hash
    assert [commits[2]] == [parent.hash for parent in found.parents]
    text = text_of(found)
    assert commits[3] in text
    assert "Subject: [bisected] slower 10%: commit 3" in text
    assert f"its parent {commits[2][:12]}: " in text


@pytest.mark.parametrize("after", range(4))
def test_killed_at_each_step_it_comes_to_the_same_text_and_asks_for_nothing_twice(
    tmp_path: Path, ends: Ends, commits: list[str], after: int
) -> None:
    judge = KnownCommits(set(commits[5:]), stop_after=after)
    with pytest.raises(KeyboardInterrupt):
        played(tmp_path, ends, judge)
    again = KnownCommits(set(commits[5:]))
    text = text_of(played(tmp_path, ends, again))
    assert not set(judge.asked) & set(again.asked)
    (tmp_path / "whole").mkdir()
    whole = bisect(
        tmp_path / "whole", ends, record(ends), KnownCommits(set(commits[5:])), tell=lambda _: None
    )
    assert text_of(whole) == text


@pytest.mark.parametrize(
    ("verdict", "ending", "words"),
    [
        (GOOD, BisectEnding.NO_BAD_COMMIT, "There is no bad commit"),
        (SKIP, BisectEnding.NOT_KNOWN, "is not known, so no commit was looked for"),
    ],
)
def test_a_bad_end_that_is_not_bad_ends_it_before_a_commit_is_asked_for(
    tmp_path: Path, ends: Ends, verdict: str, ending: BisectEnding, words: str
) -> None:
    judge = KnownCommits(set(), bad_end=verdict)
    found = played(tmp_path, ends, judge)
    assert (ending, []) == (found.ending, judge.asked)
    assert words in " ".join(text_of(found).split())


def test_ends_that_were_not_known_are_measured_again_with_more_time(
    tmp_path: Path, ends: Ends, commits: list[str]
) -> None:
    assert BisectEnding.NOT_KNOWN is played(tmp_path, ends, KnownCommits(set(), bad_end=SKIP)).ending
    found = played(tmp_path, ends, KnownCommits(set(commits[3:])))
    assert BisectEnding.FOUND is found.ending


def test_a_commit_that_does_not_build_is_skipped_and_said(
    tmp_path: Path, ends: Ends, commits: list[str]
) -> None:
    found = played(tmp_path, ends, KnownCommits(set(commits[6:]), skipped={commits[4]}))
    assert found.first_bad is not None
    assert commits[6] == found.first_bad.hash
    assert f"skip {commits[4][:12]}" in text_of(found)
    assert "cannot be built: error: x" in text_of(found)


def test_where_skipped_commits_hide_it_all_that_it_may_be_are_named(
    tmp_path: Path, ends: Ends, commits: list[str]
) -> None:
    found = played(tmp_path, ends, KnownCommits(set(commits[5:]), skipped={commits[4], commits[5]}))
    assert BisectEnding.SKIPPED is found.ending
    assert {commits[4], commits[5], commits[6]} == {each.hash for each in found.any_of}
    assert "is one of these 3" in text_of(found)


def test_what_an_estimate_decided_is_said(tmp_path: Path, ends: Ends, commits: list[str]) -> None:
    found = played(tmp_path, ends, KnownCommits(set(commits[3:]), by_estimate={commits[2]}))
    assert [commits[2]] == [each.commit for each in found.record.judged if each.basis == BY_ESTIMATE]
    assert "by the estimate: its time was gone" in " ".join(text_of(found).split())


def test_a_hostile_subject_is_one_line_of_the_text_without_what_a_terminal_obeys(
    tmp_path: Path, ends: Ends, commits: list[str]
) -> None:
    text = text_of(played(tmp_path, ends, KnownCommits(set(commits[5:]))))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert max(map(len, text.splitlines())) <= COLUMNS
    assert len(text) < 5000
    assert "<script>alert(1)</script>" in text


def test_another_bisection_in_the_same_folder_is_refused(
    tmp_path: Path, ends: Ends, commits: list[str]
) -> None:
    played(tmp_path, ends, KnownCommits(set(commits[3:])))
    other = ends_of(ends.tree, commits[1], commits[8])
    with pytest.raises(StudyError, match="has another bisection"):
        played(tmp_path, other, KnownCommits(set(commits[3:])))


@pytest.mark.parametrize(
    ("verdict", "is_commit"), [("run", False), ("replay", False), ("good", False), ("run", True)]
)
def test_no_word_of_a_strangers_record_is_handed_to_git(
    tmp_path: Path, ends: Ends, commits: list[str], verdict: str, is_commit: bool
) -> None:
    # `git bisect run PROGRAM` starts it.
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    program.chmod(0o755)
    name = commits[4] if is_commit else str(program)
    judge = KnownCommits(set(commits[3:]))
    at_end = judge.ends(ends.bad)
    (tmp_path / "own").mkdir()
    planted = JudgedCommit(name, "a commit", verdict, BY_INTERVAL, "words", "study")
    write_bisection(tmp_path / "own", replace(record(ends), ends=at_end, judged=(planted,)))
    with pytest.raises(StudyError, match=f"has the verdict '{verdict}' on"):
        played(tmp_path, ends, judge)
    assert not (tmp_path / "sprung").exists()
