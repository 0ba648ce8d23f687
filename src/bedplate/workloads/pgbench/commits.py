"""What a run of pgbench committed, and what its sessions were told of durability: facts for the declared class.

The text of a script shows only part of it (a function, a role or a rule may set the rest), so it is counted: which
transactions wrote, and what a new session of the workload finds set after the run.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from bedplate.engines.postgresql.counters import PostgresqlProbe
from bedplate.engines.postgresql.server import cluster_of
from bedplate.errors import BedplateError
from bedplate.model.durability import SESSION_SETTINGS
from bedplate.units import MIB
from bedplate.workloads.pgbench.own_database import is_own
from bedplate.workloads.pgbench.script_statements import statement_texts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bedplate.engines.postgresql.session import Session
    from bedplate.model.levels import Scalar
    from bedplate.model.visit import Sample
    from bedplate.visit.workload import VisitContext
    from bedplate.workloads.pgbench.scripts import RunScript

# Enough for tens of thousands of commits, and read in a tenth of a second.
_WAL_READ_BYTES_MAX = 4 * MIB
_COMMIT = re.compile(r"^rmgr: Transaction .*? tx: +(\d+),.* desc: COMMIT", re.MULTILINE)
# `SET [SESSION | LOCAL] … = off`, `set_config('…', 'off', …)`, and what the server reads as off.
_SETS_ASYNCHRONOUS = re.compile(
    r"synchronous_commit['\"]?\s*(?:=|\bto\b|,)\s*['\"]?\s*(?:off|false|fals|fal|fa|f|no|n|of|0)\b",
    re.IGNORECASE,
)
# `CREATE TEMP TABLE`, `SELECT … INTO TEMPORARY …`, and their schema.
_TEMPORARY = re.compile(
    r"\b(?:create|(?<!insert\s)into)\s+(?:(?:local|global)\s+)?temp(?:orary)?\b|\bpg_temp\b", re.IGNORECASE
)
_NAMED = ", ".join(f"'{name}'" for name in SESSION_SETTINGS)
_ROLES = """
SELECT coalesce(d.datname, 'every database') || ' for ' || coalesce(r.rolname, 'every role') || ': ' || c
FROM pg_db_role_setting s
LEFT JOIN pg_database d ON d.oid = s.setdatabase LEFT JOIN pg_roles r ON r.oid = s.setrole,
LATERAL unnest(s.setconfig) c
WHERE c ~ '^(fsync|full_page_writes|synchronous_commit)=' ORDER BY 1
"""
_UNLOGGED = """
SELECT format('%I.%I', schemaname, s.relname), n_tup_ins + n_tup_upd + n_tup_del
FROM pg_stat_user_tables s JOIN pg_class c ON c.oid = s.relid
WHERE c.relpersistence = 'u' AND n_tup_ins + n_tup_upd + n_tup_del > 0 ORDER BY 1
"""


# The last sessions of a run tell what they did when they end, a moment after pgbench has.
_GONE_LIMIT_S = 10.0


def unlogged_writes(session: Session) -> Mapping[str, int]:
    """Rows written so far to each unlogged table that there is."""
    return {str(name): int(rows or 0) for name, rows in session.rows(_UNLOGGED)}


def commit_facts(
    context: VisitContext,
    *,
    before: Sample,
    after: Sample,
    clients: int,
    scripts: Sequence[RunScript],
    unlogged_before: Mapping[str, int],
) -> Mapping[str, Scalar]:
    """Asked of a new session, which gets what roles and databases are set to by now."""
    with cluster_of(context).client_session() as session:
        rows = session.rows(f"SELECT name, current_setting(name) FROM pg_settings WHERE name IN ({_NAMED})")  # noqa: S608
    with cluster_of(context).session() as session:
        facts: dict[str, Scalar] = {f"session_{name}": str(value) for name, value in rows}
        _wait_for_the_last(session)
        roles = [str(row[0]) for row in session.rows(_ROLES)]
        unlogged = [
            name
            for name, written in unlogged_writes(session).items()
            if written > unlogged_before.get(name, 0)
        ]
        hides = is_own(context.dataset.levels)
        if roles:
            facts["role_settings"] = "; ".join(map(_without_names, roles) if hides else roles)
        if unlogged:
            facts["unlogged_tables_written"] = _named(unlogged, scripts) if hides else ", ".join(unlogged)
        texts = [text for script in scripts for text in statement_texts(script.text or "")]
        if any(map(_SETS_ASYNCHRONOUS.search, texts)):
            facts["script_sets_synchronous_commit_off"] = True
        if any(map(_TEMPORARY.search, texts)):
            facts["script_has_temporary_tables"] = True
        return {**facts, **_writing(session, context, before, after, clients)}


def _named(tables: Sequence[str], scripts: Sequence[RunScript]) -> str:
    """Those that the scripts name, and how many others: a study says no more of one's own database."""
    texts = " ".join(script.text or "" for script in scripts)
    told = [name for name in tables if name.rpartition(".")[2].strip('"') in texts]
    others = len(tables) - len(told)
    return ", ".join([*told, *([f"{others} of the database's own"] if others else [])])


def _without_names(role_setting: str) -> str:
    """The setting alone: databases and roles have the names of somebody's."""
    return "a role or a database: " + role_setting.rpartition(": ")[2]


def _wait_for_the_last(session: Session) -> None:
    deadline = time.monotonic() + _GONE_LIMIT_S
    asked = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pgbench'"
    while int(session.value(asked)) and time.monotonic() < deadline:
        session.execute("SELECT pg_sleep(0.02)")


def _writing(
    session: Session, context: VisitContext, before: Sample, after: Sample, clients: int
) -> Mapping[str, Scalar]:
    """How many transactions wrote and committed, and how often the WAL was synced meanwhile.

    Who writes is given an id, and so is every savepoint below it; commits are of all transactions. The lesser of the
    two is more than there were where both are many (reads, and writes with savepoints). So where it would speak
    against the run, commits are counted in the WAL.
    """
    told = {**after.values, **PostgresqlProbe(session, cluster_of(context).build.version).read()}
    told["postgresql.transaction_ids"] = after.values.get("postgresql.transaction_ids", 0.0)

    def grown(name: str) -> float | None:
        return told[name] - before.values[name] if name in before.values and name in told else None

    given, committed, rows = (
        grown(f"postgresql.{name}") for name in ("transaction_ids", "xact_commit", "rows_written")
    )
    if given is None or committed is None:
        return {}
    syncs = grown("postgresql.wal_syncs")
    facts: dict[str, Scalar] = {} if syncs is None else {"wal_syncs": int(syncs)}
    # One that only asked for its id wrote nothing.
    most = 0 if rows == 0 else int(min(given, committed))
    waits = [count for count in (syncs, grown("device.flushes")) if count is not None]
    share = _commits_per_id(session, context, before) if waits and min(waits) * clients < most else None
    if share is None:
        return {**facts, "writing_transactions": most, "writing_transactions_by": "ids"}
    return {**facts, "writing_transactions": int(min(given * share, most)), "writing_transactions_by": "WAL"}


def _commits_per_id(session: Session, context: VisitContext, before: Sample) -> float | None:
    """Commits for each id that was given, over the last of the WAL; None where it cannot be read.

    Older segments than the last checkpoint's may be written anew already.
    """
    start, end = (
        int(value or 0)
        for value in session.rows(
            "SELECT redo_lsn - '0/0', pg_current_wal_insert_lsn() - '0/0' FROM pg_control_checkpoint()"
        )[0]
    )
    start = max(start, end - int(_WAL_READ_BYTES_MAX), int(before.values.get("postgresql.wal_bytes", 0)))
    # What no commit has waited for may be in memory only: this one waits.
    session.execute("SET synchronous_commit = on")
    session.execute("SELECT pg_logical_emit_message(true, 'bedplate', '')")
    try:
        told = (
            cluster_of(context)
            .run(
                "pg_waldump",
                f"--path={context.data_directory / 'pg_wal'}",
                "--rmgr=Transaction",
                f"--start={_lsn(start)}",
                f"--end={_lsn(end)}",
                timeout_s=60,
            )
            .stdout
        )
    except BedplateError:
        return None
    ids = [int(found) for found in _COMMIT.findall(told)]
    return len(ids) / (max(ids) - min(ids) + 1) if len(ids) > 1 else None


def _lsn(position: int) -> str:
    return f"{position >> 32:X}/{position & 0xFFFFFFFF:X}"
