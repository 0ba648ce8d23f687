"""Each form of publication: what its runs become, and that a damaged file is a sentence and no more."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING

import pytest
from tests.support.studies.published_sources import (
    KERNELS,
    kernel_bench,
    pg_fs_benchmark,
    postgresbench,
)

from bedplate.errors import PlanError
from bedplate.imported.importing import adapter_for
from bedplate.imported.published import PublishedSource
from bedplate.workloads.pgbench.publications.report import script_name

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bedplate.imported.published import Publication, PublishedRun


def read(path: Path, form: str | None = None) -> Publication:
    source = PublishedSource(path)
    return adapter_for(source, form).read(source)


def rate(run: PublishedRun) -> float | None:
    return next((each.value for each in run.figures if each.metric == "tps"), None)


def value(run: PublishedRun, metric: str) -> float | None:
    return next((each.value for each in run.figures if each.metric == metric), None)


def tps(kernel: str, script: str, repetition: int) -> float:
    return 1000.25 + 100 * KERNELS.index(kernel) + repetition + (5000 if script == "read-only" else 0)


def codes(found: Publication) -> list[str]:
    return [each.code for each in found.problems]


def test_kernel_bench_has_every_log_but_the_warm_ups_with_the_second_tps_that_pgbench_printed(
    tmp_path: Path,
) -> None:
    found = read(kernel_bench(tmp_path, tps))
    assert () == found.problems
    assert 12 == len(found.runs)
    for run in found.runs:
        _, kernel, _, repetition, name = run.file.split("/")
        assert tps(kernel, name.removesuffix("-4.log"), int(repetition)) == rate(run)
        assert kernel == run.cell.kernel.release
        assert ("ext4", False) == (run.cell.filesystem.type, run.cell.filesystem.barrier)
        assert (30, int(repetition), 900.0) == (run.scale, run.repetition, run.duration_s)
        assert {"read-only clients=4", "read-write clients=4"} >= {run.spec.name}
    assert 12 == len({run.started_wall_s for run in found.runs})


@pytest.mark.parametrize("inner", ["i5-2500k", "i5-2500k/4.6.0"])
def test_a_folder_within_a_source_says_the_same_of_its_runs(tmp_path: Path, inner: str) -> None:
    kernel_bench(tmp_path, tps)
    whole = {(run.cell, run.spec, run.repetition): rate(run) for run in read(tmp_path).runs}
    part = {(run.cell, run.spec, run.repetition): rate(run) for run in read(tmp_path / inner).runs}
    assert part
    assert part.items() <= whole.items()
    assert {"i5-2500k"} == {run.machine.name for run in read(tmp_path / inner).runs}


def test_a_kernel_with_statistics_is_the_same_kernel_and_another_cell(tmp_path: Path) -> None:
    kernel_bench(tmp_path, lambda *_: 1000.0, kernels=("4.6.0", "4.6.0-stats"))
    cells = {run.cell for run in read(tmp_path).runs}
    assert {"4.6.0"} == {cell.kernel.release for cell in cells}
    assert [None, True] == sorted((c.filesystem.features.get("statistics") for c in cells), key=str)


def test_machines_whose_mounts_disagree_have_no_known_file_system(tmp_path: Path) -> None:
    kernel_bench(tmp_path, tps)
    mounts = tmp_path / "i5-2500k" / "4.6.0" / "mount.log"
    mounts.write_text(mounts.read_text().replace("ext4", "xfs"))
    assert {"unknown"} == {run.cell.filesystem.type for run in read(tmp_path).runs}


def test_a_log_of_a_run_that_did_not_end_is_a_failed_run_that_names_its_file(tmp_path: Path) -> None:
    kernel_bench(tmp_path, tps)
    log = tmp_path / "i5-2500k" / "4.6.0" / "30" / "2" / "read-write-4.log"
    log.write_text("starting vacuum...end.\nserver closed the connection unexpectedly\n")
    failed = [run for run in read(tmp_path).runs if run.failure is not None]
    assert ["i5-2500k/4.6.0/30/2/read-write-4.log"] == [run.file for run in failed]
    assert [()] == [run.figures for run in failed]
    assert "read-write-4.log: pgbench: expected" in str(failed[0].failure)


def test_a_log_that_is_not_what_its_path_says_is_suspect(tmp_path: Path) -> None:
    kernel_bench(tmp_path, tps)
    log = tmp_path / "i5-2500k" / "4.6.0" / "30" / "2" / "read-write-4.log"
    log.write_text(log.read_text().replace("scaling factor: 30", "scaling factor: 300"))
    assert ["source-disagrees-with-itself"] == [
        doubt.code for run in read(tmp_path).runs for doubt in run.doubts
    ]


def test_a_tps_that_its_own_transactions_contradict_is_suspect(tmp_path: Path) -> None:
    kernel_bench(tmp_path, tps)
    log = tmp_path / "i5-2500k" / "4.6.0" / "30" / "2" / "read-write-4.log"
    log.write_text(log.read_text().replace("actually processed: ", "actually processed: 1"))
    assert ["tps-is-not-transactions-over-time"] == [
        doubt.code for run in read(tmp_path).runs for doubt in run.doubts
    ]


def test_pg_fs_benchmark_joins_a_log_with_its_row_and_its_sizes(tmp_path: Path) -> None:
    found = read(pg_fs_benchmark(tmp_path))
    assert () == found.problems
    assert 8 == len(found.runs)
    by_file = {run.file: run for run in found.runs}
    xfs = by_file["i5/20220907-mdraid/0/xfs/1000/run-rw-1/pgbench.log"]
    assert 1350.270409 == rate(xfs)
    assert {"layout": "0"} == dict(xfs.cell.filesystem.features)
    assert ("xfs", "simple-update clients=16") == (xfs.cell.filesystem.type, xfs.spec.name)
    assert 1662249388 == xfs.started_wall_s
    assert 21254041392 / 1024 / round(1350.270409 * 3600) == pytest.approx(
        value(xfs, "wal_kib_per_transaction")
    )
    assert 16153596731 / 2**20 == pytest.approx(value(xfs, "database_mib"))
    zfs = by_file["i5/20220903-zfs/mirror/no-fpw/1000/run-ro-1/pgbench.log"]
    assert ("zfs", "read-only clients=16") == (zfs.cell.filesystem.type, zfs.spec.name)
    assert {"layout": "mirror", "configuration": "no-fpw"} == dict(zfs.cell.filesystem.features)
    assert {"pgbench": "16devel"} == zfs.versions


def test_a_run_under_a_rate_is_another_run_as_pgbench_does_not_print_the_rate(tmp_path: Path) -> None:
    runs = read(pg_fs_benchmark(tmp_path)).runs
    limited = [run for run in runs if run.spec.levels.get("rate_limited")]
    assert ["simple-update clients=16 rate-limited"] == [run.spec.name for run in limited]
    assert 7.0 == limited[0].spec.levels["latency_limit_ms"]
    assert (753, 0.62) == (
        value(limited[0], "transactions_skipped"),
        value(limited[0], "schedule_lag_ms_mean"),
    )


def test_a_row_with_another_tps_than_its_log_makes_the_run_suspect_and_the_log_holds(tmp_path: Path) -> None:
    pg_fs_benchmark(tmp_path)
    rows = tmp_path / "i5" / "20220907-mdraid" / "results.csv"
    rows.write_text(rows.read_text().replace(";1350.270409", ";1351.270409"))
    (run,) = [run for run in read(tmp_path).runs if run.doubts]
    assert (1350.270409, ["source-disagrees-with-itself"]) == (rate(run), [each.code for each in run.doubts])


def test_a_strange_row_is_named_by_its_line_and_the_logs_are_read(tmp_path: Path) -> None:
    pg_fs_benchmark(tmp_path)
    rows = tmp_path / "i5" / "20220903-zfs" / "results.csv"
    rows.write_text("nan;x;y\n\n" + rows.read_text())
    found = read(tmp_path)
    assert ["source-line-strange"] == codes(found)
    assert "i5/20220903-zfs/results.csv, line 1" in str(found.problems[0])
    assert 8 == len(found.runs)


def test_postgresbench_has_a_cell_for_each_service_and_size(tmp_path: Path) -> None:
    found = read(postgresbench(tmp_path))
    assert () == found.problems
    assert [2000.125, 2000.25, 2000.375] == [rate(run) for run in found.runs if "Neon" in run.machine.name]
    first = next(run for run in found.runs if "Neon" in run.machine.name)
    assert {"service": "Neon", "size": "4vCPU, 16GB RAM"} == dict(first.cell.filesystem.features)
    assert (4, 16 * 2**30, "18") == (
        first.machine.cpu_count,
        first.machine.memory_bytes,
        first.cell.build.version,
    )
    assert (118.281, 236.412) == (value(first, "latency_ms_mean"), value(first, "latency_ms_p99"))


@pytest.mark.parametrize(
    ("name", "told", "doubts"),
    [
        ("failed_transactions", 50_000, ["transactions-failed"]),
        ("transactions", 600_000, ["tps-is-not-transactions-over-time"]),
        ("transactions", None, []),
    ],
)
def test_postgresbench_is_doubted_by_the_rules_of_a_log(
    tmp_path: Path, name: str, told: object, doubts: list[str]
) -> None:
    path = postgresbench(tmp_path, ("Neon",)) / "Neon" / "results" / "small.json"
    document = json.loads(path.read_text())
    document["results"][1][name] = told
    path.write_text(json.dumps(document))
    assert [[], doubts, []] == [[each.code for each in run.doubts] for run in read(tmp_path).runs]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[" * 100_000, "source-unreadable"),
        ('{"a": 1', "source-unreadable"),
        ("[]", "source-strange"),
        ('{"system": 5, "benchmark": {}, "results": []}', "source-strange"),
    ],
)
def test_a_document_of_another_kind_is_a_sentence(tmp_path: Path, text: str, code: str) -> None:
    postgresbench(tmp_path)
    (tmp_path / "Neon" / "results" / "more.json").write_text(text)
    found = read(tmp_path)
    assert [code] == codes(found)
    assert "Neon/results/more.json" in str(found.problems[0])
    assert 6 == len(found.runs)


@pytest.mark.parametrize("told", ["fast", -1, True, None, 1e300, "nan", "9" * 60, [1], "1_000"])
def test_a_rate_that_is_no_number_is_a_failed_run(tmp_path: Path, told: object) -> None:
    postgresbench(tmp_path)
    path = tmp_path / "Neon" / "results" / "small.json"
    document = json.loads(path.read_text())
    document["results"][1]["tps"] = told
    path.write_text(json.dumps(document))
    failed = [run for run in read(tmp_path).runs if run.failure is not None]
    assert [("Neon/results/small.json", ())] == [(run.file, run.figures) for run in failed]


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ("<builtin: select only>", "read-only"),
        ("SELECT only", "read-only"),
        ("select", "select"),
        ("<builtin: TPC-B (sort of)>", "read-write"),
        ("TPC-B (built-in)", "read-write"),
        ("<builtin: simple update>", "simple-update"),
        ("Update only pgbench_accounts", "simple-update"),
        ("select-pages", "select-pages"),
        ("insert-select", "insert-select"),
        ("/home/me/my-tpc-b.sql", "/home/me/my-tpc-b.sql"),
        ("", "unknown"),
    ],
)
def test_a_script_is_known_by_its_whole_name_and_else_keeps_its_own(told: str, name: str) -> None:
    assert name == script_name(told)


def test_a_source_of_no_known_form_is_refused_with_all_of_them(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("fast")
    with pytest.raises(PlanError) as error:
        read(tmp_path)
    for form in ("pg-fs-benchmark", "kernel-bench", "PostgresBench"):
        assert form in str(error.value)
    with pytest.raises(PlanError, match="kernel-bench"):
        read(tmp_path, "kernel-bnch")


def test_a_source_of_two_forms_is_asked_about(tmp_path: Path) -> None:
    kernel_bench(tmp_path, tps)
    postgresbench(tmp_path)
    with pytest.raises(PlanError, match="--format"):
        read(tmp_path)
    assert 12 == len(read(tmp_path, "kernel-bench").runs)


def test_names_that_are_no_text_and_would_be_obeyed_are_shown_as_text(tmp_path: Path) -> None:
    kernel_bench(tmp_path, tps, machine="m\x1b[2Jé")
    os.rename(  # noqa: PTH104 -- a name of bytes
        os.fsencode(tmp_path / "m\x1b[2Jé"), os.fsencode(tmp_path) + b"/m\xff\x1b[2J"
    )
    runs = read(tmp_path).runs
    assert 12 == len(runs)
    assert {"m\ufffd\ufffd[2J"} == {run.machine.name for run in runs}
    assert all(run.file.isprintable() for run in runs)


@pytest.mark.parametrize(
    ("make", "path"),
    [
        (lambda folder: kernel_bench(folder, tps), "i5-2500k/4.6.0/30/2/update-4.log"),
        (pg_fs_benchmark, "i5/20220907-mdraid/0/xfs/1000/run-rw-scrub-1/pgbench.log"),
    ],
)
def test_a_log_of_a_run_that_the_form_does_not_know_is_named(
    tmp_path: Path, make: Callable[[Path], object], path: str
) -> None:
    make(tmp_path)
    count = len(read(tmp_path).runs)
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_text("pgbench (16.1)\n")
    found = read(tmp_path)
    assert (count, ["source-result-left-out"]) == (len(found.runs), codes(found))
    assert path in str(found.problems[0])


def test_what_makes_a_server_of_postgresbench_another_one_is_a_level_of_its_cell(tmp_path: Path) -> None:
    path = postgresbench(tmp_path, ("Neon",)) / "Neon" / "results" / "small.json"
    plain = json.loads(path.read_text())
    changes: list[dict[str, object]] = [
        {"ha": {"label": "HA: 1 standby, sync", "mode": "sync", "standbys": 1}},
        {"instance": plain["instance"] | {"primary_storage": "IO optimized"}},
        {"region": "us-east-2"},
        {"tuned": "yes"},
        {"cluster_size": 3},
        {"comment": "fsync off"},
    ]
    for place, change in enumerate(changes):
        (path.parent / f"other-{place}.json").write_text(json.dumps(plain | change))
    assert 1 + len(changes) == len({run.cell for run in read(tmp_path).runs})


def test_a_document_of_postgresbench_of_another_program_is_left_out_by_name(tmp_path: Path) -> None:
    path = postgresbench(tmp_path, ("Neon",)) / "Neon" / "results" / "small.json"
    document = json.loads(path.read_text())
    document["benchmark"]["tool"] = "sysbench"
    (path.parent / "other.json").write_text(json.dumps(document))
    found = read(tmp_path)
    assert (3, ["source-result-left-out"]) == (len(found.runs), codes(found))
    assert "sysbench" in str(found.problems[0])


ENCODINGS = ("utf-8-sig", "crlf", "utf-16", "utf-16-le", "utf-32", "cp1252")


def _saved_as(encoding: str, path: Path) -> None:
    """As an editor or a spreadsheet saves it; a letter that is none of ASCII stands in each."""
    text = path.read_text().replace("Neon", "N\u00e9on")
    if encoding == "crlf":
        path.write_bytes(text.replace("\n", "\r\n").encode())
    else:
        path.write_bytes(text.encode(encoding))


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("form", ["postgresbench", "kernel-bench", "pg-fs-benchmark"])
def test_a_byte_order_mark_is_taken_and_any_other_encoding_named(
    tmp_path: Path, form: str, encoding: str
) -> None:
    match form:
        case "postgresbench":
            postgresbench(tmp_path, ("Neon",))
        case "kernel-bench":
            kernel_bench(tmp_path, tps, kernels=KERNELS[:1])
        case _:
            pg_fs_benchmark(tmp_path)
    count = len(read(tmp_path).runs)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    for path in files:
        _saved_as(encoding, path)
    if encoding in ENCODINGS[:2]:
        found = read(tmp_path)
        assert (count, ()) == (len([run for run in found.runs if run.failure is None]), found.problems)
        return
    is_ascii = form in ("kernel-bench", "pg-fs-benchmark")
    if encoding == "cp1252" and is_ascii:
        return
    name = encoding.upper()[:6]
    words = f"{name}.*save it as UTF-8" if encoding.startswith("utf") else "no UTF-8: byte .*save it as UTF-8"
    if is_ascii:
        # Its files are known by their names.
        found = read(tmp_path)
        assert all(re.search(words, str(run.failure)) for run in found.runs)
    else:
        with pytest.raises(PlanError, match=words):
            read(tmp_path)
