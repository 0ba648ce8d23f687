"""A search for the best cell: from its records alone, honest at its end, whatever a machine does to it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.support.studies.simulated_searches import (
    BOUNDED,
    LATENCY,
    NOT_WORSE,
    SEARCHED,
    SPEED,
    DesignFound,
    SimulatedMachine,
    nested_space,
    searched,
    small_space,
)

from bedplate.model.figure import Better, Scale
from bedplate.statistics.search import (
    ATTEMPTS_MAX,
    BLOCK_FEW,
    BLOCK_MANY,
    BLOCKS_SPREAD,
    FAILURES_MAX,
    UNBELIEVED_MAX,
    Ending,
    NextBlock,
    SearchEnd,
    SearchQuestion,
    SearchSpace,
    Tried,
    following,
    judged_proof,
    lead,
    posterior,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bedplate.model.levels import Scalar

MARGIN = 0.05


def space_of(*levels: int, seconds: float = 1.0) -> SearchSpace:
    """One factor with these levels."""
    return SearchSpace(tuple({"a": level} for level in levels), (seconds,) * len(levels))


def question(budget_s: float = 90.0, seed: int = 1, baseline: int | None = 0) -> SearchQuestion:
    return SearchQuestion(SPEED, budget_s, seed, baseline)


def run_to_end(
    space: SearchSpace,
    asked: SearchQuestion,
    measure: Callable[[int, int, np.random.Generator], float | None],
    fails: int | None = None,
) -> tuple[SearchEnd, list[Tried], list[NextBlock]]:
    """Visit what is asked for; `measure` is given cell, block and random numbers."""
    random = np.random.default_rng(asked.seed)
    tried: list[Tried] = []
    blocks: list[NextBlock] = []
    while not isinstance(after := following(space, asked, tried), SearchEnd):
        for block in after:
            blocks.append(block)
            for cell in block.cells:
                value = None if cell == fails else measure(cell, block.block, random)
                tried.append(
                    Tried(
                        block.block,
                        cell,
                        value,
                        space.seconds[cell],
                        block.proof,
                        failed=cell == fails,
                        leads=cell == block.leader,
                    )
                )
        assert len(tried) < 2000
    return after, tried, blocks


def speeds(*logs: float, scatter: float = 0.01) -> Callable[[int, int, np.random.Generator], float]:
    return lambda cell, _, random: math.exp(7 + logs[cell] + random.normal(0, scatter))


def test_of_two_cells_the_faster_is_named_with_what_it_gains() -> None:
    end, tried, blocks = run_to_end(space_of(1, 2), question(), speeds(0.0, 0.3))
    assert (Ending.THIS, (1,)) == (end.ending, end.cells)
    assert end.proof is not None
    assert end.proof.gain is not None
    assert end.proof.gain.low is not None
    assert end.proof.gain.high is not None
    assert end.proof.gain.low < math.exp(0.3) < end.proof.gain.high
    assert len(tried) == sum(len(block.cells) for block in blocks)


def test_cells_of_one_level_are_a_search_of_cells() -> None:
    space = SearchSpace(({"a": 1, "own": 1}, {"a": 1, "own": 2}, {"a": 1, "own": 3}), (1.0,) * 3)
    assert (3, 3) == space.mains.shape
    end, _, _ = run_to_end(space, question(), speeds(0.0, 0.0, 0.4))
    assert (Ending.THIS, (2,)) == (end.ending, end.cells)


def test_cells_without_any_factor_are_told_apart_by_their_own_figures() -> None:
    space = SearchSpace(({"a": 1}, {"a": 1}), (1.0, 1.0))
    assert (2, 0) == space.mains.shape == space.pairs.shape
    end, _, _ = run_to_end(space, question(), speeds(0.4, 0.0))
    assert 0 == end.cells[0]


def test_equal_cells_are_not_told_apart() -> None:
    space = small_space()
    ends = [
        run_to_end(space, question(seed=seed), speeds(*(0.0,) * 36, scatter=0.04))[0] for seed in range(8)
    ]
    assert sum(bool(end.refuted) for end in ends) <= 3
    gains = [end.proof.gain for end in ends if end.proof and end.proof.gain]
    # One in twenty may be told by chance.
    assert sum(gain.differs for gain in gains) <= 3
    assert any(end.ending is not Ending.THIS for end in ends)


def test_a_cell_that_always_fails_is_tried_twice_and_never_named() -> None:
    logs = [0.0] * 36
    logs[7] = 2.0
    end, tried, _ = run_to_end(small_space(), question(), speeds(*logs), fails=7)
    assert 7 not in end.cells
    assert sum(each.cell == 7 for each in tried) <= FAILURES_MAX
    assert end.ending in {Ending.THIS, Ending.ONE_OF}


def test_where_every_run_is_suspect_nothing_is_known() -> None:
    end, tried, _ = run_to_end(small_space(), question(1000.0), lambda *_: None)
    assert (Ending.NOT_KNOWN, (), None) == (end.ending, end.cells, end.proof)
    assert len(tried) <= 36 * UNBELIEVED_MAX


def test_where_every_visit_fails_nothing_is_known() -> None:
    space = space_of(1, 2, 3)
    tried = [Tried(block, cell, None, 1.0, failed=True) for block in range(FAILURES_MAX) for cell in range(3)]
    assert SearchEnd(Ending.NOT_KNOWN, (), 0.0, None) == following(space, question(), tried)


@pytest.mark.parametrize("value", [math.nan, math.inf, 0.0, -1.0])
def test_a_figure_without_a_logarithm_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="positive figures"):
        Tried(0, 0, value, 1.0)


def test_bad_questions_say_what_would_do() -> None:
    with pytest.raises(ValueError, match="two cells, found 1"):
        space_of(1)
    with pytest.raises(ValueError, match="expected seconds"):
        space_of(1, 2, seconds=math.nan)
    with pytest.raises(ValueError, match="better direction"):
        SearchQuestion(replace(SPEED, better=Better.NEITHER), 90.0, 1)
    with pytest.raises(ValueError, match="compared as a ratio"):
        SearchQuestion(replace(SPEED, scale=Scale.SHARE), 90.0, 1)
    with pytest.raises(ValueError, match="a budget is above 0"):
        question(math.inf)
    with pytest.raises(ValueError, match="less than one block of 6 visits, 6 s"):
        following(small_space(), question(5.0), [])
    with pytest.raises(ValueError, match="takes 0 seconds or more"):
        Tried(0, 0, 1.0, math.nan)


def test_the_same_records_in_another_order_give_the_same_answer_at_every_step() -> None:
    machine = SimulatedMachine(SEARCHED[6], np.random.default_rng(3))
    _, tried, blocks = run_to_end(
        machine.space,
        question(),
        lambda cell, block, _: None if (found := machine.run(cell, block)) is None else math.exp(found),
    )
    random = np.random.default_rng(4)
    for number in sorted({block.block for block in blocks}):
        before = [each for each in tried if each.block < number]
        shuffled = [before[at] for at in random.permutation(len(before))]
        expected = following(machine.space, question(), before)
        assert expected == following(machine.space, question(), shuffled)
        if not isinstance(expected, SearchEnd) and not any(each.proof for each in before):
            assert next(block for block in blocks if block.block == number) == expected[0]


def test_another_seed_takes_another_order() -> None:
    first, second = (following(small_space(), question(seed=seed), []) for seed in (1, 2))
    assert first != second


@pytest.mark.parametrize(("space", "size"), [(small_space(), BLOCK_FEW), (nested_space(), BLOCK_MANY)])
def test_blocks_hold_the_leader_and_no_cell_twice(space: SearchSpace, size: int) -> None:
    machine = SimulatedMachine(SEARCHED[0 if len(space.levels) < 100 else 7], np.random.default_rng(5))
    asked = question(2.5 * sum(space.seconds))
    _, tried, blocks = run_to_end(
        space, asked, lambda cell, block, _: math.exp(machine.run(cell, block) or 0.0)
    )
    of_search = [block for block in blocks if not block.proof]
    assert len(of_search) > BLOCKS_SPREAD
    for block in of_search:
        assert size == len(block.cells) == len(set(block.cells))
        if block.block >= BLOCKS_SPREAD:
            before = [each for each in tried if each.block < block.block]
            known = posterior(space, before, seed=asked.seed)
            assert lead(known, space.open(before), MARGIN).leader in block.cells
    of_proof = [block for block in blocks if block.proof]
    assert 1 == len({frozenset(block.cells) for block in of_proof if block.proof == of_proof[0].proof})
    assert all(block.leader in block.cells and 0 in block.cells for block in of_proof)


def test_the_first_blocks_meet_every_level() -> None:
    blocks: list[Tried] = []
    for _ in range(BLOCKS_SPREAD):
        (block,) = _blocks(following(small_space(), question(), blocks))
        blocks += [Tried(block.block, cell, 1000.0, 1.0) for cell in block.cells]
    assert small_space().mains[[each.cell for each in blocks]].any(axis=0).all()


def _blocks(after: tuple[NextBlock, ...] | SearchEnd) -> tuple[NextBlock, ...]:
    assert not isinstance(after, SearchEnd)
    return after


@pytest.mark.parametrize("budget_s", [7.0, 20.0, 33.0, 90.0])
def test_the_budget_is_kept_and_too_small_a_one_ends_with_a_guess(budget_s: float) -> None:
    machine = SimulatedMachine(SEARCHED[2], np.random.default_rng(8))
    end, tried, _ = run_to_end(
        machine.space, question(budget_s), lambda cell, block, _: math.exp(machine.run(cell, block) or 0.0)
    )
    assert sum(each.seconds for each in tried) <= budget_s
    if budget_s < 20:
        assert (Ending.NOT_KNOWN, 1, None) == (end.ending, len(end.cells), end.proof)
        assert 0 < end.chance < 1


def test_less_is_better_where_the_figure_says_so() -> None:
    latency = replace(SPEED, name="latency_ms", better=Better.LOWER)
    measure = speeds(0.0, 0.3, -0.4, 0.1)
    space = space_of(1, 2, 3, 4)
    faster, _, blocks = run_to_end(space, question(), measure)
    lower, _, mirrored = run_to_end(
        space, SearchQuestion(latency, 90.0, 1, 0), lambda *each: 1 / measure(*each)
    )
    assert (faster.ending, faster.cells) == (lower.ending, lower.cells) == (Ending.THIS, (1,))
    assert blocks == mirrored
    assert lower.proof is not None
    assert lower.proof.gain is not None
    assert lower.proof.gain.estimate == pytest.approx(math.exp(-0.3), rel=0.03)


def test_a_visit_that_takes_longer_is_chosen_less() -> None:
    levels = small_space().levels
    slow = SearchSpace(levels, tuple(20.0 if level["a"] == 2 else 1.0 for level in levels))
    costly = {cell for cell, level in enumerate(levels) if level["a"] == 2}
    counts = []
    for space in (small_space(), slow):
        blocks = [_blocks(following(space, question(4000.0, seed), []))[0] for seed in range(10)]
        counts.append(sum(cell in costly for block in blocks for cell in block.cells))
    assert 0 == counts[1] < counts[0]


def test_a_factor_that_a_cell_lacks_adds_nothing_to_it() -> None:
    space = nested_space()
    assert 360 == len(space.levels)
    lacking = [cell for cell, level in enumerate(space.levels) if level["type"] == "jfs"]
    # The file system and the database's block size are all that JFS has: two levels and one pair.
    assert {2.0} == set(space.mains[lacking].sum(axis=1))
    assert {1.0} == set(space.pairs[lacking].sum(axis=1))


def test_what_holds_for_a_nested_factor_is_learnt_within_it() -> None:
    """`data` exists on two file systems: its effect on one moves what is expected of the other, and of no third."""
    own: list[dict[str, Scalar]] = [
        {"type": kind, "data": data, "size": size}
        for kind in ("ext3", "ext4")
        for data in ("ordered", "journal")
        for size in (1, 2, 4)
    ]
    own += [{"type": "xfs", "size": size} for size in (1, 2, 4)]
    space = SearchSpace(tuple(own), (1.0,) * len(own))
    slow = {cell for cell, level in enumerate(own) if level.get("data") == "journal"}
    measured = [
        cell for cell, level in enumerate(own) if level["type"] != "ext4" or level["data"] == "ordered"
    ]
    tried = [
        Tried(block, cell, math.exp(-0.5 if cell in slow else 0.0), 1.0)
        for block in range(2)
        for cell in measured
    ]
    mean = posterior(space, tried, seed=1).mean
    ext4 = [cell for cell, level in enumerate(own) if level["type"] == "ext4"]
    journal, ordered = ([cell for cell in ext4 if (cell in slow) is side] for side in (True, False))
    assert mean[journal].mean() - mean[ordered].mean() < -0.3
    xfs = [cell for cell, level in enumerate(own) if level["type"] == "xfs"]
    assert mean[xfs].mean() == pytest.approx(mean[ordered].mean(), abs=0.05)


def _rows(values: Sequence[tuple[int, float]], blocks: int = 4) -> list[Tried]:
    random = np.random.default_rng(6)
    return [
        Tried(block, cell, math.exp(log + random.normal(0, 0.01)), 1.0)
        for block in range(blocks)
        for cell, log in values
    ]


def test_one_run_far_off_neither_leads_nor_moves_the_others() -> None:
    space = space_of(*range(6))
    tried = _rows([(cell, 0.1 if cell == 2 else 0.0) for cell in range(6)])
    spoilt = [replace(each, value=20.0) if (each.block, each.cell) == (3, 5) else each for each in tried]
    calm, wild = (posterior(space, each, seed=1) for each in (tried, spoilt))
    assert 2 == lead(calm, space.open(tried), MARGIN).leader == lead(wild, space.open(tried), MARGIN).leader
    assert wild.mean[5] - wild.mean[0] < 0.1
    assert wild.scatter[5] > 1.5 * wild.scatter[0]


def test_a_cell_that_scatters_is_known_less() -> None:
    space = space_of(*range(6))
    random = np.random.default_rng(2)
    tried = [
        Tried(block, cell, math.exp(random.normal(0, 0.45 if cell == 3 else 0.02)), 1.0)
        for block in range(8)
        for cell in range(6)
    ]
    found = posterior(space, tried, seed=1)
    deviations = found.draws.std(axis=0)
    assert found.scatter[3] > 4 * found.scatter[0]
    assert deviations[3] > 1.3 * deviations[0]


@pytest.mark.parametrize("few", [0, 1, 2])
def test_a_cell_of_few_visits_may_scatter_as_much_as_the_worst(few: int) -> None:
    """Two figures that lie close together by luck do not show that a cell is quiet, where another one scatters by 45 %."""
    space = space_of(*range(6))
    random = np.random.default_rng(2)
    tried = [
        Tried(block, cell, math.exp(random.normal(0, 0.45 if cell == 3 else 0.02)), 1.0)
        for block in range(8)
        for cell in range(6)
        if cell != 5 or block < few
    ]
    known = posterior(space, tried, seed=1)
    assert known.scatter[5] == known.scatter.max() > 4 * known.scatter[0]


def test_where_no_cell_has_three_visits_the_scatter_is_what_the_runs_show() -> None:
    space = space_of(*range(6))
    known = posterior(space, _rows([(cell, 0.0) for cell in range(6)], blocks=2), seed=1)
    assert np.ptp(known.scatter) < known.scatter.min()


def test_what_a_block_does_to_all_of_its_visits_drops_out() -> None:
    space = space_of(*range(6))
    tried = _rows([(cell, 0.05 * cell) for cell in range(6)])
    moved = [replace(each, value=(each.value or 0.0) * 0.5**each.block) for each in tried]
    first, second = (posterior(space, each, seed=1) for each in (tried, moved))
    assert first.mean == pytest.approx(second.mean, abs=0.02)


def test_without_a_figure_nothing_is_more_likely_than_anything() -> None:
    found = posterior(small_space(), [], seed=1)
    best = lead(found, small_space().open([]), MARGIN).best
    assert np.max(best) < 0.06


def _proof(logs: Sequence[float], repetitions: int = 5, scatter: float = 0.01) -> list[Tried]:
    random = np.random.default_rng(9)
    return [
        Tried(block, cell, math.exp(log + random.normal(0, scatter)), 1.0, 1, leads=cell == 1)
        for block in range(repetitions)
        for cell, log in enumerate(logs)
    ]


def test_a_proof_clears_refutes_or_leaves_open() -> None:
    asked = question()
    cleared = judged_proof(asked, 1, _proof((-0.3, 0.0, -0.1)))
    assert ((), False) == (cleared.open, cleared.is_refuted)
    refuted = judged_proof(asked, 1, _proof((-0.3, 0.0, 0.2)))
    assert ((2,), True) == (refuted.open, refuted.is_refuted)
    unclear = judged_proof(asked, 1, _proof((-0.3, 0.0, 0.0), scatter=0.1))
    assert (2,) == unclear.open
    assert not unclear.is_refuted


def test_an_open_rival_that_may_be_worse_in_another_figure_is_doubtful() -> None:
    """Cell 0 is the baseline. Of rivals as fast as the leader one keeps its latency, one may not, one does not."""
    bounded = replace(question(), not_worse=((LATENCY, NOT_WORSE),))
    random = np.random.default_rng(4)
    latency = {0: (1.0, 0.01), 1: (0.9, 0.01), 2: (0.9, 0.01), 3: (1.1, 0.1), 4: (1.5, 0.01)}
    proved = [
        replace(
            each,
            others=(latency[each.cell][0] * math.exp(random.normal(0, latency[each.cell][1])),),
        )
        for each in _proof((-0.3, 0.0, 0.0, 0.0, 0.0), scatter=0.1)
    ]
    found = judged_proof(bounded, 1, proved)
    assert ((2, 3), (3,), ()) == (found.open, found.doubtful, found.unsure)
    assert () == judged_proof(question(), 1, proved).doubtful


def test_a_proof_of_two_repetitions_clears_nobody() -> None:
    assert (0, 2) == judged_proof(question(), 1, _proof((-0.3, 0.0, -0.1), repetitions=2)).open


def test_a_proof_looks_at_its_own_runs_alone() -> None:
    end, tried, _ = run_to_end(space_of(1, 2, 3, 4), question(), speeds(0.0, 0.3, 0.1, -0.2))
    assert end.proof is not None
    assert judged_proof(question(), 1, [each for each in tried if each.proof == 1]) == end.proof
    assert all(5 == each.n for each in end.proof.rivals.values())


def test_a_refuted_leader_is_named_and_the_search_goes_on() -> None:
    """The leader was fast as long as it was searched, and is slow from then on."""
    logs = (0.0, 0.3, 0.1, -0.2)

    def measure(cell: int, block: int, random: np.random.Generator) -> float:
        turned = -0.4 if cell == 1 and block >= BLOCKS_SPREAD else logs[cell]
        return math.exp(turned + random.normal(0, 0.01))

    end, _, blocks = run_to_end(space_of(1, 2, 3, 4), question(200.0), measure)
    assert (1,) == end.refuted
    assert 2 == max(block.proof for block in blocks)
    assert (2,) == end.cells


def test_what_is_outside_of_a_refuted_proof_is_held_against_its_leader() -> None:
    """The budget ends behind the proof; a cell that took no part in it is surely better than the leader it refuted."""

    def measure(cell: int, block: int, random: np.random.Generator) -> float:
        turned = -0.4 if cell == 1 and block >= BLOCKS_SPREAD else (0.0, 0.3, 0.1, -0.2)[cell]
        return math.exp(turned + random.normal(0, 0.01))

    end, _, _ = run_to_end(space_of(1, 2, 3, 4), question(18.0), measure)
    assert (Ending.NOT_KNOWN, (2,), (1,)) == (end.ending, end.cells, end.refuted)
    assert end.proof is not None
    assert 2 not in end.proof.rivals
    assert end.chance > 0.9
    assert end.left_out is not None
    assert end.left_out > 0.95


def test_a_run_of_a_proof_that_is_not_believed_is_repeated_within_its_block() -> None:
    attempts: dict[tuple[int, int], int] = {}

    def measure(cell: int, block: int, random: np.random.Generator) -> float | None:
        attempts[cell, block] = attempts.get((cell, block), 0) + 1
        is_suspect = cell == 0 and (block == 3 or attempts[cell, block] == 1)
        return None if is_suspect and block > 1 else speeds(0.0, 0.3)(cell, block, random)

    end, tried, _ = run_to_end(space_of(1, 2), question(), measure)
    assert end.proof is not None
    of_baseline = [each for each in tried if each.cell == 0 and each.proof]
    assert ATTEMPTS_MAX == sum(each.block == 3 for each in of_baseline)
    assert {2, 3} == {
        sum(each.block == block for each in of_baseline) for block in {e.block for e in of_baseline}
    }
    assert 4 == end.proof.rivals[0].n


STUDIES = 20


@pytest.mark.parametrize("number", [0, 1, 5], ids=lambda number: SEARCHED[number].name)
def test_a_search_costs_a_quarter_and_is_right_when_it_says_so(number: int) -> None:
    """The short form of benchmarks/search_calibration.py."""
    found: list[DesignFound] = [
        searched(SimulatedMachine(SEARCHED[number], np.random.default_rng([7, number, study])), study)
        for study in range(STUDIES)
    ]
    these = [each for each in found if each.ending is Ending.THIS]
    assert float(np.median([each.cost for each in found])) <= 0.25
    assert len(these) >= STUDIES / 3
    assert sum(not each.is_near for each in these) <= 2
    assert sum(each.is_in for each in found) >= STUDIES - 3


@pytest.mark.parametrize("number", [0, 2], ids=lambda number: BOUNDED[number].name)
def test_a_cell_that_is_worse_in_another_figure_is_not_named_without_a_mark(number: int) -> None:
    """The short form of the second table of benchmarks/search_calibration.py."""
    found = [
        searched(SimulatedMachine(BOUNDED[number], np.random.default_rng([7, number, study])), study)
        for study in range(STUDIES // 2)
    ]
    sure = [each for each in found if each.ending is not Ending.NOT_KNOWN]
    assert sure
    assert sum(each.unmarked for each in sure) <= 1
    # Without such a cell there would be nothing to name.
    assert any(
        SimulatedMachine(BOUNDED[number], np.random.default_rng(7)).violates(cell) for cell in range(36)
    )
