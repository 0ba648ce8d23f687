"""Scores over a selection: the worked example, timeouts, plans that disagree, and intervals."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bedplate.model.visit import Validity
from bedplate.statistics.summary import SUSPECT, TRUSTED
from bedplate.statistics.tpch_scores import CellScores, QueryRun, Scores, scores

LIMIT = 300.0
POSITIVE = st.floats(min_value=1e-3, max_value=1e4)


def runs_of(
    cell: str,
    times: Sequence[float | None],
    *,
    repetition: int = 1,
    plans: Sequence[str | None] | None = None,
    validity: Validity = Validity.VALID,
) -> list[QueryRun]:
    """One repetition; None is a timeout."""
    named = plans or ["p"] * len(times)
    return [
        QueryRun(
            cell=cell,
            repetition=repetition,
            query=str(query),
            time_s=time,
            limit_s=LIMIT if time is None else None,
            plan=plan,
            validity=validity,
        )
        for query, (time, plan) in enumerate(zip(times, named, strict=True), 1)
    ]


def scored(*cells: Iterable[QueryRun]) -> Scores:
    runs = [run for cell in cells for run in cell]
    return scores(runs, list(dict.fromkeys(run.cell for run in runs)))


def values(cell: CellScores) -> tuple[float | None, ...]:
    return (cell.time.value, cell.score.value, cell.m_time.value, cell.m_score.value)


def test_worked_example() -> None:
    first, second = scored(runs_of("a", (10, 15, 100)), runs_of("b", (20, 20, 75))).cells
    assert (125, 2.75, 125, 2.75) == values(first)
    assert (115, 2.25, 115, 2.25) == values(second)
    assert first.time.ideal_share == pytest.approx(100 / 125)
    assert first.score.ideal_share == pytest.approx(2.75 / 3)
    assert second.m_score.ideal_share == pytest.approx(0.75)


def test_a_timeout_counts_as_its_limit_and_scores_nothing() -> None:
    result = scored(runs_of("a", (10, None)), runs_of("b", (20, 30)))
    first, second = result.cells
    assert (310, 1.0, 10, 1.0) == values(first)
    assert (50, 1.5, 20, 0.5) == values(second)
    assert (("2",), ()) == (first.timeouts, second.timeouts)
    assert ("1",) == result.kept
    assert {"2": ("over its limit in 1 of 1 runs in a",)} == result.dropped


def test_where_nobody_finishes_nobody_scores() -> None:
    result = scored(runs_of("a", (10, None)), runs_of("b", (10, None)))
    assert [1.0, 1.0] == [cell.score.value for cell in result.cells]
    assert [0.5, 0.5] == [cell.score.ideal_share for cell in result.cells]
    assert [1.0, 1.0] == [cell.time.ideal_share for cell in result.cells]


def test_a_slow_finish_beats_a_timeout_with_a_smaller_limit() -> None:
    quick = QueryRun("a", 1, "1", None, limit_s=5.0)
    slow = QueryRun("b", 1, "1", 50.0)
    result = scores([quick, slow], ["a", "b"])
    assert [0.0, 1.0] == [cell.score.value for cell in result.cells]


@pytest.mark.parametrize(
    ("times", "time", "timeout"),
    [
        ((10, 30, 20), 20.0, False),
        ((10, 30), 20.0, False),
        ((10, None, 20), 20.0, False),
        ((10, None, None), LIMIT, True),
        ((10, None), LIMIT, True),
        ((10, 20, 40, None), 30.0, False),
        ((10, 20, None, None), LIMIT, True),
    ],
)
def test_the_median_of_repetitions(times: Sequence[float | None], time: float, timeout: bool) -> None:
    runs = [run for n, value in enumerate(times, 1) for run in runs_of("a", (value,), repetition=n)]
    (cell,) = scored(runs).cells
    assert time == cell.time.value
    assert (("1",) if timeout else ()) == cell.timeouts


def test_the_best_is_taken_across_cells_of_medians_and_not_of_runs() -> None:
    runs = [run for n, t in enumerate((1.0, 20.0, 30.0), 1) for run in runs_of("a", (t,), repetition=n)]
    first, second = scored(runs, runs_of("b", (40.0,))).cells
    assert 1.0 == first.score.value
    assert 0.5 == second.score.value


def test_one_timeout_of_five_keeps_the_score_and_drops_the_query() -> None:
    runs = [run for n in range(1, 5) for run in runs_of("a", (10, 10), repetition=n)]
    result = scored([*runs, *runs_of("a", (10, None), repetition=5)])
    assert 2.0 == result.cells[0].score.value
    assert {"2": ("over its limit in 1 of 5 runs in a",)} == result.dropped


def test_queries_whose_plans_disagree_are_dropped_from_the_m_figures_only() -> None:
    result = scored(
        runs_of("a", (10, 10, 10), plans=("p", "p", "q")),
        runs_of("b", (20, 20, 20), plans=("p", "p", "p")),
        runs_of("c", (20, 20, 20), plans=("p", "p", "p")),
    )
    assert {"3": ("2 plans across the cells: b, c | a",)} == result.dropped
    assert (30, 3.0, 20, 2.0) == values(result.cells[0])


def test_a_cell_that_changes_its_plan_between_repetitions_drops_the_query() -> None:
    result = scored(
        [*runs_of("a", (1,), plans=("p",)), *runs_of("a", (1,), plans=("q",), repetition=2)],
        [*runs_of("b", (1,), plans=("p",)), *runs_of("b", (1,), plans=("p",), repetition=2)],
    )
    assert {"1"} == set(result.dropped)
    assert result.dropped["1"][0] == "2 plans in a"
    for cell in result.cells:
        assert cell.m_score.value is None
        assert cell.m_time.reasons == ("no query finished in every cell with one and the same plan",)


def test_an_unknown_plan_is_not_the_same_plan() -> None:
    result = scored(runs_of("a", (1,), plans=(None,)), runs_of("b", (1,), plans=("p",)))
    assert {"1": ("its plan is not known in a",)} == result.dropped


def test_every_reason_is_told() -> None:
    result = scored(
        runs_of("a", (1, None), plans=("p", "p")),
        runs_of("b", (1, 1), plans=("p", None)),
        runs_of("c", (1, 1), plans=("p", "q")),
        runs_of("d", (1,)),
    )
    assert (
        "over its limit in 1 of 1 runs in a",
        "its plan is not known in b",
        "no time in d",
        "2 plans across the cells: a | c",
    ) == result.dropped["2"]


def test_a_missing_time_is_not_zero() -> None:
    first, second = scored(runs_of("a", (10,)), runs_of("b", (20, 5))).cells
    assert (None, None, 10, 1.0) == values(first)
    assert ("query 2 has no time",) == first.time.reasons == first.score.reasons
    assert (25, 1.5, 20, 0.5) == values(second)


def test_a_run_without_a_time_counts_as_missing() -> None:
    absent = QueryRun("a", 1, "2", None)
    first, _ = scored([*runs_of("a", (10,)), absent], runs_of("b", (20, 5))).cells
    assert first.time.value is None


def test_a_cell_without_a_single_time_is_left_out_by_name() -> None:
    result = scores([*runs_of("a", (10,)), QueryRun("b", 1, "1", None)], ["a", "b", "c"])
    assert ["a"] == [cell.cell for cell in result.cells]
    assert {"b", "c"} == set(result.left_out)
    assert ("1",) == result.kept


def test_the_selection_decides_the_best_and_the_plans() -> None:
    runs = [
        *runs_of("a", (10,)),
        *runs_of("b", (20,)),
        *runs_of("c", (5,), plans=("q",)),
    ]
    assert ["b", "a"] == [cell.cell for cell in scores(runs, ["b", "a", "b"]).cells]
    assert 0.5 == scores(runs, ["b", "a"]).cells[0].m_score.value
    assert () == scores(runs, ["a", "b", "c"]).kept
    assert 0.25 == scores(runs, ["a", "b", "c"]).cells[1].score.value


def test_queries_stand_in_the_order_of_their_numbers() -> None:
    result = scored([QueryRun("a", 1, query, 1.0) for query in ("10", "2", "rf", "1")])
    assert ("1", "2", "10", "rf") == result.queries


def test_nothing_selected_is_nothing() -> None:
    assert Scores((), (), (), {}, {}) == scores(runs_of("a", (1,)), [])


def test_suspect_runs_count_only_where_there_is_no_other() -> None:
    suspect = runs_of("a", (1,), repetition=2, validity=Validity.SUSPECT)
    (cell,) = scored([*runs_of("a", (10,)), *suspect]).cells
    assert (10, TRUSTED) == (cell.time.value, cell.basis)
    (cell,) = scored(suspect).cells
    assert (1, SUSPECT) == (cell.time.value, cell.basis)


def doubtful(cell: str, times: Sequence[float | None], plans: Sequence[str] | None = None) -> list[QueryRun]:
    return runs_of(cell, times, plans=plans, validity=Validity.SUSPECT)


def test_a_cell_of_suspect_runs_sets_no_best_time() -> None:
    good, other = runs_of("a", (10, 20)), runs_of("b", (20, 20))
    alone = scored(good, other)
    result = scored(good, other, doubtful("c", (1, 40)))
    assert alone.cells == result.cells[:2], "nothing of it is felt by the trusted cells"
    assert ("c",) == result.only_suspect
    # Ten times as fast as the best that is believed.
    assert (41, 10.5, 41, 10.5) == values(result.cells[2])


def test_a_cell_of_suspect_runs_drops_no_query() -> None:
    result = scored(
        runs_of("a", (10, 20, 30)),
        runs_of("b", (20, 20, 20)),
        doubtful("c", (1, None, 3), plans=("q", "p", "p")),
        doubtful("d", (10, 10, 10)),
        doubtful("e", (10, 10)),
    )
    assert ("1", "2", "3") == result.kept
    assert {} == result.dropped
    unlike, alike, lacking = result.cells[2:]
    assert unlike.m_score == unlike.m_time
    assert unlike.m_score.reasons[1:] == ("query 1: plans differ between cells", "query 2: over its limit")
    assert (30, 1.0 + 2.0 + 2.0) == values(alike)[2:]
    assert ("query 3: no time",) == lacking.m_time.reasons[1:]
    assert 304 == unlike.time.value


def test_suspect_cells_among_themselves_are_scored_as_ever() -> None:
    trusted = scored(runs_of("a", (10, 15, 100)), runs_of("b", (20, 20, 75)))
    result = scored(doubtful("a", (10, 15, 100)), doubtful("b", (20, 20, 75)))
    assert ("a", "b") == result.only_suspect
    assert () == trusted.only_suspect
    assert [values(cell) for cell in trusted.cells] == [values(cell) for cell in result.cells]


def test_a_query_that_only_suspect_cells_ended_is_dropped_and_has_a_best_time() -> None:
    result = scored(runs_of("a", (10,)), doubtful("b", (10, 7)))
    assert {"2": ("no time in a",)} == result.dropped
    assert 2.0 == result.cells[1].score.value
    assert result.cells[0].score.value is None


def test_two_passes_are_not_mixed() -> None:
    with pytest.raises(ValueError, match="query 1 comes twice in repetition 1 of a"):
        scored([*runs_of("a", (10,)), *runs_of("a", (1,))])


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.nan, math.inf])
def test_a_time_is_positive(seconds: float) -> None:
    with pytest.raises(ValueError, match="must be positive"):
        QueryRun("a", 1, "1", seconds)
    with pytest.raises(ValueError, match="must be positive"):
        QueryRun("a", 1, "1", None, limit_s=seconds)


def test_a_timeout_has_no_time() -> None:
    with pytest.raises(ValueError, match="a timeout has no time"):
        QueryRun("a", 1, "1", 1.0, limit_s=2.0)


def repeated(cell: str, repetitions: Sequence[Sequence[float | None]]) -> list[QueryRun]:
    return [run for n, times in enumerate(repetitions, 1) for run in runs_of(cell, times, repetition=n)]


def test_two_repetitions_have_no_interval() -> None:
    (cell,) = scored(repeated("a", [(10, 20), (11, 21)])).cells
    assert (None, None) == (cell.time.low, cell.score.high)


def test_the_interval_is_students_widened_for_a_median() -> None:
    (cell,) = scored(repeated("a", [(90,), (100,), (125,)])).cells
    logarithms = [math.log(value) for value in (90, 100, 125)]
    mean = sum(logarithms) / 3
    error = math.sqrt(sum((value - mean) ** 2 for value in logarithms) / 2 / 3) * math.sqrt(math.pi / 2)
    # 4.3027 is Student's 97.5 % quantile with two degrees of freedom.
    assert cell.time.low == pytest.approx(100 * math.exp(-4.302653 * error), rel=1e-5)
    assert cell.time.high == pytest.approx(100 * math.exp(4.302653 * error), rel=1e-5)


def test_equal_repetitions_have_an_interval_of_no_width() -> None:
    (cell,) = scored(repeated("a", [(10, 20)] * 3)).cells
    assert (30, 30) == pytest.approx((cell.time.low, cell.time.high))


def test_a_repetition_that_lacks_a_query_is_no_part_of_the_interval() -> None:
    runs = repeated("a", [(10, 20), (11, 20), (12, 20)])
    (cell,) = scored([*runs, *runs_of("a", (9000,), repetition=4)]).cells
    (without,) = scored([*runs, *runs_of("a", (11,), repetition=4)]).cells
    assert cell.score.low is not None
    assert math.log(cell.time.high or 0) - math.log(cell.time.value or 1) == pytest.approx(
        math.log(without.time.high or 0) - math.log(without.time.value or 1)
    )


def test_repetitions_that_score_nothing_have_no_interval() -> None:
    (cell,) = scored(repeated("a", [(None,), (10,), (10,)])).cells
    assert 1.0 == cell.score.value
    assert cell.score.low is None
    assert cell.time.low is not None


def test_a_score_is_bounded_by_the_number_of_queries() -> None:
    (cell,) = scored(repeated("a", [(10, 20), (20, 40), (15, 30)])).cells
    assert 2.0 == cell.score.value == cell.score.high
    assert 0 < (cell.score.low or 0) < 2


@pytest.mark.parametrize("repetitions", [3, 5])
def test_the_interval_holds_the_true_time_as_often_as_it_says(repetitions: int) -> None:
    generator = random.Random(repetitions)
    held = 0
    for _ in range(400):
        drift = [generator.gauss(0, 0.03) for _ in range(repetitions)]
        measured = [[20 * math.exp(shift + generator.gauss(0, 0.1)) for _ in range(8)] for shift in drift]
        (cell,) = scored(repeated("a", measured)).cells
        assert cell.time.low is not None
        assert cell.time.high is not None
        held += cell.time.low <= 160 <= cell.time.high
    # 380 of 400 are promised; three standard deviations of the count are 13.
    assert held >= 367


_TABLES = st.integers(1, 4).flatmap(
    lambda queries: st.lists(
        st.lists(POSITIVE | st.none(), min_size=queries, max_size=queries), min_size=1, max_size=4
    )
)


@settings(deadline=None)
@given(_TABLES)
def test_bounds_of_the_figures(table: list[list[float | None]]) -> None:
    result = scored(*(runs_of(f"cell {n}", times) for n, times in enumerate(table)))
    queries = len(table[0])
    assert queries == len(result.kept) + len(result.dropped)
    for cell, times in zip(result.cells, table, strict=True):
        assert cell.score.value is not None
        assert 0 <= cell.score.value <= queries - len(cell.timeouts)
        assert cell.time.value == pytest.approx(sum(LIMIT if t is None else t for t in times))
        assert 0 <= (cell.score.ideal_share or 0) <= 1
        if result.kept:
            assert cell.m_score.value is not None
            assert cell.m_score.value <= cell.score.value + 1e-9


@settings(deadline=None)
@given(_TABLES, _TABLES)
def test_suspect_cells_are_not_felt_by_trusted_ones(
    trusted: list[list[float | None]], suspect: list[list[float | None]]
) -> None:
    width = min(len(trusted[0]), len(suspect[0]))
    good = [runs_of(f"good {n}", times[:width]) for n, times in enumerate(trusted)]
    bad = [doubtful(f"bad {n}", times[:width], ("q",) * width) for n, times in enumerate(suspect)]
    alone, beside = scored(*good), scored(*bad, *good)
    assert alone.cells == beside.cells[len(bad) :]
    assert (alone.kept, alone.dropped) == (beside.kept, beside.dropped)


@settings(deadline=None)
@given(_TABLES, st.floats(min_value=0.01, max_value=100))
def test_scores_do_not_hang_on_the_unit_of_time(table: list[list[float | None]], factor: float) -> None:
    def total(scale: float) -> list[float]:
        rows = [[None if t is None else t * scale for t in times] for times in table]
        result = scored(*(runs_of(f"cell {n}", times) for n, times in enumerate(rows)))
        return [cell.score.value or 0.0 for cell in result.cells]

    assert total(1.0) == pytest.approx(total(factor))


@settings(deadline=None)
@given(_TABLES, st.randoms(use_true_random=False))
def test_the_order_of_runs_is_of_no_account(table: list[list[float | None]], shuffler: random.Random) -> None:
    runs = [run for n, times in enumerate(table) for run in runs_of(f"cell {n}", times)]
    names = [f"cell {n}" for n in range(len(table))]
    other = list(runs)
    shuffler.shuffle(other)
    found, again = scores(runs, names), scores(other, names)
    assert [values(cell) for cell in found.cells] == [pytest.approx(values(cell)) for cell in again.cells]
    assert found.dropped == again.dropped
