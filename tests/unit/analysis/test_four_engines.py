"""Two servers and two libraries in one study: engines under one workload are compared, others stand apart in every place."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.support.studies.four_engines import LIBRARIES, OF_POSTGRESQL, SERVERS, four_engines
from tests.support.studies.study_readers import said_by_reader

from bedplate.analysis.overview import Overview, overview
from bedplate.analysis.run_heads import runs_together
from bedplate.export.workbook import choices_of, results_of

if TYPE_CHECKING:
    from pathlib import Path

OF_SERVERS, OF_LIBRARIES = ({cell.id for cell in cells} for cells in (SERVERS, LIBRARIES))


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return four_engines(tmp_path_factory.mktemp("four") / "study")


@pytest.fixture(scope="module")
def found(study: Path) -> Overview:
    return overview(study)


def test_what_cells_have_in_common_stands_together(found: Overview) -> None:
    assert [
        (["oltp_read_only", "oltp_update_index"], OF_SERVERS),
        (["write", "read-cold", "read-warm"], OF_LIBRARIES),
    ] == [
        ([name for _, name in runs][:3], {cell.id for cell in cells}) for runs, cells in runs_together(found)
    ]


def test_two_servers_are_compared_in_every_run_that_both_have(study: Path) -> None:
    code, text = said_by_reader(
        ("compare", "{study}", "--baseline", "engine=mariadb", "--contender", "engine=postgresql", "--json"),
        study,
    )
    assert 0 == code
    compared = json.loads(text)["comparisons"]
    tps = [one for one in compared if one["metric"] == "tps"]
    assert {"oltp_read_only", "oltp_update_index"} == {one["run"] for one in tps}
    assert {"faster"} == {one["verdict"] for one in tps}
    assert 4 == len(tps)
    assert all(one["estimate"] == pytest.approx(OF_POSTGRESQL, rel=0.05) for one in tps)


def test_a_server_and_a_library_are_not_compared(study: Path) -> None:
    code, text = said_by_reader(
        ("compare", "{study}", "--baseline", "engine=postgresql", "--contender", "engine=sqlite"), study
    )
    assert 2 == code
    assert "no run was due in both cells" in text


def test_a_table_has_the_cells_of_its_run_alone(study: Path) -> None:
    code, text = said_by_reader(("show", "{study}"), study)
    assert 0 == code
    transactions, tests = text.split("operations a second")[:2]
    for name, is_server in (("PostgreSQL", True), ("MariaDB", True), ("SQLite", False), ("LMDB", False)):
        assert (is_server, not is_server) == (name in transactions.partition("cell")[2], name in tests), name
    # A name of a run that is alone needs no dataset beside it.
    assert "table_size" not in text


def test_a_sheet_says_where_a_run_is_not_due(found: Overview) -> None:
    choices = [one for one in choices_of(found) if one.metric.name == "tps"]
    seen = {(one.cell.id, one.validity) for one in results_of(found, choices)}
    assert {*((cell, "valid") for cell in OF_SERVERS), *((cell, "not due") for cell in OF_LIBRARIES)} == seen
