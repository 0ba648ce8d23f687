"""Every query means the same to two engines: PostgreSQL's recorded answers against DuckDB's on the same data."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.runs.tpch_on_duckdb import TpchOnDuckdb

from bedplate.host.command import Commands
from bedplate.workloads.tpch.prepare import ensure_tpch_data, packaged_generator
from bedplate.workloads.tpch.queries import (
    Row,
    answer_differences,
    canonical_answer,
    drawn_query,
    validation_query,
)

SCALE_FACTOR = 0.01
GOLDEN = Path(__file__).resolve().parents[3] / "golden/tpch/postgresql-18.6-sf0.01.json"
QUERIES = range(1, 23)


@pytest.fixture(scope="module")
def duckdb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TpchOnDuckdb]:
    cache = tmp_path_factory.mktemp("tpch")
    with pytest.MonkeyPatch.context() as patch:
        # Else root's folders above would have to be open to everybody.
        patch.setattr("os.geteuid", lambda: 1000)
        data = ensure_tpch_data(SCALE_FACTOR, cache_directory=cache, commands=Commands())
    engine = TpchOnDuckdb(data.directory, SCALE_FACTOR)
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def postgresql() -> dict[int, list[Row]]:
    document = json.loads(GOLDEN.read_text(encoding="utf-8"))
    generator = packaged_generator()
    assert generator is not None
    # Other data would have other answers; then they are to be recorded anew.
    assert document["generator"] == generator.name
    return {int(query): [tuple(row) for row in rows] for query, rows in document["answers"].items()}


@pytest.mark.parametrize("query", QUERIES)
def test_two_engines_agree(query: int, duckdb: TpchOnDuckdb, postgresql: dict[int, list[Row]]) -> None:
    rows = duckdb.rows(validation_query(query, SCALE_FACTOR))
    assert () == answer_differences(query, postgresql[query], rows)
    assert canonical_answer(query, postgresql[query]) == canonical_answer(query, rows)


@pytest.mark.parametrize("query", QUERIES)
def test_queries_with_drawn_parameters_give_rows_of_their_columns(query: int, duckdb: TpchOnDuckdb) -> None:
    for stream in range(3):
        rows = duckdb.rows(drawn_query(query, SCALE_FACTOR, seed=7, stream=stream))
        # It refuses a row that has other columns than this query, or one of another kind.
        assert len(rows) == len(canonical_answer(query, rows))


def test_recorded_answers_are_those_of_all_queries(postgresql: dict[int, list[Row]]) -> None:
    assert list(QUERIES) == list(postgresql)
    assert all(postgresql.values())
