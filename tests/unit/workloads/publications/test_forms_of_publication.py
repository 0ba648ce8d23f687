"""Each form of publication: what its runs become, and that a damaged file is a sentence and no more."""

from __future__ import annotations

import csv
import json
import os
import re
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from tests.support.studies.published_sources import (
    KERNELS,
    TESTS_COLUMNS,
    composite,
    kernel_bench,
    pg_fs_benchmark,
    postgresbench,
    rows_of_tests,
)

from bedplate.errors import PlanError
from bedplate.imported.importing import adapter_for
from bedplate.imported.published import PublishedSource
from bedplate.workloads.pgbench.publications.report import script_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
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


def test_phoronix_has_every_single_run_of_a_value_and_names_the_tests_that_it_leaves_out(
    tmp_path: Path,
) -> None:
    (tmp_path / "composite.xml").write_text(composite())
    found = read(tmp_path / "composite.xml")
    ext4 = [run for run in found.runs if run.cell.filesystem.type == "ext4"]
    assert [(12000.5, 4.0), (12100.25, 4.1), (12050.0, 4.2)] == [
        (rate(run), value(run, "latency_ms_mean")) for run in ext4
    ]
    assert 6 == len(found.runs)
    assert [1, 2, 3] == [run.repetition for run in ext4]
    assert ("6.1.0-13-amd64", 100) == (ext4[0].cell.kernel.release, ext4[0].scale)
    assert "read-write clients=50" == ext4[0].spec.name
    assert "Core i5 @ 3.30GHz (4 Cores)" == ext4[0].machine.cpu_model
    assert 1 == len({run.machine.name for run in found.runs})
    assert ["source-result-left-out"] == codes(found)
    assert "pts/fio-1.15.0 (1)" in str(found.problems[0])


def test_descriptions_of_phoronix_that_differ_are_runs_of_their_own(tmp_path: Path) -> None:
    first, *others = [
        f"Scaling: {scaling} - Test: {test} - Mode: Read Write"
        for scaling in ("Buffer Test", "Mostly RAM", "On-Disk")
        for test in ("Single Thread", "Normal Load", "Heavy Contention")
    ]
    text = composite(types=("ext4",)).replace("Scaling Factor: 100 - Clients: 50 - Mode: Read Write", first)
    result = text[text.index("<Result>") : text.index("</Result>") + 9]
    more = "".join(result.replace(first, each) for each in others)
    (tmp_path / "composite.xml").write_text(text.replace(result, result + more))
    runs = read(tmp_path).runs
    assert 27 == len(runs)
    assert 9 == len({run.spec.name for run in runs})
    assert 9 == len({run.spec.id for run in runs})
    assert {1, 2, 3} == {run.repetition for run in runs}
    assert "read-write Scaling: Buffer Test - Test: Single Thread" == runs[0].spec.name


def test_profiles_of_phoronix_are_cells_and_a_second_result_of_one_is_named(tmp_path: Path) -> None:
    text = composite(types=("ext4",))
    result = text[text.index("<Result>") : text.index("</Result>") + 9]
    older = result.replace("1.14.0", "1.11.0").replace("12000.5", "8000.5")
    (tmp_path / "composite.xml").write_text(text.replace(result, result + older))
    found = read(tmp_path)
    assert [("pts/pgbench-1.14.0", 12000.5), ("pts/pgbench-1.11.0", 8000.5)] == [
        (run.cell.filesystem.features["test"], rate(run)) for run in found.runs if run.repetition == 1
    ]
    (tmp_path / "composite.xml").write_text(text.replace(result, result + result))
    found = read(tmp_path)
    assert 3 == len(found.runs)
    assert ["source-result-left-out"] * 2 == codes(found)


def test_without_the_single_runs_the_value_is_one_run(tmp_path: Path) -> None:
    (tmp_path / "composite.xml").write_text(composite(rates="12:?:14", types=("xfs",)))
    assert [12050.25] == [rate(run) for run in read(tmp_path).runs if run.cell.filesystem.type == "xfs"]


def test_an_entry_of_phoronix_without_a_value_is_a_failed_run(tmp_path: Path) -> None:
    text = composite(rates="", types=("xfs",)).replace("<Value>12050.25</Value>", "<Value/>")
    (tmp_path / "composite.xml").write_text(text)
    failed = [run for run in read(tmp_path).runs if run.cell.filesystem.type == "xfs"]
    assert [("source-strange", ())] == [(run.failure.code, run.figures) for run in failed if run.failure]


def _tests_csv(folder: Path, rows: Sequence[Sequence[str | None]]) -> None:
    with (folder / "tests.csv").open("w", newline="") as file:
        csv.writer(file).writerows([TESTS_COLUMNS, *rows])
    (folder / "testset.csv").write_text(
        'server,set,info\nrising,1,default\nrising,2,"huge pages, yes"\n', encoding="utf-8"
    )


def _tests_dump(folder: Path, rows: Sequence[Sequence[str | None]]) -> None:
    def line(row: Sequence[str | None]) -> str:
        return "\t".join("\\N" if each is None else each for each in row)

    (folder / "results.sql").write_text(
        "SET statement_timeout = 0;\nCOPY public.buckets (a) FROM stdin;\n1\n\\.\n"
        f"COPY public.tests ({', '.join(TESTS_COLUMNS)}) FROM stdin;\n"
        + "\n".join(map(line, rows))
        + "\n\\.\nCOPY public.testset (server, set, info) FROM stdin;\nrising\t1\tdefault\nrising\t2\thuge pages, yes\n\\.\n"
    )


def _tests_sqlite(folder: Path, rows: Sequence[Sequence[str | None]]) -> None:
    with closing(sqlite3.connect(folder / "results.db")) as connection, connection:
        connection.execute("PRAGMA journal_mode = WAL")
        columns = ", ".join(f'"{name}"' for name in TESTS_COLUMNS)
        connection.execute(f"CREATE TABLE tests ({columns})")
        connection.executemany(f"INSERT INTO tests VALUES ({', '.join('?' * len(TESTS_COLUMNS))})", rows)  # noqa: S608
        connection.execute('CREATE TABLE testset (server, "set", info)')
        connection.executemany(
            "INSERT INTO testset VALUES (?, ?, ?)",
            [("rising", "1", "default"), ("rising", "2", "huge pages, yes")],
        )
        # A view of that name would be run without end.
        connection.execute(
            "CREATE VIEW server AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT i FROM n"
        )


@pytest.mark.parametrize("write", [_tests_csv, _tests_dump, _tests_sqlite])
def test_the_database_of_pgbench_tools_says_the_same_in_every_form(tmp_path: Path, write: object) -> None:
    assert callable(write)
    write(tmp_path, rows_of_tests())
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    found = read(tmp_path)
    assert () == found.problems
    done, failed = ([run for run in found.runs if (run.failure is None) is ended] for ended in (True, False))
    assert [5000.125, 5001.125, 5002.125, 6003.125, 6004.125, 6005.125] == [rate(run) for run in done]
    assert ["default"] * 3 + ["huge pages, yes"] * 3 == [run.cell.filesystem.features["set"] for run in done]
    assert {("16", 600.0, "read-only clients=16")} == {
        (run.cell.build.version, run.duration_s, run.spec.name) for run in done
    }
    assert ["run-did-not-end"] == [run.failure.code for run in failed if run.failure]
    # Nothing was opened for writing, and no log was played back.
    assert before == {path: path.read_bytes() for path in tmp_path.iterdir()}


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ("<builtin: select only>", "read-only"),
        ("SELECT only", "read-only"),
        ("select", "read-only"),
        ("<builtin: TPC-B (sort of)>", "read-write"),
        ("TPC-B (built-in)", "read-write"),
        ("tpc-b", "read-write"),
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


def test_scripts_of_pgbench_tools_whose_names_begin_alike_are_two(tmp_path: Path) -> None:
    rows = rows_of_tests()
    script = TESTS_COLUMNS.index("script")
    for place, name in ((0, "select-pages"), (1, "select.sql")):
        rows[place] = (*rows[place][:script], name, *rows[place][script + 1 :])
    _tests_csv(tmp_path, rows)
    assert ["select-pages clients=16", "read-only clients=16", "read-only clients=16"] == [
        run.spec.name for run in read(tmp_path).runs[:3]
    ]


def test_tests_of_pgbench_tools_that_were_asked_for_otherwise_are_no_repetitions(tmp_path: Path) -> None:
    (tmp_path / "tests.csv").write_text(
        "server,test,set,tps,script,clients,multi,conn_method\n"
        "rising,1,1,100.5,select-pages,8,0,host\n"
        "rising,2,1,50.5,select-pages,8,2,host\n"
        "rising,3,1,60.5,select-pages,8,2,sockets prepared\n"
    )
    assert [
        "select-pages clients=8",
        "select-pages clients=8 multiplier=2.0",
        "select-pages clients=8 multiplier=2.0 connection=sockets prepared",
    ] == [run.spec.name for run in read(tmp_path).runs]


def test_a_damaged_database_is_a_sentence(tmp_path: Path) -> None:
    _tests_sqlite(tmp_path, rows_of_tests())
    path = tmp_path / "results.db"
    data = bytearray(path.read_bytes())
    data[100:] = bytes(255 - (each & 0x7F) for each in data[100:])
    path.write_bytes(data)
    found = read(tmp_path, "pgbench-tools")
    assert ((), ["source-unreadable"]) == (found.runs, codes(found))
    assert "results.db" in str(found.problems[0])


def test_rows_that_are_only_in_a_log_beside_the_database_are_asked_for(tmp_path: Path) -> None:
    _tests_sqlite(tmp_path, rows_of_tests())
    (tmp_path / "results.db-wal").write_bytes(b"frames")
    found = read(tmp_path, "pgbench-tools")
    assert [True] == ["VACUUM INTO" in str(each) for each in found.problems]


def test_a_row_without_what_a_run_needs_is_named(tmp_path: Path) -> None:
    rows = rows_of_tests()
    rows[2] = (None, *rows[2][1:])
    _tests_dump(tmp_path, rows)
    found = read(tmp_path)
    assert ["source-line-strange"] == codes(found)
    assert "test 3 has no server" in str(found.problems[0])
    assert 6 == len(found.runs)


def test_a_source_of_no_known_form_is_refused_with_all_of_them(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("fast")
    with pytest.raises(PlanError) as error:
        read(tmp_path)
    for form in ("pg-fs-benchmark", "kernel-bench", "pgbench-tools", "composite.xml", "PostgresBench"):
        assert form in str(error.value)
    with pytest.raises(PlanError, match="kernel-bench"):
        read(tmp_path, "kernel-bnch")


def test_a_source_of_two_forms_is_asked_about(tmp_path: Path) -> None:
    kernel_bench(tmp_path, tps)
    (tmp_path / "composite.xml").write_text(composite())
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


@pytest.mark.parametrize("form", [_tests_csv, _tests_dump, _tests_sqlite])
def test_rows_of_pgbench_tools_that_are_no_run_of_pgbench_are_left_out_by_name(
    tmp_path: Path, form: Callable[[Path, Sequence[Sequence[str | None]]], None]
) -> None:
    run = rows_of_tests()[0]
    changes: list[dict[str, str | None]] = [
        {"script": ":-i -I dtGvp", "tps": "0", "trans": "0"},
        {"script": ":-q --initialize", "tps": "0", "trans": None},
        {"script": "osm2pgsql-import", "tps": "431", "trans": "0"},
        {"script": "OSM-1.6", "tps": "431", "trans": "312000"},
        {"script": "copy", "tps": "90", "trans": None},
    ]
    others = [
        dict(zip(TESTS_COLUMNS, run, strict=True)) | {"test": str(100 + place)} | change
        for place, change in enumerate(changes)
    ]
    form(tmp_path, [run, *(tuple(row.values()) for row in others)])
    found = read(tmp_path)
    assert ["read-only clients=16"] == [each.spec.name for each in found.runs]
    (problem,) = found.problems
    assert "source-result-left-out" == problem.code
    for row in others:
        assert f"{row['script']} (1)" in str(problem)


@pytest.mark.parametrize(
    "column", ["tps", "scale", "clients", "workers", "rate_limit", "avg_latency", "trans"]
)
def test_a_row_of_pgbench_tools_with_a_number_of_another_writing_is_named_and_never_another_run(
    tmp_path: Path, column: str
) -> None:
    run = rows_of_tests()[0]
    row = dict(zip(TESTS_COLUMNS, run, strict=True)) | {"test": "9", column: "5200,5"}
    _tests_csv(tmp_path, [run, tuple(row.values())])
    found = read(tmp_path)
    assert 1 == len(found.runs)
    assert f"test 2 has {column} = '5200,5', which is no number" in str(found.problems[0])


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
    text = path.read_text().replace("rising", "d\u00e9j\u00e0").replace("Neon", "N\u00e9on")
    if encoding == "crlf":
        path.write_bytes(text.replace("\n", "\r\n").encode())
    else:
        path.write_bytes(text.encode(encoding))


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("form", ["pgbench-tools", "postgresbench", "kernel-bench", "pg-fs-benchmark", "sql"])
def test_a_byte_order_mark_is_taken_and_any_other_encoding_named(
    tmp_path: Path, form: str, encoding: str
) -> None:
    match form:
        case "pgbench-tools":
            _tests_csv(tmp_path, rows_of_tests()[:1])
        case "sql":
            _tests_dump(tmp_path, rows_of_tests()[:1])
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


@pytest.mark.parametrize(
    ("head", "between", "words"),
    [
        ("", ";", "semicolons"),
        ("", "\t", "tabulators"),
        ("sep=;\n", ";", "semicolons"),
        ("sep=,\n", ",", "first line"),
    ],
)
def test_a_table_with_other_separators_is_named_with_the_way_out(
    tmp_path: Path, head: str, between: str, words: str
) -> None:
    _tests_csv(tmp_path, rows_of_tests()[:2])
    path = tmp_path / "tests.csv"
    rows = list(csv.reader(path.open(newline="")))
    with path.open("w", newline="") as file:
        file.write(head)
        csv.writer(file, delimiter=between).writerows(rows)
    with pytest.raises(PlanError, match=f"tests.csv has .*{words}.*save it with commas"):
        read(tmp_path)
    (problem,) = read(tmp_path, "pgbench-tools").problems
    assert words in str(problem)


@pytest.mark.parametrize("absent", ["NULL", "[NULL]", "\\N", ""])
def test_what_a_program_writes_for_a_null_is_absent(tmp_path: Path, absent: str) -> None:
    run = rows_of_tests()[0]
    _tests_csv(tmp_path, [tuple(absent if word is None else word for word in run)])
    found = read(tmp_path)
    assert ((), 1) == (found.problems, len(found.runs))
    assert "rate" not in found.runs[0].spec.levels
