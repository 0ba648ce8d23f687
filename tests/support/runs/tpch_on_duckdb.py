"""TPC-H on DuckDB, an engine that shares nothing with PostgreSQL: the judge of queries and answers."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import duckdb

from bedplate.workloads.tpch.queries import TABLES, Row, create_tables


class TpchOnDuckdb:
    """The eight tables in memory, loaded from a folder of CSV files."""

    def __init__(self, directory: Path, scale_factor: float) -> None:
        self._connection = duckdb.connect(config={"threads": 2})
        for statement in create_tables(scale_factor):
            self._connection.execute(statement.sql)
        for name in TABLES:
            self._connection.execute(f"copy {name} from '{directory / name}.csv' (format csv, header)")

    def rows(self, query: str) -> list[Row]:
        """The result as a client prints it."""
        return [tuple(map(_printed, row)) for row in self._connection.execute(query).fetchall()]

    def close(self) -> None:
        self._connection.close()


def _printed(value: object) -> str | None:
    if value is None:
        return None
    return format(value, "f") if isinstance(value, Decimal) else str(value)
