"""The kept answers at scale factor 1 are what DuckDB computes on the data that bedplate makes, all 22."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.runs.tpch_on_duckdb import TpchOnDuckdb

from bedplate.host.command import Commands
from bedplate.workloads.tpch.prepare import TpchData, ensure_tpch_data
from bedplate.workloads.tpch.queries import (
    SCALE_FACTOR,
    canonical_answer,
    check_answer,
    specification_answer,
    validation_query,
)

# For its 1.1 GB of files and its half minute: it needs neither root nor a device.
pytestmark = [pytest.mark.host, pytest.mark.second_lane]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TpchData]:
    cache = tmp_path_factory.mktemp("tpch")
    with pytest.MonkeyPatch.context() as patch:
        # Else root's folders above would have to be open to everybody.
        patch.setattr("os.geteuid", lambda: 1000)
        made = ensure_tpch_data(SCALE_FACTOR, cache_directory=cache, commands=Commands())
    yield made
    for file in Path(made.directory).glob("*.csv"):
        file.unlink()


def test_all_22_answers_are_right_to_the_letter(data: TpchData) -> None:
    engine = TpchOnDuckdb(data.directory, SCALE_FACTOR)
    try:
        found = {query: engine.rows(validation_query(query, SCALE_FACTOR)) for query in range(1, 23)}
    finally:
        engine.close()
    assert {} == {query: reasons for query, rows in found.items() if (reasons := check_answer(query, rows))}
    differing = [q for q, rows in found.items() if canonical_answer(q, rows) != specification_answer(q)]
    assert [] == differing
