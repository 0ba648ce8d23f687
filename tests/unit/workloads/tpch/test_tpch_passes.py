"""Passes over the queries on a server that is played: order, limits, plans, answers, failures."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.runs.played_tpch import (
    PLAN,
    QUERY_OF,
    SMALL,
    STOPPED,
    Play,
    Rows,
    drawn_answer,
    failing_at,
    plausible_rows,
    stopping,
    usual_answer,
)

from bedplate.errors import VisitFailed
from bedplate.model import codec
from bedplate.model.reason import sentences
from bedplate.model.visit import Outcome
from bedplate.visit.server import SessionFailed
from bedplate.workloads.tpch import queries
from bedplate.workloads.tpch.model import QUERIES, query_phase
from bedplate.workloads.tpch.queries import answer_digest, query_order, specification_answer, validation_query
from bedplate.workloads.tpch.query_plan import ANALYZE_TARGET, PLANS_FILE, QueryPlans


def test_a_pass_asks_in_the_order_of_stream_0_and_for_plans_afterwards(play: Play) -> None:
    record = play.power()
    assert (Outcome.COMPLETED, ()) == (record.outcome, record.reasons)
    assert [validation_query(query, SMALL) for query in query_order(0)] == play.server.queries()
    first_plan = next(n for n, text in enumerate(play.server.said) if text.startswith("EXPLAIN"))
    last_query = max(n for n, text in enumerate(play.server.said) if text in QUERY_OF)
    assert last_query < first_plan
    assert [query_phase(query) for query in query_order(0)] == [phase.name for phase in record.phases]
    plans = codec.read(QueryPlans, play.directory / PLANS_FILE)
    assert list(map(str, query_order(0))) == [plan.item for plan in plans.plans]
    assert {"jit": "off", "server_version": "18.6", ANALYZE_TARGET: "1000"} == plans.settings
    assert {QUERIES} == {plan.phase for plan in plans.plans}
    assert PLAN == plans.plans[0].explained
    for item in record.items:
        query = int(item.item)
        assert item.facts["answer"] == answer_digest(query, plausible_rows(query))
        assert play.expected_answers[str(item.facts["answer_key"])] == item.facts["answer"]
    # Nothing is said of limits where there is none.
    assert not any("statement_timeout" in text for text in play.server.said)


def test_only_a_cold_pass_is_made_cold_and_before_any_session(play: Play) -> None:
    assert "made_cold" not in play.power("warm").facts
    assert 0 == play.cold
    assert play.power("cold").facts["made_cold"] is True
    assert 1 == play.cold


def test_a_stand_that_cannot_be_made_cold_ends_the_visit(play: Play) -> None:
    def fall() -> None:
        raise VisitFailed("cold", "it is mounted with other options")

    play.make_cold = fall  # type: ignore[method-assign]
    with pytest.raises(VisitFailed, match="other options"):
        play.power("cold")


def test_a_timeout_is_set_for_the_query_alone_and_is_a_result(play: Play) -> None:
    slow = validation_query(9, SMALL)
    # A plan is asked for without a limit, or it would be stopped too.
    play.server.answer = stopping({slow})
    record = play.power(query_timeout_s=2.5)
    assert (Outcome.COMPLETED, ()) == (record.outcome, record.reasons)
    (stopped,) = [item for item in record.items if item.seconds is None]
    assert (QUERIES, "9", 2.5) == (stopped.phase, stopped.item, stopped.limit_s)
    assert {"plan"} == set(stopped.facts)
    assert all(item.limit_s is None for item in record.items if item is not stopped)
    assert 22 == len(record.phase_counters)
    limit = None
    for text in play.server.said:
        if text.startswith("SET statement_timeout"):
            limit = text.split()[-1]
        else:
            assert ("2500" if text in QUERY_OF else "0") == (limit or "0")


@pytest.mark.parametrize(("limit_s", "limit_ms"), [(0.0001, 1), (0.0126, 13), (300.0, 300_000)])
def test_no_limit_is_so_short_that_it_is_none(play: Play, limit_s: float, limit_ms: int) -> None:
    play.power(query_timeout_s=limit_s)
    assert {f"SET statement_timeout = {limit_ms}", "SET statement_timeout = 0"} == {
        text for text in play.server.said if "timeout" in text
    }


def test_a_limit_that_stops_its_own_lifting_is_lifted_again(play: Play) -> None:
    stops = iter([True, True])

    def answer(statement: str) -> Rows:
        if statement == "SET statement_timeout = 0" and next(stops, False):
            raise SessionFailed(f"{statement}: {STOPPED}", message=STOPPED)
        return usual_answer(statement)

    play.server.answer = answer
    assert Outcome.COMPLETED == play.power(query_timeout_s=0.001).outcome
    play.server.answer = stopping({"SET statement_timeout = 0"})
    record = play.power(query_timeout_s=0.001)
    assert Outcome.FAILED == record.outcome
    assert "longer query_timeout" in sentences(record.reasons)[0]


def test_a_clock_that_rings_behind_the_end_of_its_lifting_stops_nothing_that_counts(play: Play) -> None:
    late = "ERROR:  canceling statement due to user request"
    lifted = False

    def answer(statement: str) -> Rows:
        nonlocal lifted
        was_lifted, lifted = lifted, False
        if was_lifted and not rung:
            rung.append(statement)
            raise SessionFailed(f"{statement}: {late}", message=late)
        lifted = statement == "SET statement_timeout = 0"
        return usual_answer(statement)

    rung: list[str] = []
    play.server.answer = answer
    record = play.power(query_timeout_s=0.004)
    assert (Outcome.COMPLETED, ()) == (record.outcome, record.reasons)
    assert rung
    assert all(item.seconds is not None for item in record.items)


@pytest.mark.parametrize("limit", [{}, {"query_timeout_s": 5.0}])
def test_a_query_that_fails_otherwise_fails_its_run(play: Play, limit: dict[str, Any]) -> None:
    sixth = validation_query(query_order(0)[5], SMALL)
    play.server.answer = failing_at(sixth, "ERROR:  could not write block 7 of temporary file")
    record = play.power(**limit)
    assert Outcome.FAILED == record.outcome
    assert sentences(record.reasons)[0].startswith(f"query {query_order(0)[5]}: ")
    assert sentences(record.reasons)[0].endswith("could not write block 7 of temporary file")
    assert "\n" not in sentences(record.reasons)[0]
    assert 5 == len(record.items)
    assert play.server.sessions[0].abandoned.is_set()
    assert not (play.directory / PLANS_FILE).exists()


def test_a_stop_that_nobody_asked_for_is_a_failure(play: Play) -> None:
    play.server.answer = failing_at(validation_query(1, SMALL), STOPPED)
    assert Outcome.FAILED == play.power().outcome


def test_a_server_that_is_dead_after_the_last_query_fails_the_run(play: Play) -> None:
    def die(statement: str) -> Rows:
        if statement == validation_query(query_order(0)[-1], SMALL):
            play.server.alive = False
        return usual_answer(statement)

    play.server.answer = die
    record = play.power()
    assert Outcome.FAILED == record.outcome
    assert any("the server died" in reason for reason in sentences(record.reasons))


def test_drawn_parameters_are_of_the_seed_and_the_stream(play: Play) -> None:
    play.server.answer = drawn_answer(seed=11, streams=(0, 1, 2))
    assert () == play.power(parameters="drawn", parameter_seed=11).reasons
    record = play.run("throughput", streams=2, parameters="drawn", parameter_seed=11)
    assert () == record.reasons
    keys = {str(item.facts["answer_key"]) for item in record.items}
    assert 44 == len(keys)
    assert 66 == len(play.expected_answers)
    assert "TPC-H, scale factor 0.001, seed 11, stream 2, query 9" in keys
    assert (play.directory / "logs" / "answer-stream-2-09.csv").exists()
    failed = play.power(parameters="drawn")
    assert any("seed" in reason for reason in sentences(failed.reasons))


def test_another_answer_than_before_fails_each_run_that_gives_it(play: Play) -> None:
    assert () == play.power().reasons
    other = validation_query(6, SMALL)
    play.server.answer = lambda text: [["7"]] if text == other else usual_answer(text)
    for _ in range(2):
        (reason,) = sentences(play.power().reasons)
        assert reason.startswith(
            "query 6: its answer differs from the one found before in run power of this visit (1 rows, digest"
        )
        assert "7\r\n" == (play.directory / "logs" / "answer-06.csv").read_bytes().decode()


def test_an_answer_that_differs_names_the_visit_that_found_the_other(play: Play) -> None:
    assert () == play.power().reasons
    (key,) = [key for key in play.expected_answers if key.endswith("query 6")]
    play.expected_answers[key] = "0" * 64
    play.answer_sources[key] = "run cold of ext4-8k, repetition 1"
    (reason,) = sentences(play.power().reasons)
    assert "the one found before in run cold of ext4-8k, repetition 1 (1 rows" in reason
    play.answer_sources.clear()
    (reason,) = sentences(play.power().reasons)
    assert "the one found before (1 rows" in reason


def test_an_answer_of_another_shape_is_told_and_kept(play: Play) -> None:
    wrong = validation_query(6, SMALL)
    play.server.answer = lambda text: [["WARNING", None]] if text == wrong else usual_answer(text)
    record = play.power()
    (reason,) = sentences(record.reasons)
    assert "query 6: no answer of its kind" in reason
    assert "WARNING,\\N\r\n" == (play.directory / "logs" / "answer-06.csv").read_bytes().decode()
    assert 22 == len(record.items)


def test_at_scale_factor_1_the_specification_decides(play: Play) -> None:
    play.scale_factor = 1

    def right(statement: str) -> Rows:
        query = QUERY_OF.get(statement)
        return (
            usual_answer(statement) if query is None else [list(row) for row in specification_answer(query)]
        )

    play.server.answer = right
    assert () == play.power().reasons
    assert 22 == len(play.expected_answers)
    # Many rows are not all kept, as they are right.
    kept = (play.directory / "logs" / "answer-16.csv").read_text().splitlines()
    assert queries._ROWS_SHOWN == len(kept)
    play.expected_answers.clear()
    wrong = validation_query(4, 1)
    play.server.answer = lambda text: right(text)[1:] if text == wrong else right(text)
    # Twice: a wrong answer never becomes what later ones are held to.
    for _ in range(2):
        (reason,) = sentences(play.power().reasons)
        assert "query 4: its answer differs from the specification's" in reason
        assert "expected 5 rows, found 4" in reason
    assert 21 == len(play.expected_answers)


def test_an_unknown_kind_is_told_with_the_known_ones(play: Play) -> None:
    (reason,) = sentences(play.run("refresh").reasons)
    assert "'refresh' is not known" in reason
    assert "load, power, throughput" in reason
