"""Tables and pages of bonnie++ and fio: CPU beside throughput, absent rates, visits of two workloads in one cell."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.support.runs.raw_sequential_run import sequential_study
from tests.support.tools.as_printed import as_printed

from bedplate.analysis.overview import overview
from bedplate.analysis.run_heads import has_raw, has_transactions, run_head, run_kind
from bedplate.page.document import page_document
from bedplate.page.static import chapters_of
from bedplate.terminal.tables import show_document, show_tables


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sequential_study(tmp_path_factory.mktemp("raw") / "study")


def test_throughput_stands_with_its_cpu_per_gib(study: Path) -> None:
    text = as_printed(show_tables([study], workload="bonnie"))
    (row,) = re.findall(r"^ *ext4.*$", text.split("its file")[1], re.MULTILINE)[:1]
    # tests/golden/bonnie/limited.csv, KiB/s: 1,408, of which few runs bear few digits.
    assert "1,410" in row
    below = text.split("its file")[1].split("xfs")[0]
    # 2 s at 0.5 CPU, for 1 GiB; the xfs of the study takes less.
    assert 3 == below.split().count("1")
    assert "0.400" in text.split("its file")[1].split("xfs")[1]
    assert "█" in below


def test_every_table_fits_eighty_columns(study: Path) -> None:
    text = as_printed(show_tables([study]))
    assert [] == [line for line in text.splitlines() if len(line) > 80]
    assert "…" not in text


def test_what_is_not_measurable_is_a_dash_and_no_column_is_only_dashes(study: Path) -> None:
    text = as_printed(show_tables([study], workload="bonnie"))
    # All small files of the golden run were over in less than half a second: no columns, and a line that says so.
    assert "create\n" not in text
    (told,) = re.findall(r"In no cell measurable: [^.]*\.", re.sub(r"\s+", " ", text))
    assert told == (
        "In no cell measurable: create in order, stat in order, delete in order, create random, stat random, "
        "delete random."
    )
    assert re.search(r"(?<![\d,])0 ", re.findall(r"seeks.*", text)[0]) is None


def test_without_small_files_there_is_no_table_of_them(tmp_path: Path) -> None:
    study = sequential_study(tmp_path / "study", repetitions=1)
    path = study / "schedule.json"
    schedule = json.loads(path.read_text())
    for runs in schedule["runs"].values():
        for run in runs:
            if run["workload"] == "bonnie":
                run["levels"]["files"] = 0
    path.write_text(json.dumps(schedule))
    text = as_printed(show_tables([study], workload="bonnie"))
    assert "bonnie: its file" in text
    assert "files, 1/s" not in text


def test_jobs_and_methods_have_tables_of_their_own(study: Path) -> None:
    text = as_printed(show_tables([study], workload="fio"))
    assert ["random-read-8k: fio", "wal-append: fio"] == re.findall(r"^.*: fio$", text, re.MULTILINE)
    assert "p99 of" not in text.split("wal-append: fio")[0]
    assert "p99 of" in text.split("wal-append: fio")[1]
    assert "one write: fdatasync" in re.sub(r"\s+", " ", text)


def test_a_document_has_the_parts(study: Path) -> None:
    document = json.loads(json.dumps(show_document([study], workload="bonnie")))
    (run,) = document["studies"][0]["cells"][0]["runs"]
    created = [
        part for part in run["parts"] if (part["phase"], part["metric"]) == ("seq_create", "operations_per_s")
    ]
    assert [(0, 2, None)] == [(part["n"], part["absent"], part["centre"]) for part in created]
    assert run["metrics"]["stages_total_s"]["n"] == 2
    assert "tps" not in run


def test_visits_of_two_workloads_in_a_cell_need_not_be_alike(study: Path) -> None:
    found = overview(study)
    assert [()] * 2 == [cell.incomparable for cell in found.cells.values()]
    assert 2 == found.repetitions


def test_no_job_lacks_what_only_another_has(study: Path) -> None:
    found = overview(study)
    (run,) = [run for run in found.runs if run[1] == "pg_test_fsync"]
    assert not [
        key
        for key in found.summaries_of(next(iter(found.cells)), run)
        if key.metric == "throughput_mib_per_s"
    ]


def test_heads_are_those_of_the_tool(study: Path) -> None:
    found = overview(study)
    heads = {run[1]: (run_kind(found, run), run_head(found, run).first) for run in found.runs}
    assert {
        "bonnie": ("bonnie", "stages_total_s"),
        "random-read-8k": ("fio", "throughput_mib_per_s"),
        "wal-append": ("fio", "throughput_mib_per_s"),
        "pg_test_fsync": ("pg_test_fsync", "operations_per_s"),
    } == heads
    assert (True, False) == (has_raw([found]), has_transactions([found]))


def test_the_page_has_the_section_and_the_data_behind_it(study: Path) -> None:
    found = overview(study)
    assert "raw" in {part.id for chapter in chapters_of([found]) for part in chapter.parts}
    document = page_document([found])
    assert {"bonnie", "fio", "pg_test_fsync"} == {run["kind"] for run in document["runs"]}
    assert ["put_block", "phases"] in document["parts"]
