"""What records say of pgbench's datasets and runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.model.engines import POSTGRESQL
from bedplate.model.workload import RecordWords, WorkloadModel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.model.levels import Levels, Scalar

_FIXED = "fixed"


class PgbenchModel(WorkloadModel):
    """A warm-up is a time, or until the run is steady, and then its time is a limit."""

    def in_a_plan(self, levels: Levels) -> Mapping[str, Scalar]:
        """`run.warmup` as the plan has it."""
        found = dict(super().in_a_plan(levels))
        if levels.get("warmup", _FIXED) != _FIXED:
            found |= {"run.warmup": levels["warmup"], "run.warmup_limit": found["run.warmup"]}
        return found


MODEL = PgbenchModel(
    POSTGRESQL,
    plan_keys={
        "scale": "scale",
        "script": "run.script",
        "clients": "run.clients",
        "jobs": "run.jobs",
        "warmup_s": "run.warmup",
        "duration_s": "run.duration",
        "rate_tps": "run.rate",
        "protocol": "run.protocol",
    },
    words=RecordWords(
        dataset="`scale`",
        run="`script`, `clients`, `jobs`, `duration_s`, …",
        phases="`warmup`, `measure`",
        facts="`clients`, `jobs`, `writing_transactions` and how they were counted (`writing_transactions_by`: `ids`, `WAL`), "
        "`wal_syncs`, `session_…` (settings of a new session after the run), `role_settings`, `unlogged_tables_written`, "
        "`script_sets_synchronous_commit_off`, …",
        files="`transactions.bin`: the transaction log, condensed",
    ),
)
