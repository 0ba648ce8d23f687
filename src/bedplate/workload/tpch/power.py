"""A power run: the 22 queries one after another, in the order of stream 0 (clause 5.3.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.model import codec
from bedplate.model.query_plan import PLANS_FILE, QueryPlan, QueryPlans, plan_hash
from bedplate.model.tpch import COLD, QUERIES, query_phase
from bedplate.model.visit import TimedItem
from bedplate.workload.tpch.answer_check import check_answers, item_place
from bedplate.workload.tpch.asking import ask, limit_of, questions, session_for_queries

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bedplate.engine.postgresql.session import Session
    from bedplate.workload.tpch.asking import Asked, Question
    from bedplate.workload.tpch.recording import TpchRecording

_STREAM = 0
_PLANNING_LIMIT_S = 600.0
# What chooses between plans and may be set; they stand beside the plans, as both are compared.
_SETTINGS = (
    "jit",
    "max_parallel_workers_per_gather",
    "work_mem",
    "shared_buffers",
    "effective_cache_size",
    "random_page_cost",
    "seq_page_cost",
    "default_statistics_target",
    "server_version",
)


def run_power(recording: TpchRecording) -> None:
    """Ask every query, look at every plan, check every answer; raises what stops it.

    The plans are asked for after the last query, so that the time of none is touched.
    """
    if recording.spec.levels.text("pass") == COLD:
        recording.rig.make_cold()
        recording.facts["made_cold"] = True
    asked_for = questions(recording.spec, recording.scale_factor, stream=_STREAM)
    limit_s = limit_of(recording.spec)
    asked: list[Asked] = []
    with session_for_queries(recording.rig.cluster) as session:
        with recording.watched([session], first_phase=query_phase(asked_for[0].query)):
            for done, question in enumerate(asked_for, start=1):
                recording.tell(QUERIES, str(question.query), done=done, of=len(asked_for))
                with recording.phase(query_phase(question.query), [session]):
                    asked.append(ask(session, question, limit_s))
                recording.add(timed(asked[-1], limit_s))
        _keep_plans(recording, session, asked_for)
    check_answers(recording, asked)


def timed(asked: Asked, limit_s: float | None) -> TimedItem:
    """The item of a query; one that was stopped has its limit in place of its seconds."""
    phase, item = item_place(asked.question)
    if asked.rows is None:
        return TimedItem(phase, item, None, limit_s)
    return TimedItem(phase, item, asked.seconds, facts={"rows": len(asked.rows)})


def _keep_plans(recording: TpchRecording, session: Session, asked_for: Sequence[Question]) -> None:
    plans = []
    for question in asked_for:
        lines = session.rows(f"EXPLAIN (FORMAT JSON) {question.sql}", timeout_s=_PLANNING_LIMIT_S)
        explained = "\n".join(word or "" for line in lines for word in line)
        plan = QueryPlan(str(question.query), plan_hash(explained), explained)
        plans.append(plan)
        recording.add_facts(*item_place(question), plan=plan.hash)
    names = ", ".join(f"'{name}'" for name in _SETTINGS)
    shown = session.rows(
        f"SELECT name, current_setting(name) FROM pg_settings WHERE name IN ({names})"  # noqa: S608
    )
    settings = {str(name): str(value) for name, value in shown}
    codec.write(recording.directory / PLANS_FILE, QueryPlans(tuple(plans), settings))
