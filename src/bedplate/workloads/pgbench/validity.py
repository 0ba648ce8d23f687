"""Whether a completed run of pgbench may be believed: the rules of every such client, and one of its own."""

from __future__ import annotations

from dataclasses import dataclass

from bedplate.figures.rule import Rule, RunRules
from bedplate.figures.transaction_validity import OF_RECORD, OF_SPEED, WITHOUT_CHECKPOINT, TransactionEvidence
from bedplate.units import format_size


@dataclass(frozen=True, kw_only=True)
class PgbenchEvidence(TransactionEvidence):
    """Of a run of pgbench. `asked_times_memory` is the plan's scale as a multiple of the memory."""

    database_bytes: int | None
    memory_bytes: int | None
    asked_times_memory: float | None


def _fits_in_cache(evidence: PgbenchEvidence) -> str | None:
    asked, database, memory = evidence.asked_times_memory, evidence.database_bytes, evidence.memory_bytes
    if asked is None or asked < 1 or database is None or memory is None or database > memory:
        return None
    return (
        f"the database has {format_size(database)} and fits into the memory of {format_size(memory)}, "
        f"though the plan asks for {asked:g} times the memory"
    )


VALIDITY: RunRules[PgbenchEvidence] = RunRules(
    "pgbench",
    (
        WITHOUT_CHECKPOINT,
        *OF_SPEED,
        Rule(
            "database fits in the cache",
            "the database is not larger than the memory though the plan's scale is `Nx memory` with N of 1 or more",
            "Tarasov et al., HotOS 2011: results around the size of the cache are fragile",
            _fits_in_cache,
        ),
        *OF_RECORD,
    ),
)
