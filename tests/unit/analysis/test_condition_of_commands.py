"""`--fail-if` of every command that takes it: one grammar, one text where it is not understood, one answer of one planted study."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.support.studies.paired_lab import VARIED, PairedLab, paired_lab, slower
from tests.support.studies.planted_executor import DURABLE, PlantedExecutor
from tests.support.studies.search_lab import BEST
from tests.support.studies.synthetic_power_cuts import power_cut_study
from tests.support.tools.command_line import call_here

from bedplate.analysis.condition import (
    EXAMPLES,
    ConditionSubject,
    Truth,
    cell_truth,
    exit_status,
    parse_condition,
)
from bedplate.analysis.overview import overview
from bedplate.analysis.paired import paired_truth
from bedplate.errors import PlanError
from bedplate.model.visit import Durability

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.model.cell import Cell

HOLDS, FAILS, CANNOT_TELL = Truth.HOLDS, Truth.FAILS, Truth.CANNOT_TELL


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PairedLab:
    return paired_lab(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("text", "subject", "blocks"),
    [
        ("slower 10%", ConditionSubject.SIDES, 4),
        ("worse", ConditionSubject.SIDES, 4),
        ("latency_ms_p99 worse 10%", ConditionSubject.SIDES, 4),
        ("p99 worse 10 %", ConditionSubject.SIDES, 4),
        ("flushes per appending fsync < 1", ConditionSubject.FLUSHES, 1),
        ("flushes per overwriting fsync on the journal device > 2", ConditionSubject.FLUSHES, 1),
        ("tps < 1000", ConditionSubject.FIGURE, 4),
        ("tps<1e3", ConditionSubject.FIGURE, 4),
        ("p99 > 20.5", ConditionSubject.FIGURE, 4),
        ("unsafe", ConditionSubject.CLASS, 1),
        (" bad ", ConditionSubject.CUTS, 1),
        ("worse than promised", ConditionSubject.CUTS, 1),
    ],
)
def test_each_kind_is_understood(text: str, subject: ConditionSubject, blocks: int) -> None:
    found = parse_condition(text)
    assert (subject, blocks) == (found.subject, found.first_blocks)


def test_the_examples_are_of_every_kind_and_are_understood() -> None:
    assert EXAMPLES == {text: parse_condition(text).subject for text in EXAMPLES}
    assert set(ConditionSubject) == set(EXAMPLES.values())


@pytest.mark.parametrize("of_cuts", [False, True])
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "'' is not understood"),
        ("slow", "did you mean slower?"),
        ("slower 5", "'5' is no share; write a number and a percent sign"),
        ("faster than before", "'than before' is no share"),
        ("worse than before", "'than before' is no share"),
        ("tps", "nothing is said of tps"),
        ("10%", "'10%' is not understood"),
        ("tsp slower 5%", "no metric is 'tsp'; did you mean tps"),
        ("tsp < 1", "no metric is 'tsp'; did you mean tps"),
        ("qqqq < 1", "no metric is 'qqqq'; docs/METRICS.md has them"),
        ("tps < x", "a bound is a number without a unit, found 'x'"),
        ("tps <= 5", "a bound is a number without a unit, found '= 5'"),
        ("latency_ms_p99 > 20 ms", "found '20 ms'"),
        ("flushes < 1", "flushes are those per appending or overwriting fsync"),
        ("tps_cv slower 5%", "tps_cv is no speed"),
        ("unsave", "did you mean unsafe?"),
        ("<script>", "'<script>' is not understood"),
        ("x" * 10_000, "is not understood"),
    ],
)
def test_nonsense_is_answered_by_one_sentence_with_what_would_do(
    text: str, words: str, *, of_cuts: bool
) -> None:
    with pytest.raises(PlanError) as refused:
        parse_condition(text, of_cuts=of_cuts)
    (reason,) = refused.value.reasons
    assert words in reason
    assert "these would do: " in reason
    assert ("'slower 10%'" in reason) is not of_cuts
    assert len(reason) < 700


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("bad", "bad"),
        ("worse", "worse than promised"),
        ("worse than promised", "worse than promised"),
        ("unsafe", "unsafe"),
        ("flushes per appending fsync < 1", ""),
        ("slower 5%", None),
        ("worse 5%", None),
        ("p99 worse 5%", None),
        ("tps < 1000", None),
    ],
)
def test_of_cells_whose_power_is_cut_what_needs_another_side_or_a_figure_is_refused(
    text: str, word: str | None
) -> None:
    if word is not None:
        assert word == parse_condition(text, of_cuts=True).word
        return
    with pytest.raises(PlanError, match=r"it (compares two sides|bounds a figure).*these would do: 'flushes"):
        parse_condition(text, of_cuts=True)


def unsafe(cell: Cell) -> Durability:
    is_contender = cell.levels.get("device.scheduler") == "mq-deadline"
    return Durability("unsafe", "durable", "declared") if is_contender else DURABLE


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("slower 10%", HOLDS),
        (f"{BEST} worse 10%", HOLDS),
        (f"{BEST} worse 60%", FAILS),
        ("faster", FAILS),
        (f"{BEST} < 900", HOLDS),
        (f"{BEST} > 900", FAILS),
        ("tps < 900", CANNOT_TELL),
        ("unsafe", HOLDS),
        ("bad", CANNOT_TELL),
        ("worse than promised", CANNOT_TELL),
        ("flushes per appending fsync < 1", CANNOT_TELL),
    ],
)
def test_one_study_has_one_answer_whichever_command_is_asked(lab: PairedLab, text: str, truth: Truth) -> None:
    lab.play(PlantedExecutor(slower(0.2), durability=unsafe), blocks=6)
    found = lab.read()
    (pair,) = found.record.pairs
    condition = parse_condition(text)
    of_pairs = paired_truth(condition, found.overview, found.record, found.lines)
    sides = ("--baseline", pair.baseline, "--contender", pair.contender)
    compared = call_here("compare", lab.study, *sides, "--fail-if", text)
    assert (truth, exit_status([truth])) == (of_pairs, compared.returncode), compared.stderr
    if condition.subject is not ConditionSubject.SIDES:
        assert truth is cell_truth(condition, found.overview, pair.contender)


@pytest.mark.parametrize("text", ["bad", "worse than promised", "unsafe"])
def test_what_cuts_show_is_the_same_beside_another_cell_and_alone(tmp_path: Path, text: str) -> None:
    study = power_cut_study(tmp_path / "study")
    found, condition = overview(study), parse_condition(text, of_cuts=True)
    truths = {cell: cell_truth(condition, found, cell) for cell in found.cells}
    assert len(set(truths.values())) > 1
    baseline = next(iter(found.cells))
    for cell, truth in truths.items():
        if cell != baseline and found.cells[cell].label.full:
            done = call_here("compare", study, "--baseline", baseline, "--contender", cell, "--fail-if", text)
            assert exit_status([truth]) == done.returncode, done.stderr


def test_a_condition_of_every_run_is_asked_of_every_run(lab: PairedLab) -> None:
    """A figure that is fine in the first run and not in the second is not fine."""
    lab.base.write_text(lab.base.read_text() + '[[workload.job]]\njob = "wal-overwrite"\nsize = "64 MB"\n')

    def truth(_cell: Cell, run: object) -> dict[str, float]:
        return {BEST: 1000.0 if "append" in repr(run) else 500.0}

    lab.play(PlantedExecutor(truth), blocks=6)
    found = lab.read()
    (pair,) = found.record.pairs
    assert 2 == len(found.overview.runs)
    for text, known in ((f"{BEST} < 800", HOLDS), (f"{BEST} > 800", HOLDS), (f"{BEST} < 300", FAILS)):
        condition = parse_condition(text)
        assert known is cell_truth(condition, found.overview, pair.contender)
        assert known is paired_truth(condition, found.overview, found.record, found.lines)


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("--fail-if", "slower"), 2, "say what changes"),
        (("--vary", VARIED, "--fail-if", "slow"), 125, "these would do"),
        (("--vary", VARIED, "--fail-if", "slower", "--metric", "tps_cv"), 125, "tps_cv is no speed"),
        (("--vary", VARIED, "--fail-if", "slower"), 125, "nobody can be asked here"),
    ],
)
def test_a_call_that_measures_nothing_has_no_code_that_bisecting_takes_for_an_answer(
    lab: PairedLab, tmp_path: Path, words: tuple[str, ...], status: int, said: str
) -> None:
    lab.on(PlantedExecutor(slower(0.2)))
    done = call_here("ab", *words, "--plan", str(lab.base), cwd=tmp_path)
    assert (status, True) == (done.returncode, said in done.stderr), done.stderr
    assert "Traceback" not in done.stderr


def test_a_side_that_cannot_be_built_is_a_commit_that_cannot_be_tested(
    lab: PairedLab, tmp_path: Path
) -> None:
    lab.on(PlantedExecutor(slower(0.2), unbuilt=lambda cell: cell.levels.get("device.scheduler") == "none"))
    words = ("ab", "--vary", VARIED, "--plan", str(lab.base), "--yes")
    assert 3 == call_here(*words, "--directory", "one", cwd=tmp_path).returncode
    assert 125 == call_here(*words, "--directory", "two", "--fail-if", "slower", cwd=tmp_path).returncode
