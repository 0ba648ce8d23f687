"""Whatever a bad disk or a bad person makes of a source: a study, or a refusal in sentences, and never anything else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.support.studies.damaged_study import damage
from tests.support.studies.published_sources import (
    kernel_bench,
    pg_fs_benchmark,
    postgresbench,
)

from bedplate.analysis.overview import overview
from bedplate.errors import BedplateError, PlanError
from bedplate.imported.importing import import_source
from bedplate.study.stored import read_study

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SEEDS = range(12)


FORMS: dict[str, Callable[[Path], Path]] = {
    "kernel-bench": lambda folder: kernel_bench(folder, lambda *_: 1000.0),
    "pg-fs-benchmark": pg_fs_benchmark,
    "postgresbench": lambda folder: postgresbench(folder, "abcdef"),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_damaged_source_is_imported_or_refused(tmp_path: Path, form: str) -> None:
    imported = 0
    for seed in SEEDS:
        source = FORMS[form](tmp_path / f"{seed}")
        # Several things at once, so that most of them meet a file that is read.
        told = [damage(source, seed * 100 + number) for number in range(4)]
        study = tmp_path / f"study{seed}"
        refused: tuple[str, ...] = ()
        try:
            found = import_source(source, study, form=form)
        except BedplateError as error:
            refused = error.reasons
        if refused:
            assert all(reason.strip() for reason in refused), told
            assert not study.exists(), told
            continue
        imported += 1
        read = read_study(study)
        assert () == read.set_aside, told
        with_figures = len(found.runs) - len(found.failures)
        assert with_figures == sum(bool(run.figures) for visit in read.visits for run in visit.runs), told
    assert imported


def _read_whole(source: Path, study: Path, form: str) -> tuple[int, list[str]]:
    """How many runs have figures in the study that is made, and the codes of what was left out."""
    found = import_source(source, study, form=form)
    measured = sum(bool(m.value("tps")) for m in overview(study).measurements)
    assert () == read_study(study).set_aside
    return measured, sorted({each.code for each in found.problems})


@pytest.mark.parametrize("digits", [400, 5000])
@pytest.mark.parametrize(
    ("words", "measured"),
    [
        ("actually processed: ", 11),
        ("tps = ", 11),
        ("scaling factor: ", 12),
        ("duration: ", 12),
        ("latency average: ", 12),
        ("number of clients: ", 12),
    ],
)
def test_a_number_of_a_log_that_is_absurd_is_absent(
    tmp_path: Path, words: str, measured: int, digits: int
) -> None:
    source = kernel_bench(tmp_path / "source", lambda *each: 1000.0 + each[2])
    log = source / "i5-2500k" / "4.6.0" / "30" / "2" / "read-write-4.log"
    log.write_text(log.read_text().replace(words, words + "9" * digits))
    assert (measured, []) == _read_whole(source, tmp_path / "study", "kernel-bench")


def test_a_line_of_moments_with_an_absurd_number_is_none(tmp_path: Path) -> None:
    source = kernel_bench(tmp_path / "source", lambda *each: 1000.0 + each[2])
    moments = source / "i5-2500k" / "4.6.0" / "bench.log"
    moments.write_text(moments.read_text().replace("scale=30", "scale=" + "3" * 5000))
    assert (12, []) == _read_whole(source, tmp_path / "study", "kernel-bench")


def test_a_field_of_results_that_is_too_long_is_a_problem(tmp_path: Path) -> None:
    source = pg_fs_benchmark(tmp_path / "source")
    rows = source / "i5" / "20220907-mdraid" / "results.csv"
    rows.write_text("x" * 200_000 + "\n" + rows.read_text())
    assert (8, ["source-unreadable"]) == _read_whole(source, tmp_path / "study", "pg-fs-benchmark")


def test_half_of_a_character_is_shown_as_none(tmp_path: Path) -> None:
    source = postgresbench(tmp_path / "source")
    path = source / "Neon" / "results" / "small.json"
    path.write_text(path.read_text().replace('"Neon"', '"Neon\\ud800"'))
    assert (6, []) == _read_whole(source, tmp_path / "study", "postgresbench")
    services = {
        c.filesystem.features["service"] for c in read_study(tmp_path / "study").schedule.cells.values()
    }
    assert {"Neon\ufffd", "AWS RDS"} == services


def test_the_text_of_a_run_is_no_longer_than_its_source(tmp_path: Path) -> None:
    source = postgresbench(tmp_path / "source", ("Neon",))
    path = source / "Neon" / "results" / "small.json"
    path.write_text(path.read_text().replace('"run": 1', f'"run": {"[" * 900}{"]" * 900}'))
    assert (3, []) == _read_whole(source, tmp_path / "study", "postgresbench")
    kept = [text.stat().st_size for text in (tmp_path / "study").rglob("source.txt")]
    assert max(kept) < path.stat().st_size


def test_a_memory_beyond_any_machine_is_absent(tmp_path: Path) -> None:
    source = postgresbench(tmp_path / "source", ("Neon",))
    path = source / "Neon" / "results" / "small.json"
    document = json.loads(path.read_text())
    document["instance"]["ram_gb"] = 1e15
    path.write_text(json.dumps(document))
    assert (3, []) == _read_whole(source, tmp_path / "study", "postgresbench")
    assert read_study(tmp_path / "study").machine.memory_bytes is None


def test_what_no_bound_forestalls_is_a_problem_of_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = postgresbench(tmp_path / "source")

    def script_name(told: str) -> str:
        raise OverflowError(told)

    monkeypatch.setattr("bedplate.workloads.pgbench.publications.postgresbench.script_name", script_name)
    with pytest.raises(PlanError) as error:
        import_source(source, tmp_path / "study")
    assert 2 == sum("results/small.json" in each and "TPC-B" in each for each in error.value.reasons)
