"""Scripts that switch durability off, and scripts that only look as if they did, on a real server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from bedplate.figures.run import make_figures
from bedplate.model import codec
from bedplate.model.durability import BOUNDED_LOSS, DURABLE, UNKNOWN, UNSAFE
from bedplate.model.reason import sentences
from bedplate.model.visit import Outcome, RunRecord
from bedplate.workloads.pgbench.model import PHASE, RunScript, levels_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from bedplate.model.cell import RunSpec

pytestmark = pytest.mark.host

_UPDATE = (
    "\\set aid random(1, 100000)\nUPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;\n"
)
_READ = "\\set aid random(1, 100000)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n"
# Nine reads for each write, which has three savepoints: ids are many, and so are commits.
_STEP = "SAVEPOINT s;\nUPDATE pgbench_accounts SET abalance = 1 WHERE aid = :aid;\nRELEASE s;\n"
_MIXED = (
    "\\set kind random(1, 10)\n\\if :kind = 1\n\\set aid random(1, 100000)\nBEGIN;\n"
    + 3 * _STEP
    + "COMMIT;\n\\else\n"
    + _READ
    + "\\endif\n"
)
HEALTHY: dict[str, dict[str, Any]] = {
    "built in": {"script": "read-write", "clients": 8, "jobs": 2},
    "reads": {"script": "read-only", "clients": 2},
    "alone": {"script_text": _UPDATE, "clients": 1},
    "own": {"script_text": _UPDATE, "clients": 2},
    "together": {
        "script_text": "SET commit_delay = 2000; SET commit_siblings = 1;\n" + _UPDATE,
        "clients": 8,
        "jobs": 2,
    },
    "mixed": {"script_text": _MIXED, "clients": 1},
    "rolled back": {"script_text": f"BEGIN;\n{_UPDATE}ROLLBACK;\n{_UPDATE}", "clients": 1},
    "asks for ids": {"script_text": "SELECT pg_current_xact_id();\n", "clients": 2},
    # On is what it was: not every word of the setting is a lie.
    "says on": {
        "script_text": "-- synchronous_commit = off would lose commits\nSET synchronous_commit = on;\n"
        + _UPDATE,
        "clients": 2,
    },
}
# PL/pgSQL hides the word; the numbers do not.
_IN_PIECES = "SELECT set_config('synchronous' || '_commit', 'of' || 'f', false);\n" + _UPDATE
_TEMPORARY = "CREATE TEMPORARY TABLE IF NOT EXISTS own (n int);\nINSERT INTO own VALUES (1);\n"
ASYNCHRONOUS: dict[str, tuple[str, str]] = {
    "sets": ("SET synchronous_commit = off;\n" + _UPDATE, BOUNDED_LOSS),
    "sets locally": (f"BEGIN;\nSET LOCAL synchronous_commit TO OFF;\n{_UPDATE}COMMIT;\n", BOUNDED_LOSS),
    "in pieces": (_IN_PIECES, UNKNOWN),
    "temporary": (_TEMPORARY, UNKNOWN),
}


def _runs(make_run: Callable[..., RunSpec], **levels: dict[str, Any]) -> tuple[RunSpec, ...]:
    return tuple(
        make_run(name, **{"script": f"{name}.sql", "rate_tps": None, **of}) for name, of in levels.items()
    )


def test_what_waits_keeps_its_class_however_many_commits_share_a_flush(bench: Any, make_run: Any) -> None:
    record = bench.live(bench.request(runs=_runs(make_run, **HEALTHY)))
    assert (Outcome.COMPLETED, ()) == (record.outcome, record.reasons)
    assert ((), DURABLE, DURABLE) == (
        record.durability.by_runs,
        record.durability.volatile_cache,
        record.durability.protected_cache,
    )
    counted = {
        run.spec.name: (run.facts["writing_transactions"], run.facts["writing_transactions_by"])
        for run in (
            codec.read(RunRecord, bench.directory / "runs" / name / "record.json") for name in record.runs
        )
    }
    assert (0, "ids") == counted["asks for ids"]
    # Counted in the WAL, as ids and commits of other transactions would have spoken against them.
    assert {"WAL"} == {counted[name][1] for name in ("mixed", "rolled back")}


@pytest.mark.parametrize("name", list(ASYNCHRONOUS))
def test_commits_that_do_not_wait_lower_the_class_with_the_numbers(
    name: str, bench: Any, make_run: Any
) -> None:
    text, expected = ASYNCHRONOUS[name]
    record = bench.live(bench.request(runs=_runs(make_run, **{name: {"script_text": text, "clients": 2}})))
    assert (Outcome.COMPLETED, ()) == (record.outcome, record.reasons)
    (reason,) = sentences(record.durability.by_runs)
    assert (expected, expected) == (record.durability.volatile_cache, record.durability.protected_cache)
    assert f"run {name}: " in reason
    assert "transactions that wrote" in reason
    assert ("a script makes temporary tables" in reason) is (name == "temporary")


def test_what_a_script_sets_for_its_role_or_makes_of_its_tables_is_read_back(
    bench: Any, make_run: Any
) -> None:
    before = _runs(make_run, reads={"script": "read-only"})
    unlogged = {
        "script_text": "CREATE UNLOGGED TABLE IF NOT EXISTS numbers (n int);\nINSERT INTO numbers VALUES (1);\n",
        "clients": 1,
    }
    role = {"script_text": "ALTER ROLE CURRENT_USER SET synchronous_commit = off;\n" + _UPDATE, "clients": 1}
    later = _runs(make_run, unlogged=unlogged, role=role, later={"script": "simple-update"})
    record = bench.live(bench.request(runs=(*before, *later)))
    assert (Outcome.COMPLETED, ()) == (record.outcome, record.reasons)
    unlogged_reason, role_reason, later_reason = sentences(record.durability.by_runs)
    assert (UNSAFE, UNSAFE) == (record.durability.volatile_cache, record.durability.protected_cache)
    assert "public.numbers" in unlogged_reason
    assert "synchronous_commit=off" in role_reason
    # The role's setting outlives the run that made it.
    assert "run later: synchronous_commit = off" in later_reason


def test_one_of_several_scripts_that_does_not_wait_lowers_the_class_of_the_run(
    bench: Any, make_run: Any
) -> None:
    local = f"BEGIN;\nSET LOCAL synchronous_commit = off;\n{_UPDATE}COMMIT;\n"
    scripts = RunScript("waits", _UPDATE, 9), RunScript("hurries", local), RunScript("read-only")
    several = {**levels_of(scripts, {"n": 1}), "clients": 2}
    record = bench.live(bench.request(runs=_runs(make_run, several=several)))
    assert (Outcome.COMPLETED, ()) == (record.outcome, record.reasons)
    (reason,) = sentences(record.durability.by_runs)
    assert (BOUNDED_LOSS, BOUNDED_LOSS) == (
        record.durability.volatile_cache,
        record.durability.protected_cache,
    )
    assert "the script sets synchronous_commit = off" in reason
    (name,) = record.runs
    figures = make_figures(bench.directory, bench.directory / "runs" / name)
    rows = {(row.item, row.metric): row.value or 0.0 for row in figures.figures if row.phase == PHASE}
    counts = [rows[script.name, "transactions"] for script in scripts]
    whole = [row.value for row in figures.figures if (row.phase, row.metric) == ("measure", "transactions")]
    assert [sum(counts)] == whole
    # Nine to one, as pgbench draws them.
    assert counts[0] > 3 * counts[1] > 0
