"""A power run: the 22 queries one after another, in the order of stream 0 (clause 5.3.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.engines.postgresql.server import cluster_of
from bedplate.model.visit import TimedItem
from bedplate.model.workload import COLD
from bedplate.workloads.tpch.model import QUERIES, query_phase
from bedplate.workloads.tpch.run.answer_check import check_answers, item_place
from bedplate.workloads.tpch.run.asking import ask, limit_of, questions, session_for_queries
from bedplate.workloads.tpch.run.plans import keep_plans

if TYPE_CHECKING:
    from bedplate.workloads.tpch.run.asking import QueryAnswer
    from bedplate.workloads.tpch.run.recording import TpchRecording

_STREAM = 0


def run_power(recording: TpchRecording) -> None:
    """Ask every query, look at every plan, check every answer; raises what stops it."""
    if recording.spec.levels.text("pass") == COLD:
        recording.context.make_cold()
        recording.facts["made_cold"] = True
    asked_for = questions(recording.spec, recording.scale_factor, stream=_STREAM)
    limit_s = limit_of(recording.spec)
    asked: list[QueryAnswer] = []
    with session_for_queries(cluster_of(recording.context)) as session:
        with recording.watched([session], first_phase=query_phase(asked_for[0].query)):
            for done, question in enumerate(asked_for, start=1):
                recording.tell(QUERIES, str(question.query), done=done, of=len(asked_for))
                with recording.phase(query_phase(question.query), [session]):
                    asked.append(ask(session, question, limit_s))
                recording.add(timed(asked[-1], limit_s))
        keep_plans(recording, session, asked_for)
    check_answers(recording, asked)


def timed(asked: QueryAnswer, limit_s: float | None) -> TimedItem:
    """The item of a query; one that was stopped has its limit in place of its seconds."""
    phase, item = item_place(asked.question)
    if asked.rows is None:
        return TimedItem(phase, item, None, limit_s)
    return TimedItem(phase, item, asked.seconds, facts={"rows": len(asked.rows)})
