"""LMDB's tests in the terminal and in the data of a page: a class of durability beside every speed."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from tests.support.studies.synthetic_microbenchmark import CELLS, DATASET, synthetic_microbenchmark
from tests.support.tools.as_printed import as_printed

from bedplate.analysis.overview import Overview, overview
from bedplate.model.cell import ClusterLevels, Dataset
from bedplate.model.durability import ONLY_READS
from bedplate.model.levels import Levels
from bedplate.model.metrics import metric_today
from bedplate.page.document import page_document
from bedplate.page.static import page_shell
from bedplate.terminal.tables import show_document, show_tables
from bedplate.workloads.microbenchmark.model import DOCUMENTS, FORMER_DOCUMENTS, TESTS
from bedplate.workloads.microbenchmark.plan import BENCH_TESTS
from bedplate.workloads.microbenchmark.reading import SPEED, promise


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return synthetic_microbenchmark(tmp_path_factory.mktemp("lmdb") / "study")


@pytest.fixture(scope="module")
def found(study: Path) -> Overview:
    return overview(study)


def printed(study: Path, workload: str | None = None, metric: str | None = None) -> str:
    return as_printed(show_tables([study], workload=workload, metric=metric))


def test_every_write_has_what_it_promises_behind_its_speed(study: Path) -> None:
    text = printed(study, workload="microbenchmark")
    shown = {line.split()[0] for line in text.splitlines() if line.strip()}
    assert set(BENCH_TESTS) <= shown
    rows = dict(re.findall(r"^ ?(\w+) +([\d,.]+ ?[DBU?/]*)", text, re.MULTILINE))
    assert rows["fillrandsync"].endswith(" D")
    assert rows["fillrandom"].endswith(" U/B")
    assert rows["readwhilewriting"].endswith(" U/B")
    assert not rows["readseq"].endswith(("D", "U", "B"))
    assert "power cut" in text
    assert max(map(len, text.splitlines())) <= 80


def test_of_several_datasets_each_is_called_by_its_words(tmp_path: Path) -> None:
    mapped = tuple(
        Dataset("microbenchmark", Levels(entries=1_000_000, value_bytes=100, map_bytes=size))
        for size in (2**30, 2**31)
    )
    study = synthetic_microbenchmark(tmp_path / "study", repetitions=1, cells=CELLS[:1], datasets=mapped)
    words = [f"microbenchmark entries 1000000 map {size} GiB value 100 B" for size in (1, 2)]
    plain = " ".join(printed(study, workload="write").split())
    assert all(f"write ({one}): operations a second" in plain for one in words)
    heads = " ".join(printed(study, workload="write", metric="tests_s").split())
    parts = " ".join(printed(study, workload="write", metric="test_us_per_operation").split())
    assert all(f"write ({one}): test_us_per_operation, us" in parts for one in words)
    for found in (plain, heads, parts):
        assert not any(one.id[:20] in found for one in mapped)
    runs = page_document([overview(study)])["runs"]
    assert [*words] == [run["dataset_words"] for run in runs if run["run"] == "write"]
    # What a page asks for by address, and what joins its records, stays the name on disk.
    assert [one.id for one in mapped] == [run["dataset"] for run in runs if run["run"] == "write"]


def test_datasets_of_the_same_words_keep_their_names_on_disk(tmp_path: Path) -> None:
    alike = tuple(
        Dataset("microbenchmark", Levels(entries=3000, value_bytes=size)) for size in (2**30, 2**30 + 1)
    )
    study = synthetic_microbenchmark(tmp_path / "study", repetitions=1, cells=CELLS[:1], datasets=alike)
    assert alike[0].words == alike[1].words
    found = overview(study)
    assert [one.id for one in alike] == [found.dataset_words(one.id) for one in alike]
    assert "unknown" == found.dataset_words("unknown")


def test_a_head_is_broken_behind_the_name_of_a_factor_and_never_within_a_word(tmp_path: Path) -> None:
    levels = [
        Levels(preallocation=how, sync="nometasync") for how in ("none", "ftruncate", "fallocate", "written")
    ]
    cells = tuple(replace(CELLS[0], cluster=ClusterLevels(settings=settings)) for settings in levels)
    study = synthetic_microbenchmark(tmp_path / "study", repetitions=1, cells=cells)
    text = printed(study, workload="write")
    assert max(map(len, text.splitlines())) <= 80
    # The cells stand in two tables.
    words = set(text.split())
    assert {"preallocation=", "none", "ftruncate", "fallocate", "written"} <= words
    # No test is broken for the sake of the heads.
    assert 2 == text.count("fillseqbatch ")


def test_what_rests_on_suspect_runs_alone_is_marked(tmp_path: Path) -> None:
    study = synthetic_microbenchmark(tmp_path / "study")
    for path in (study / "visits" / CELLS[1].id).rglob("run.json"):
        run = json.loads(path.read_text())
        if run["run"] == "write" or (run["run"], path.parts[-4]) == ("read-warm", "2.1"):
            path.write_text(json.dumps({**run, "validity": "suspect", "validity_reasons": ["seen"]}))
    written = re.search(r"^ fillrandom .*$", printed(study, workload="write"), re.MULTILINE)
    assert written is not None
    assert ["U/B", "U/B !", "U/B", "U/B"] == re.findall(r"U/B(?: !)?", written[0])
    # One of three: the median is that of the others.
    assert " !" not in printed(study, workload="read-warm").split("suspect (")[0]


def test_the_class_of_a_test_is_that_of_its_commits(found: Overview) -> None:
    cell = found.cells[CELLS[0].id]
    assert ("durable", "unsafe / bounded loss", ONLY_READS) == (
        promise(cell, "fillseqsync"),
        promise(cell, "fillseq"),
        promise(cell, "readseq"),
    )


def test_the_best_of_a_row_is_the_fastest(study: Path) -> None:
    console = Console(file=StringIO(), width=160, force_terminal=True, color_system="standard")
    for table in show_tables([study], workload="write"):
        console.print(table)
    output = console.file.getvalue()  # type: ignore[attr-defined]
    (line,) = [line for line in output.splitlines() if "fillseqbatch" in line]
    bold = re.findall(r"\x1b\[1m([\d,]+)", line)
    speeds = [
        float(word.replace(",", ""))
        for word in re.findall(r"\d[\d,]{4,}", re.sub(r"\x1b\[[\d;]*m", "", line))
    ]
    assert 4 == len(speeds)
    assert [max(speeds)] == [float(word.replace(",", "")) for word in bold]


def test_any_metric_of_a_test_can_be_shown(study: Path) -> None:
    text = printed(study, workload="write", metric="test_latency_us_max")
    assert "tests: fillseq " in text
    assert "largest latency" in text


def test_the_json_has_every_test_and_no_transactions(study: Path) -> None:
    document = show_document([study], workload="write")
    run = document["studies"][0]["cells"][0]["runs"][0]
    assert "tps" not in run
    speeds = {part["item"]: part["centre"] for part in run["parts"] if part["metric"] == SPEED}
    assert "fillseq" in speeds
    assert all(speed > 0 for speed in speeds.values())
    assert document["studies"][0]["cells"][0]["block_size_bytes"] is None
    assert "without_waiting" in document["studies"][0]["cells"][0]["durability"]


def test_the_page_has_the_tests_and_their_promises(found: Overview) -> None:
    document = page_document([found])
    section = document["microbenchmark"]
    assert TESTS == section["phase"]
    assert set(BENCH_TESTS) == set(section["promises"])
    assert {len(CELLS)} == {len(promises) for promises in section["promises"].values()}
    runs = {document["runs"][run]["run"]: tests for run, tests in section["runs"]}
    assert ["readrandom", "readseq", "readreverse"] == runs["read-cold"]
    labels = {label for label, group in document["parts"] if group.startswith(TESTS)}
    assert set(BENCH_TESTS) == labels
    assert {("", None)} == {(cell["column"], cell["column_bytes"]) for cell in document["cells"]}
    assert {"durable; without sync unsafe / bounded loss"} == {
        cell["durability"] for cell in document["cells"]
    }


def test_settings_of_an_engine_are_cells_and_no_file_systems_of_the_page(found: Overview) -> None:
    (study,) = page_shell([found])["studies"]
    assert study.sentence.startswith("4 cells in 2 file system variants, runs write")


def test_repetitions_are_counted_by_the_runs(found: Overview) -> None:
    assert 3 == found.repetitions


def test_doubts_that_differ_in_a_share_are_one_line_with_its_range(tmp_path: Path) -> None:
    study = synthetic_microbenchmark(tmp_path / "study", repetitions=3)
    paths = [
        path
        for path in sorted((study / "visits").rglob("run.json"))
        if json.loads(path.read_text())["run"] == "write"
    ]
    assert 12 == len(paths)
    for place, path in enumerate(paths):
        reason = f"other programs used {11 + place} % of the processors' time or more (limit 10 %)"
        run = json.loads(path.read_text())
        path.write_text(json.dumps({**run, "validity": "suspect", "validity_reasons": [reason]}))
    text = " ".join(printed(study, workload="write").split())
    assert 1 == text.count("other programs used")
    assert (
        "suspect (write): other programs used 11–22 % of the processors' time or more (limit 10 %) (" in text
    )
    assert "more; --json" not in text
    (document,) = show_document([study], workload="write")["studies"]
    assert "suspect (write): other programs used 12 % of" in json.dumps(document)


def test_a_study_with_the_former_names_is_shown_as_one_of_today(study: Path, tmp_path: Path) -> None:
    former = synthetic_microbenchmark(tmp_path / "former", datasets=(replace(DATASET, workload="lmdb"),))
    for run in former.glob("visits/*/*/*/runs/*"):
        (run / DOCUMENTS).rename(run / FORMER_DOCUMENTS)
        figures = (run / "run.json").read_text()
        assert '"test_operations_per_s"' in figures
        (run / "run.json").write_text(
            figures.replace('"test_', '"lmdb_').replace('"tests_s"', '"lmdb_tests_s"')
        )
    for name in ("lmdb", "microbenchmark", "write"):
        assert printed(study, workload=name) == printed(former, workload=name)
    document, of_former = (page_document([overview(place)]) for place in (study, former))
    assert document["microbenchmark"] == of_former["microbenchmark"]
    assert document["metrics"] == of_former["metrics"]
    assert "test_latency_us_p99" == metric_today("lmdb_latency_us_p99")
    assert "tps" == metric_today("tps")
