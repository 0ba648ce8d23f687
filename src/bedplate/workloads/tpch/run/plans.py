"""How the server answers each query: EXPLAIN's own text beside the record, its hash at the item.

Asked for after the last query, so that the time of none is touched, in a session with the same settings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.model import codec
from bedplate.workloads.tpch.query_plan import ANALYZE_TARGET, PLANS_FILE, QueryPlan, QueryPlans, plan_hash
from bedplate.workloads.tpch.run.answer_check import item_place
from bedplate.workloads.tpch.run.schema import STATISTICS_TARGET

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bedplate.engines.postgresql.session import Session
    from bedplate.workloads.tpch.run.asking import QueryCall
    from bedplate.workloads.tpch.run.recording import TpchRecording

_PLANNING_LIMIT_S = 600.0
# What chooses between plans and may be set; they stand beside the plans, as both are compared.
_SETTINGS = (
    "jit",
    "max_parallel_workers_per_gather",
    "min_parallel_table_scan_size",
    "work_mem",
    "shared_buffers",
    "effective_cache_size",
    "random_page_cost",
    "seq_page_cost",
    "default_statistics_target",
    "server_version",
)


def keep_plans(recording: TpchRecording, session: Session, asked_for: Iterable[QueryCall]) -> None:
    """Write `plans.json`; what several streams ask in the same words is explained once."""
    explained: dict[str, str] = {}
    plans = []
    for question in asked_for:
        if question.sql not in explained:
            lines = session.rows(f"EXPLAIN (FORMAT JSON) {question.sql}", timeout_s=_PLANNING_LIMIT_S)
            explained[question.sql] = "\n".join(word or "" for line in lines for word in line)
        text = explained[question.sql]
        phase, item = item_place(question)
        plans.append(QueryPlan(item, plan_hash(text), text, phase))
        recording.add_facts(phase, item, plan=plans[-1].hash)
    codec.write(recording.directory / PLANS_FILE, QueryPlans(tuple(plans), _settings(session)))


def _settings(session: Session) -> dict[str, str]:
    """Those above, and every `enable_…` that somebody has changed; ANALYZE had a target of its own."""
    names = ", ".join(f"'{name}'" for name in _SETTINGS)
    shown = session.rows(
        f"SELECT name, current_setting(name) FROM pg_settings WHERE name IN ({names}) "  # noqa: S608
        "OR (starts_with(name, 'enable_') AND setting <> boot_val)"
    )
    return {**{str(name): str(value) for name, value in shown}, ANALYZE_TARGET: str(STATISTICS_TARGET)}
