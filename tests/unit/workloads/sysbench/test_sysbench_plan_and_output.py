"""sysbench in a plan, what it prints, and whether its runs may be believed."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from tests.support.runs.raw_pgbench_run import Raw, values_of, write_raw

from bedplate.engines.mariadb.reading import COUNTER_FIGURES
from bedplate.errors import BedplateError, OutputNotUnderstood
from bedplate.figures.counters import Absent, Deltas, Divisors, FuzzyLog
from bedplate.figures.run import make_figures
from bedplate.figures.transaction_run import LOG_NOT_TURNED_OVER, age_growth_share
from bedplate.model import codec
from bedplate.model.cell import Dataset, RunSpec
from bedplate.model.levels import Levels
from bedplate.model.visit import RunRecord
from bedplate.plan.load import load_plan
from bedplate.visit.server import MYSQL, PGSQL, SqlEndpoint
from bedplate.workloads.sysbench.figures import VALIDITY, SysbenchEvidence, SysbenchSummary, parse_summary
from bedplate.workloads.sysbench.plan import SysbenchTable
from bedplate.workloads.sysbench.visit import LOGGING_SCRIPT, Sysbench

# Of sysbench 1.0.20, its histogram cut to four lines.
PRINTED = """Latency histogram (values are in milliseconds)
       value  ------------- distribution ------------- count
       5.571 |****************************************  2800
      31.375 |*****                                    120
      35.589 |**                                       70
     147.608 |                                         1

SQL statistics:
    queries performed:
        read:                            41874
        write:                           0
        other:                           5982
        total:                           47856
    transactions:                        2991   (496.52 per sec.)
    queries:                             47856  (7944.32 per sec.)
    ignored errors:                      3      (0.50 per sec.)
    reconnects:                          0      (0.00 per sec.)

General statistics:
    total time:                          6.0236s
    total number of events:              2991

Latency (ms):
         min:                                    0.40
"""
SOUND = SysbenchEvidence(
    client="sysbench",
    read_only=False,
    canary=False,
    duration_s=60.0,
    asked_duration_s=60.0,
    windows=(),
    complaints=(),
    client_cpu_s=1.0,
    client_threads=4,
    cpu_count=4,
    tps_trend=0.0,
    reads_per_transaction_trend=0.0,
    device_reads_per_s=0.0,
    kernel_messages=(),
    log_complete=True,
    log_damage=None,
    transactions_in_log=1000,
    transactions_by_client=1000,
    transactions_failed=0,
    transactions_outside_window=0,
    phase_s=60.3,
    client_s=60.1,
    clock_step_s=None,
    steal_share=0.0,
    course_problem=None,
    problems=(),
    fuzzy=FuzzyLog(turned_over=1.2),
    percentile_ms_by_log=30.0,
    summary=SysbenchSummary(1000, 60.0, 0, 0, ((30.6, 1000),)),
)


def summary(**changes: Any) -> SysbenchEvidence:
    """A sound run of which sysbench says something else."""
    assert SOUND.summary is not None
    return replace(SOUND, summary=replace(SOUND.summary, **changes))


def table(**changes: Any) -> SysbenchTable:
    return SysbenchTable.model_validate({"type": "sysbench", **changes})


def test_a_plan_comes_to_one_dataset_for_all_servers_and_a_run_for_each_level() -> None:
    asked = table(
        engine={"vary": ["mariadb", "postgresql"]},
        table_size=1000,
        run=[
            {"script": {"vary": ["oltp_read_only", "oltp_write_only"]}, "threads": {"vary": [1, 8]}},
            {"name": "held", "script": "oltp_update_index", "rate": 50, "warmup": 0},
        ],
    )
    planned = asked.planned(1, 1)
    assert (5, 1) == (asked.run_count(), asked.dataset_count())
    assert [
        "oltp_read_only-threads-1",
        "oltp_read_only-threads-8",
        "oltp_write_only-threads-1",
        "oltp_write_only-threads-8",
        "held",
    ] == [run.name for run in planned.runs]
    assert {
        "script": "oltp_update_index",
        "threads": 4,
        "warmup_s": 0,
        "duration_s": 60,
        "rate_tps": 50,
    } == dict(planned.runs[-1].levels)
    assert (Levels(tables=4, table_size=1000),) == planned.datasets
    assert ("mariadb", "postgresql") == planned.engines == asked.engines()


def test_two_servers_have_the_same_load_so_that_they_are_compared() -> None:
    text = """
        repetitions = 3
        [[filesystem]]
        type = "ext4"
        [[workload]]
        type = "sysbench"
        engine = { vary = ["mariadb", "postgresql"] }
    """
    plan = load_plan(text, source="plan.toml", directory=Path())
    loads = {cell.build.engine: plan.workloads_of(cell) for cell in plan.cells()}
    assert {"mariadb", "postgresql"} == set(loads)
    assert loads["mariadb"] == loads["postgresql"]
    assert (Levels(tables=4, table_size=100_000),) == loads["mariadb"][0].datasets


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"engine": "lmdb"}, "allowed: postgresql, mariadb"),
        ({"run": [{"script": "oltp_delete"}]}, "allowed: oltp_read_only, oltp_read_write"),
        ({"table_size": 10}, "100"),
        ({"run": []}, "one or more tables"),
    ],
)
def test_what_it_has_not_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        table(**changes)


def test_two_runs_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="two runs are called oltp_read_only"):
        table(run=[{"script": "oltp_read_only"}, {"script": "oltp_read_only", "threads": 2}]).planned(1, 1)


@pytest.mark.parametrize(
    ("engine", "duration", "warned"),
    [("postgresql", "40 s", True), ("postgresql", "45 s", False), ("mariadb", "40 s", False)],
)
def test_a_run_too_short_for_a_timed_checkpoint_is_warned_of(
    engine: str, duration: str, warned: bool
) -> None:
    text = f"""
        repetitions = 3
        [[filesystem]]
        type = "ext4"
        [postgresql.settings]
        checkpoint_timeout = "30s"
        checkpoint_completion_target = 0.5
        [[workload]]
        type = "sysbench"
        engine = "{engine}"
        [[workload.run]]
        script = "oltp_write_only"
        warmup = "5 s"
        duration = "{duration}"
        [[workload.run]]
        script = "oltp_read_only"
        duration = "5 s"
    """
    plan = load_plan(text, source="plan.toml", directory=Path())
    assert warned == any("run oltp_write_only: 40 s may not hold" in words for words in plan.warnings)
    assert not any("oltp_read_only" in words for words in plan.warnings)


def test_its_own_figures_are_read_with_the_histogram() -> None:
    found = parse_summary(PRINTED)
    assert (2991, 6.0236) == (found.transactions, found.duration_s)
    assert ((5.571, 2800), (31.375, 120), (35.589, 70), (147.608, 1)) == found.buckets
    assert [5.571, 31.375, 147.608] == [found.percentile_ms(share) for share in (0.5, 0.95, 1.0)]
    assert None is replace(found, buckets=()).percentile_ms(0.95)


@pytest.mark.parametrize(
    "cut", ["total number of events", "transactions:", "ignored errors", "reconnects", "total time"]
)
def test_output_without_its_end_is_not_understood(cut: str) -> None:
    with pytest.raises(OutputNotUnderstood):
        parse_summary(PRINTED.replace(cut, "cut"))


@pytest.mark.parametrize(
    ("evidence", "code"),
    [
        (
            replace(SOUND, fuzzy=FuzzyLog(0.4, tuple(float(each) for each in range(60)), 100.0)),
            "log-not-turned-over",
        ),
        (replace(SOUND, fuzzy=FuzzyLog(None)), "log-not-turned-over"),
        (replace(SOUND, fuzzy=None), "read-write-without-a-checkpoint"),
        (replace(SOUND, percentile_ms_by_log=33.0), "latencies-differ"),
        (replace(SOUND, transactions_by_client=999), "counts-differ"),
        (summary(ignored_errors=11), "ignored-errors"),
        (
            replace(
                summary(ignored_errors=900, transactions=0), transactions_in_log=0, transactions_by_client=0
            ),
            "ignored-errors",
        ),
        (summary(reconnects=1), "connections-lost"),
    ],
)
def test_each_rule_speaks(evidence: SysbenchEvidence, code: str) -> None:
    assert [code] == [reason.code for reason in VALIDITY.judge(evidence)[1]]


@pytest.mark.parametrize(
    "evidence",
    [
        SOUND,
        # It stays where it is, though the log is large.
        replace(SOUND, fuzzy=FuzzyLog(0.1, (50.0,) * 60, 100.0)),
        replace(SOUND, read_only=True, fuzzy=FuzzyLog(0.0)),
        summary(buckets=()),
        # A deadlock now and then is of the load, and the figure says it.
        summary(ignored_errors=10),
        replace(SOUND, summary=None),
        # sysbench counts the wait for a turn, the log does not.
        replace(SOUND, rate_limited=True, percentile_ms_by_log=1.0),
    ],
)
def test_a_sound_run_is_valid(evidence: SysbenchEvidence) -> None:
    assert () == VALIDITY.judge(evidence)[1]


def test_a_log_that_empties_is_said_to_fall() -> None:
    falls = replace(SOUND, fuzzy=FuzzyLog(0.4, tuple(float(60 - each) for each in range(60)), 100.0))
    (reason,) = VALIDITY.judge(falls)[1]
    assert "log-not-turned-over" == reason.code
    assert "the checkpoint age fell by 60 % of its limit" in reason.sentence
    assert "grows or falls by more than 10 %" in LOG_NOT_TURNED_OVER.threshold


def test_the_age_grows_by_a_share_of_its_limit() -> None:
    assert 0.6 == pytest.approx(age_growth_share(FuzzyLog(None, tuple(map(float, range(60))), 100.0)))
    assert [None, None, 0.0] == [
        age_growth_share(each)
        for each in (FuzzyLog(None), FuzzyLog(None, (1.0,) * 9, 100.0), FuzzyLog(None, (0.0,) * 20, 100.0))
    ]


def test_innodbs_counters_become_figures() -> None:
    before = {
        "mariadb.buffer_pool_reads": 0.0,
        "mariadb.buffer_pool_read_requests": 0.0,
        "mariadb.lsn_current": 1024.0,
    }
    after = {
        "mariadb.buffer_pool_reads": 5.0,
        "mariadb.buffer_pool_read_requests": 100.0,
        "mariadb.lsn_current": 1024.0 * 21,
        "mariadb.log_file_size_bytes": 10240.0,
        "mariadb.checkpoint_age": 7.0,
        "mariadb.checkpoint_max_age": 90.0,
    }
    deltas = Deltas(before, after, 10.0)
    formulas = COUNTER_FIGURES.formulas(deltas, Divisors(10, 10.0, None, 1, 16384))
    assert (0.95, 2.0) == (formulas["buffer_pool_hit_ratio"](), formulas["wal_kib_per_transaction"]())
    with pytest.raises(Absent):
        formulas["doublewrite_mib"]()
    assert FuzzyLog(2.0, (7.0,), 90.0) == COUNTER_FIGURES.fuzzy(deltas, [after, {}])
    assert FuzzyLog(None) == COUNTER_FIGURES.fuzzy(None, [])


@pytest.mark.parametrize(
    ("protocol", "words"),
    [(MYSQL, "--mysql-socket=/run/s --mysql-user=me"), (PGSQL, "--pgsql-host=/run/s --pgsql-user=me")],
)
def test_each_server_is_reached_by_sysbenchs_own_driver(tmp_path: Path, protocol: str, words: str) -> None:
    program = tmp_path / "usr/bin/sysbench"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    dataset = Dataset("sysbench", Levels(tables=8, table_size=1000))
    tool = Sysbench({"sysbench": str(tmp_path)}, SqlEndpoint(protocol, Path("/run/s"), "me", "db"), dataset)
    run = table().planned(1, 1).runs[0]
    argv = tool.running(run, Path("/tmp/log.lua"), duration_s=60.0, seed=2**31 + 5, rate_tps=50.0)
    line = " ".join(argv)
    assert words in line
    assert "--tables=8 --table-size=1000 --threads=4 --time=60 --events=0 --rand-seed=5" in line
    assert ["--rate=50", "/tmp/log.lua", "run"] == argv[-3:]
    assert "--threads=4" in tool.preparing()
    assert tool.environment(MORE="1")["LUA_PATH"].startswith(str(tmp_path))
    with pytest.raises(BedplateError, match="names no sysbench"):
        Sysbench({}, SqlEndpoint(protocol, Path("/run/s"), "me", "db"), dataset)


def test_the_script_that_logs_takes_what_the_visit_gives_it() -> None:
    script = LOGGING_SCRIPT.read_text()
    assert [True, True] == [f'os.getenv("{name}")' in script for name in ("BEDPLATE_SCRIPT", "BEDPLATE_LOG")]


# What of its summary is a figure, or held against one. Each other line says the same in other units.
_READ = {"transactions", "ignored errors", "reconnects", "total time", "total number of events"}
_OTHER_WORDS = {
    "read",
    "write",
    "other",
    "total",
    "queries",
    "sum",
    "min",
    "avg",
    "max",
    "99th percentile",
} | {
    "events (avg/stddev)",
    "execution time (avg/stddev)",
}


@pytest.mark.parametrize("name", ["deadlocks.out", "read-only.out"])
def test_no_line_of_a_real_summary_is_dropped_unseen(repository: Path, name: str) -> None:
    text = (repository / "tests/golden/sysbench" / name).read_text()
    printed = text[text.index("SQL statistics") :]
    labels = {line.rpartition(":")[0].strip() for line in printed.splitlines() if re.search(r":\s+\d", line)}
    assert _READ <= labels
    assert labels <= _READ | _OTHER_WORDS


def _of_sysbench(directory: Path, output: str) -> tuple[Path, Path]:
    """A raw run as sysbench leaves it, with what it printed."""
    visit, run = write_raw(directory, Raw())
    record = codec.read(RunRecord, run / "record.json")
    facts = {**record.facts, "script": "oltp_read_write", "threads": 16}
    spec = RunSpec("rw", "sysbench", Levels(script="oltp_read_write", threads=16))
    codec.write(run / "record.json", replace(record, spec=spec, facts=facts))
    (run / "logs/sysbench.out").write_text(output)
    return visit, run


def test_attempts_that_were_rolled_back_are_a_figure_and_a_doubt(tmp_path: Path, repository: Path) -> None:
    output = (repository / "tests/golden/sysbench/deadlocks.out").read_text()
    made = make_figures(*_of_sysbench(tmp_path, output))
    found = values_of(made)
    assert (556, 0) == (found["ignored_errors"], found["reconnects"])
    assert 556 / (556 + 849) == pytest.approx(found["ignored_error_share"])
    # sysbench's log has no failed transaction: 0 would say that there was none.
    assert "transactions_failed" not in found
    doubt = next(reason for reason in made.validity_reasons if reason.code == "ignored-errors")
    assert "556 attempts beside 849 transactions" in str(doubt)


def test_without_a_summary_errors_are_not_known(tmp_path: Path) -> None:
    made = make_figures(*_of_sysbench(tmp_path, "killed\n"))
    rows = {row.metric: row for row in made.figures}
    assert [None, "no-summary"] == [
        rows["ignored_errors"].value,
        getattr(rows["ignored_errors"].reason, "code", ""),
    ]
    assert "unreadable" in " ".join(reason.code for reason in made.validity_reasons)
