"""What records say of pgbench's datasets and runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.model.engines import POSTGRESQL
from bedplate.model.workload import RecordWords, WorkloadModel
from bedplate.workloads.pgbench.own_database import is_own
from bedplate.workloads.pgbench.scripts import SEVERAL, scripts_of, variables_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.model.levels import Levels, Scalar

_FIXED = "fixed"


class PgbenchModel(WorkloadModel):
    """A warm-up is a time, or until the run is steady, and then its time is a limit."""

    def restores(self, dataset: Levels) -> bool:
        """Pgbench's own tables; one's own database is copied from the cache, or from where it lies, as it is."""
        return not is_own(dataset)

    def in_a_plan(self, levels: Levels) -> Mapping[str, Scalar]:
        """`run.warmup` and `run.scripts` as the plan has them, and each variable."""
        found = dict(super().in_a_plan(levels))
        if found.get("run.script") == SEVERAL:
            del found["run.script"]
            found["run.scripts"] = ", ".join(f"{each.name}@{each.weight}" for each in scripts_of(levels))
        found |= {f"run.variables.{name}": value for name, value in variables_of(levels).items()}
        if levels.get("warmup", _FIXED) != _FIXED:
            found |= {"run.warmup": levels["warmup"], "run.warmup_limit": found["run.warmup"]}
        return found


MODEL = PgbenchModel(
    POSTGRESQL,
    plan_keys={
        "scale": "scale",
        "dump": "dump",
        "copy": "copy",
        "database": "database",
        "script": "run.script",
        "clients": "run.clients",
        "jobs": "run.jobs",
        "warmup_s": "run.warmup",
        "duration_s": "run.duration",
        "rate_tps": "run.rate",
        "protocol": "run.protocol",
    },
    words=RecordWords(
        dataset="`scale`. Of one's own database `dump` (the name of its file), `source_sha256`, `source_bytes`, `source_compression` (absent: "
        "gzip), `prepare_text` and `settle_text` (what ran behind its restore). Of a data directory `copy` (its name), `database`, "
        "`source_sha256` (of its control file), `source_bytes`, and `…_fixed`: what its files are, whatever a plan asks for",
        run="`script`, `clients`, `jobs`, `duration_s`, …; of several scripts `script` is `several`, and `script_1`, `script_1_weight`, "
        "`script_1_text` are the first; `variable_…` is what scripts find set",
        phases="`warmup`, `measure`; figures of each of several scripts have the phase `scripts` and its name as item",
        facts="`clients`, `jobs`, `writing_transactions` and how they were counted (`writing_transactions_by`: `ids`, `WAL`), "
        "`wal_syncs`, `session_…` (settings of a new session after the run), `role_settings`, `unlogged_tables_written`, "
        "`script_sets_synchronous_commit_off`, `script_has_temporary_tables`, …",
        files="`warmup.bin`, `measure.bin`: the transaction logs, condensed; deleted once `run.json` is complete",
    ),
)
