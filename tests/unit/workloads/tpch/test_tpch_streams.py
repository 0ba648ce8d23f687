"""Several streams at once on a server that is played."""

from __future__ import annotations

import queue
import threading

import pytest
from tests.support.runs.played_tpch import (
    QUERY_OF,
    SMALL,
    Play,
    Rows,
    drawn_answer,
    usual_answer,
)

from bedplate.model import codec
from bedplate.model.reason import sentences
from bedplate.model.visit import Outcome
from bedplate.visit.server import SessionFailed
from bedplate.workloads.tpch import visit
from bedplate.workloads.tpch.model import stream_phase
from bedplate.workloads.tpch.queries import drawn_query, query_order, validation_query
from bedplate.workloads.tpch.query_plan import ANALYZE_TARGET, PLANS_FILE, QueryPlans


def test_streams_run_at_once_each_in_its_own_order(play: Play) -> None:
    together = threading.Barrier(3, timeout=60)
    first = {validation_query(query_order(stream)[0], SMALL) for stream in (1, 2, 3)}
    met: list[str] = []

    def meet(statement: str) -> Rows:
        if statement in first and len(met) < 3:
            met.append(statement)
            # Comes back only when all three streams are at their first query.
            together.wait()
        return usual_answer(statement)

    play.server.answer = meet
    record = play.run("throughput", streams=3, parameters="validation")
    assert (Outcome.COMPLETED, ()) == (record.outcome, record.reasons)
    for stream in (1, 2, 3):
        assert list(map(str, query_order(stream))) == [
            item.item for item in record.items if item.phase == stream_phase(stream)
        ]
    assert 66 == len(record.items)
    assert ["throughput"] == [phase.name for phase in record.phases]
    assert 3 == record.facts["streams"]
    assert sorted(event["done"] for event in play.events) == list(range(1, 67))
    # The same parameters in each: the answers of one query have one key.
    assert 22 == len(play.expected_answers)


def test_every_stream_keeps_its_plans_asked_for_when_all_have_ended(play: Play) -> None:
    play.server.answer = drawn_answer(seed=5, streams=(1, 2))
    record = play.run("throughput", streams=2, parameters="drawn", parameter_seed=5)
    assert (Outcome.COMPLETED, ()) == (record.outcome, record.reasons)
    plans = codec.read(QueryPlans, play.directory / PLANS_FILE)
    asked = [(stream_phase(stream), str(query)) for stream in (1, 2) for query in query_order(stream)]
    assert asked == [(plan.phase, plan.item) for plan in plans.plans]
    assert {(item.phase, item.item): item.facts["plan"] for item in record.items} == {
        (plan.phase, plan.item): plan.hash for plan in plans.plans
    }
    explained = [n for n, text in enumerate(play.server.said) if text.startswith("EXPLAIN")]
    queries = [n for n, text in enumerate(play.server.said) if text in set(play.server.queries())]
    assert max(queries) < min(explained)
    # What both streams ask in the same words is explained once.
    texts = {drawn_query(query, SMALL, seed=5, stream=stream) for stream in (1, 2) for query in range(1, 23)}
    assert len(texts) == len(explained)
    assert "1000" == plans.settings[ANALYZE_TARGET]


def test_streams_that_ask_alike_are_explained_once(play: Play) -> None:
    play.run("throughput", streams=3, parameters="validation")
    assert 22 == sum(text.startswith("EXPLAIN") for text in play.server.said)
    assert 66 == len(codec.read(QueryPlans, play.directory / PLANS_FILE).plans)


def test_a_stream_that_fails_lets_the_others_end_with_the_query_they_are_at(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    running: list[visit._Streams] = []
    run = visit._Streams.run

    def remember(streams: visit._Streams) -> None:
        running.append(streams)
        run(streams)

    monkeypatch.setattr(visit._Streams, "run", remember)
    begun = threading.Event()
    bad, held = (drawn_query(query_order(stream)[0], SMALL, seed=5, stream=stream) for stream in (1, 2))
    usual = drawn_answer(seed=5, streams=(1, 2))

    def answer(statement: str) -> Rows:
        if statement == bad:
            assert begun.wait(60)
            raise SessionFailed(f"{statement:.120}: ERROR:  out of luck")
        if statement == held:
            begun.set()
            assert running[0]._stopped.wait(60)
        return usual(statement)

    play.server.answer = answer
    record = play.run("throughput", streams=2, parameters="drawn", parameter_seed=5)
    assert Outcome.FAILED == record.outcome
    assert sentences(record.reasons)[0].startswith(f"query {query_order(1)[0]} of stream 1: ")
    assert [(stream_phase(2), str(query_order(2)[0]))] == [(item.phase, item.item) for item in record.items]
    assert all(session.closed for session in play.server.sessions)
    assert "streams_s" not in record.facts
    assert not (play.directory / PLANS_FILE).exists()


class Interrupted(BaseException):
    """As a signal's handler raises it."""


def test_an_interruption_ends_streams_that_wait_for_the_server(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = threading.Semaphore(0)

    def hang(statement: str) -> Rows:
        if statement in QUERY_OF:
            waiting.release()
            clients = play.server.sessions[:2]
            # As psql does, whose end its reader notices; the assertion is that it comes.
            assert all(session.abandoned.wait(60) for session in clients)
            raise SessionFailed("the server closed the connection: no message")
        return usual_answer(statement)

    class Ended(queue.SimpleQueue[BaseException | None]):
        def get(self, block: bool = True, timeout: float | None = None) -> BaseException | None:
            for _stream in range(2):
                assert waiting.acquire(timeout=60)
            raise Interrupted

    play.server.answer = hang
    monkeypatch.setattr(visit, "SimpleQueue", Ended)
    with pytest.raises(Interrupted):
        play.run("throughput", streams=2, parameters="validation")
    assert all(session.closed for session in play.server.sessions)


@pytest.mark.parametrize("streams", [{}, {"streams": 0}])
def test_no_streams_are_no_throughput_run(play: Play, streams: dict[str, int]) -> None:
    (reason,) = sentences(play.run("throughput", parameters="validation", **streams).reasons)
    assert "one stream or more" in reason
