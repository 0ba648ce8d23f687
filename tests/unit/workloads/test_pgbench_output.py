from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedplate.errors import OutputNotUnderstood
from bedplate.workloads.pgbench.figures import PgbenchSummary, parse_summary

VERSIONS = ("pg15", "pg18")


def golden(repository: Path, version: str, name: str) -> tuple[str, str]:
    folder = repository / "tests/golden/pgbench" / version / name
    return (folder / "pgbench.out").read_text(), (folder / "pgbench.err").read_text()


def summary(repository: Path, version: str, name: str) -> PgbenchSummary:
    return parse_summary(*golden(repository, version, name))


def test_reads_every_figure_of_a_read_write_run(repository: Path) -> None:
    expected = PgbenchSummary(
        transactions=61014,
        tps=1525.734523,
        initial_connection_ms=19.053,
    )
    assert expected == summary(repository, "pg15", "read-write")


def test_the_divisor_of_tps_is_the_time_asked_and_what_the_last_transactions_took(repository: Path) -> None:
    duration_s = summary(repository, "pg18", "read-write").duration_s
    assert duration_s is not None
    assert 39.9 < duration_s < 40.1


@pytest.mark.parametrize("version", VERSIONS)
def test_takes_the_first_number_where_pgbench_says_n_of_m(repository: Path, version: str) -> None:
    found = summary(repository, version, "read-only-transactions")
    assert 50 == found.transactions


@pytest.mark.parametrize(
    ("version", "name", "transactions"),
    [
        ("pg15", "serialization-failures", 2032),
        ("pg15", "retried", 2556),
        ("pg18", "serialization-failures", 2584),
        ("pg18", "retried", 2458),
    ],
)
def test_failed_transactions_are_not_among_the_processed_ones(
    repository: Path, version: str, name: str, transactions: int
) -> None:
    assert transactions == summary(repository, version, name).transactions


def test_totals_are_not_taken_from_the_parts_of_several_scripts(repository: Path) -> None:
    found = summary(repository, "pg15", "several-scripts")
    assert (6641, 2214.228343) == (found.transactions, found.tps)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_run_without_a_transaction_has_no_speed(repository: Path, version: str) -> None:
    found = summary(repository, version, "aborted")
    assert (0, None, None) == (found.transactions, found.tps, found.duration_s)


@pytest.mark.parametrize("version", VERSIONS)
def test_reconnecting_runs_are_read_too(repository: Path, version: str) -> None:
    found = summary(repository, version, "per-connection")
    assert found.tps is not None
    assert found.initial_connection_ms is None


@pytest.mark.parametrize("version", VERSIONS)
def test_no_summary_quotes_what_was_printed(repository: Path, version: str) -> None:
    with pytest.raises(OutputNotUnderstood, match="could not create connection"):
        summary(repository, version, "no-connection")


def test_a_summary_without_its_speed_is_refused(repository: Path) -> None:
    output, errors = golden(repository, "pg18", "read-write")
    cut = output[: output.index("tps = ")]
    with pytest.raises(OutputNotUnderstood, match="tps = X"):
        parse_summary(cut, errors)


@given(st.text())
def test_any_text_is_understood_or_refused(text: str) -> None:
    try:
        parse_summary(text)
    except OutputNotUnderstood:
        return
    assert "actually processed" in text
