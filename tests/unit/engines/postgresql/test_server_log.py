from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedplate.engines.postgresql.reading import parse_server_log, read_server_log
from bedplate.figures.server_log import Checkpoint, ServerLog
from bedplate.figures.transactions import checkpoint_figures, checkpoint_windows, complete_timed
from bedplate.model.figure import Window

LOGS = {"pg15": 1795241797.901, "pg18": 1795241872.313}


@pytest.mark.parametrize(("version", "first"), LOGS.items())
def test_reads_the_checkpoints_of_a_real_log(repository: Path, version: str, first: float) -> None:
    log = read_server_log(repository / "tests/golden/pgbench" / version / "server.log")
    assert ["timed", "timed", "requested", "end of recovery", "requested"] == [
        c.kind for c in log.checkpoints
    ]
    assert first == log.checkpoints[0].start_wall_s
    assert all(c.end_wall_s is not None and c.end_wall_s > c.start_wall_s for c in log.checkpoints)


@pytest.mark.parametrize("version", LOGS)
def test_a_crash_is_a_complaint_though_its_severity_is_log(repository: Path, version: str) -> None:
    log = read_server_log(repository / "tests/golden/pgbench" / version / "server.log")
    crashes = [found.text for found in log.complaints if found.severity == "CRASH"]
    assert 2 == len(crashes)
    assert "terminated by signal 11" in crashes[0]
    assert "ERROR" in {found.severity for found in log.complaints}


def line(wall_s: float, text: str, severity: str = "LOG") -> str:
    return f"{wall_s:.3f} 77 checkpointer {severity}:  {text}\n"


def test_a_checkpoint_that_did_not_end_has_no_end() -> None:
    log = parse_server_log([line(1795241797.9, "checkpoint starting: time")])
    assert (Checkpoint("timed", 1795241797.9, None),) == log.checkpoints


def test_an_end_without_a_start_is_not_a_checkpoint() -> None:
    assert () == parse_server_log([line(1795241797.9, "checkpoint complete: wrote 1 buffers")]).checkpoints


@pytest.mark.parametrize(
    ("flags", "kind"),
    [
        ("time", "timed"),
        ("immediate force wait time", "timed"),
        ("wal", "requested"),
        ("immediate force wait", "requested"),
        ("fast force wait", "requested"),
        ("shutdown immediate", "requested"),
        ("end-of-recovery immediate wait", "end of recovery"),
    ],
)
def test_the_cause_is_what_the_log_says(flags: str, kind: str) -> None:
    assert kind == parse_server_log([line(1795241797.9, f"checkpoint starting: {flags}")]).checkpoints[0].kind


def test_a_statement_that_quotes_a_checkpoint_is_none() -> None:
    quoted = [
        "1795241821.023 25404 client backend STATEMENT:  select 'checkpoint starting: time'\n",
        "checkpoint starting: time\n",
        "\t1795241821.023 25404 checkpointer LOG:  checkpoint starting: time\n",
    ]
    assert ServerLog((), ()) == parse_server_log(quoted)


def test_complaints_do_not_fill_the_memory() -> None:
    many = (line(1795241797.9, "no", "ERROR") for _ in range(5000))
    assert 1000 == len(parse_server_log(many).complaints)


@given(st.lists(st.text()))
def test_any_text_is_passed_over(lines: list[str]) -> None:
    assert ServerLog((), ()) == parse_server_log(lines)


@given(
    st.lists(st.tuples(st.floats(0, 50), st.floats(0, 50)), max_size=8),
    st.floats(0.001, 60),
)
def test_every_window_overlaps_the_run_and_ends_within_it(
    pairs: list[tuple[float, float]], to_s: float
) -> None:
    log = ServerLog(tuple(Checkpoint("timed", a, a + b) for a, b in pairs), ())
    for window in checkpoint_windows(log, 10.0, -5.0, to_s):
        assert window.start_s < to_s
        assert window.end_s is None or -5.0 < window.end_s <= to_s


def test_a_checkpoint_of_the_warm_up_starts_below_zero() -> None:
    log = ServerLog((Checkpoint("timed", 95.0, 103.0), Checkpoint("requested", 50.0, 60.0)), ())
    assert (Window("timed", -5.0, 3.0),) == checkpoint_windows(log, 100.0, -10.0, 30.0)


def test_only_a_timed_checkpoint_from_begin_to_end_is_complete() -> None:
    windows = (
        Window("timed", -1.0, 2.0),
        Window("timed", 3.0, 5.0),
        Window("requested", 6.0, 7.0),
        Window("timed", 8.0, None),
    )
    assert (Window("timed", 3.0, 5.0),) == complete_timed(windows, 10.0)
    counts = {row.metric: row.value for row in checkpoint_figures(windows, 10.0)}
    assert {"checkpoints_timed": 2, "checkpoints_requested": 1, "checkpoints_complete": 1} == counts


def test_checkpoints_without_a_log_are_absent_and_not_zero() -> None:
    assert {(None, "the server's log could not be read")} == {
        (row.value, str(row.reason)) for row in checkpoint_figures(None, 10.0)
    }
