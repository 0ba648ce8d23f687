"""One contrast has one estimate, one interval and one verdict, whichever command is asked: random studies with gaps of every kind."""

from __future__ import annotations

import math
import os
import shlex
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from tests.support.studies.known_study import load_study
from tests.support.studies.random_study import RUN, write_random_study

from bedplate.analysis.advice import advised
from bedplate.analysis.answer import headline
from bedplate.analysis.claims import Finding, judge_claims, parse_claims
from bedplate.analysis.comparison import ComparisonAnswer, ComparisonQuestion, answer
from bedplate.analysis.effects import study_effects
from bedplate.analysis.labels import TYPE, level_text
from bedplate.analysis.overview import Overview, overview
from bedplate.analysis.pooled import PooledPairs, pooled_pairs
from bedplate.errors import PlanError
from bedplate.statistics.comparison import Verdict, at_confidence
from bedplate.statistics.estimation import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bedplate.model.levels import Scalar
    from bedplate.statistics.effects import Effect, Effects

# More than that is for whoever changed an estimator: BEDPLATE_STUDIES=500.
STUDIES = int(os.environ.get("BEDPLATE_STUDIES", "24"))


def ask(found: Overview, baseline: str, contender: str) -> ComparisonAnswer:
    return answer([found], ComparisonQuestion(baseline, contender, workload=RUN, metrics=("tps",)))


def levels_of(factor: str, *levels: Scalar) -> str:
    return f"{factor}={','.join(shlex.quote(level_text(factor, level)) for level in levels)}"


def cells_of(line: PooledPairs) -> frozenset[frozenset[str]]:
    return frozenset(
        frozenset(side.cell for side in own)
        for own in zip(*((one.pair.baseline, one.pair.contender) for one in line.pairs), strict=True)
    )


def ratios(found: Overview) -> Iterator[tuple[Effects, Effect]]:
    (one,) = study_effects(found, workload=RUN, metrics=("tps",)).found
    return ((part, each) for part in one.parts for each in part.effects)


@pytest.mark.parametrize("seed", range(STUDIES))
def test_every_place_says_the_same_of_one_contrast(seed: int, tmp_path: Path) -> None:
    found = overview(write_random_study(tmp_path / "study", seed))
    lines: dict[tuple[str, Scalar, Scalar], list[PooledPairs]] = {}
    told = 0
    for part, each in ratios(found):
        key = (each.factor, each.level, each.baseline)
        if key not in lines:
            try:
                answered = ask(
                    found, *(levels_of(each.factor, level) for level in (each.baseline, each.level))
                )
            except PlanError:
                continue
            lines[key] = list(pooled_pairs(answered))
        for line in lines[key]:
            of_part = all(part.durability == name for names, _ in line.classes for name in names)
            if not of_part or len(line.pairs) != each.strata or line.beside:
                continue
            if not math.isclose(line.comparison.estimate or 0.0, each.ratio, rel_tol=1e-9):
                # As many pairs of other cells: the part within one file system beside the whole.
                assert part.within is not None or len({one.beside for one in lines[key]}) > 1
                continue
            told += 1
            judged = line.comparison
            if each.judged.p_difference is None:
                assert judged.basis is None
                continue
            assert judged.low == pytest.approx(each.judged.low, rel=1e-9)
            assert judged.high == pytest.approx(each.judged.high, rel=1e-9)
            assert judged.verdict is each.judged.verdict
    assert told or not any(not line.beside for own in lines.values() for line in own)
    other_ways_of_asking_have_the_same_lines(found, lines)
    what_looks_best_is_in_the_answer(found)
    claims_have_the_same_estimates(found, lines)
    single_pairs_have_one_estimate(found)


def other_ways_of_asking_have_the_same_lines(
    found: Overview, lines: dict[tuple[str, Scalar, Scalar], list[PooledPairs]]
) -> None:
    """All types at once, and the types in the answer, beside two types alone."""
    of_types = [
        line for (factor, *_), own in lines.items() if factor == TYPE for line in own if not line.beside
    ]
    known = {(cells_of(line), line.comparison.metric.name): line.comparison for line in of_types}
    kinds = sorted({cell.filesystem.type for cell in found.study.schedule.cells.values()})
    together: list[PooledPairs] = []
    for at, kind in enumerate(kinds[:-1]):
        with suppress(PlanError):
            together += pooled_pairs(ask(found, levels_of(TYPE, *kinds[at + 1 :]), levels_of(TYPE, kind)))
    together += [line for one in headline(found).answers if one.run[1] == RUN for line in one.types]
    seen = 0
    for line in together:
        alone = known.get((cells_of(line), line.comparison.metric.name))
        if alone is None or line.beside:
            continue
        seen += 1
        is_turned = not math.isclose(alone.estimate or 0.0, line.comparison.estimate or 0.0, rel_tol=1e-9)
        ends = [alone.low, alone.estimate, alone.high]
        if is_turned:
            ends = [None if end is None else 1 / end for end in reversed(ends)]
        assert [line.comparison.low, line.comparison.estimate, line.comparison.high] == [
            None if end is None else pytest.approx(end, rel=1e-9) for end in ends
        ]
        turned = {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}
        expected = turned.get(alone.verdict, alone.verdict) if is_turned else alone.verdict
        assert line.comparison.verdict is expected
    assert seen or not known


def what_looks_best_is_in_the_answer(found: Overview) -> None:
    """The durable cell with the best trusted mean is taken, or in the lines that say why another one is."""
    (one,) = (each for each in headline(found).answers if each.run[1] == RUN)
    if one.taken is None or not one.seen:
        return
    beside = (one.better, *(one.tied[:1] or (one.following, one.default)))
    named = {each.other.cell for each in beside if each is not None}
    named |= {cell for group in one.not_taken for cell in group.cells} | {one.taken.cell}
    assert one.seen[0].cell in named


def claims_have_the_same_estimates(
    found: Overview, lines: dict[tuple[str, Scalar, Scalar], list[PooledPairs]]
) -> None:
    """A claim is of all classes together, so it is held against a line where there is one; and never contradicts it."""
    for (factor, level, baseline), own in lines.items():
        if factor != TYPE or len(own) != 1 or own[0].left_out or own[0].beside:
            continue
        check = f'baseline = "type={baseline}"\ncontender = "type={level}"\nat_least = 1.0\n'
        file = parse_claims(
            'title = "T"\n[[claim]]\nid = "one"\nsentence = "It is faster."\n'
            f'[[claim.check]]\nrun = "{RUN}"\nmetric = "tps"\nkind = "ratio"\n{check}'
        )
        ((claim,),) = judge_claims([found], [file]).judged
        (line,) = own
        if f"{len(line.pairs)} pair" not in claim.words:
            continue
        assert claim.estimate == pytest.approx(line.comparison.estimate, rel=1e-9)
        against = {Finding.HOLDS: Verdict.SLOWER, Finding.FAILS: Verdict.FASTER}
        assert line.comparison.verdict is not against.get(claim.finding)
        if isinstance(line.comparison.basis, Estimate) and claim.confidence is not None:
            bounds = map(float, line.comparison.basis.interval(claim.confidence))
            assert [claim.low, claim.high] == pytest.approx([math.exp(bound) for bound in bounds], rel=1e-9)


def single_pairs_have_one_estimate(found: Overview) -> None:
    """Of two cells `advise` and `compare` have one estimate, and at one confidence one interval; neither contradicts the other."""
    advice = advised(found)
    for contest in advice.contests:
        for first, second in zip(contest.cells, contest.cells[1:], strict=False):
            told = advice.comparison(contest, contest.objectives[0], first, second)
            ((alone,),) = [
                [each.comparison for each in answered.compared]
                for answered in [ask(found, shlex.quote(first), shlex.quote(second))]
            ]
            assert told.estimate == (
                None if alone.estimate is None else pytest.approx(alone.estimate, rel=1e-12)
            )
            assert told.n == alone.n
            if alone.basis is not None:
                same = at_confidence(alone, told.confidence)
                assert [told.low, told.high] == pytest.approx([same.low, same.high], rel=1e-12)
            assert {told.verdict, alone.verdict} != {Verdict.FASTER, Verdict.SLOWER}


@pytest.mark.parametrize("in_doubt", ["read-only", "read-write"])
def test_a_visits_own_figure_is_one_whichever_of_its_runs_is_in_doubt(in_doubt: str, tmp_path: Path) -> None:
    """The load is measured once for a visit; a doubt about one of the runs behind it is none about the load."""
    found = overview(load_study(tmp_path / "study", lambda _: 1000.0, doubted=(in_doubt,)))
    answered = answer([found], ComparisonQuestion("type=ext4", "type=xfs", metrics=("load_s",)))
    (line,) = (one for one in pooled_pairs(answered) if not one.beside)
    (asked,) = study_effects(found, metrics=("load_s",)).found
    (effect,) = (
        each
        for part in asked.parts
        for each in part.effects
        if {each.level, each.baseline} == {"xfs", "ext4"}
    )
    assert (0, effect.judged.verdict) == (asked.suspect, line.comparison.verdict)
    ends = [line.comparison.low, line.comparison.estimate, line.comparison.high]
    assert [effect.judged.low, effect.ratio, effect.judged.high] == pytest.approx(ends, rel=1e-9)
    for run in ("read-only", "read-write"):
        file = parse_claims(
            'title = "T"\n[[claim]]\nid = "one"\nsentence = "It loads faster."\n'
            f'[[claim.check]]\nrun = "{run}"\nmetric = "load_s"\nkind = "ratio"\n'
            'baseline = "type=ext4"\ncontender = "type=xfs"\nat_most = 1.0\n'
        )
        ((claim,),) = judge_claims([found], [file]).judged
        assert Finding.HOLDS is claim.finding
        assert claim.estimate == pytest.approx(line.comparison.estimate, rel=1e-9)
