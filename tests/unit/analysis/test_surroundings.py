"""Where visits were lived: emulated speeds are marked wherever they are shown, and nothing unlike is pooled."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from tests.support.studies.synthetic_study import Recipe, write_study
from tests.support.tools.as_printed import as_printed

from bedplate.analysis.labels import study_marks, varies_the_kernel
from bedplate.analysis.overview import flush_rates, overview, rate_text
from bedplate.cli.status import status
from bedplate.export.tables import TABLES, export
from bedplate.model.cell import Cell, Dataset, KernelLevels
from bedplate.model.codec import read, write
from bedplate.model.levels import Levels
from bedplate.model.visit import FlushCount, VisitRecord
from bedplate.page.build import build_report
from bedplate.page.document import page_document
from bedplate.terminal.tables import show_document, show_tables

RECIPE = Recipe(filesystem_blocks=(None,), database_blocks=(8192,), repetitions=3, course_s=5)
IN_A_GUEST = {"accelerator": "tcg", "kernel": "6.12.9", "qemu": "7.2", "disk": "image file on a virtio disk"}
FLUSHES = (
    FlushCount("data", "appending", 50, 50),
    FlushCount("data", "overwriting", 50, 0),
    FlushCount("journal", "appending", 50, 100),
    FlushCount("journal", "overwriting", 50, 99),
)
EMULATED = replace(
    RECIPE,
    executor="qemu",
    provenance=IN_A_GUEST,
    flush_counts=FLUSHES,
    device_kind="block device",
    failed=((1, 1),),
)


def printed(study: Path, workload: str | None = None, metric: str | None = None) -> str:
    return as_printed(show_tables([study], workload=workload, metric=metric))


@pytest.fixture(scope="module")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_study(tmp_path_factory.mktemp("emulated") / "study", EMULATED)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_study(tmp_path_factory.mktemp("real") / "study", RECIPE)


def changed(study: Path, **provenance: str) -> str:
    """Change the surroundings of one visit of a cell; the cell's id."""
    path = min(study.glob("visits/[!c]*/*/2.1/visit.json"))
    record = read(VisitRecord, path)
    write(path, replace(record, provenance={**record.provenance, **provenance}))
    return record.key.cell


def test_a_terminal_says_it_above_the_table_in_its_heads_and_at_each_cell(emulated: Path) -> None:
    text = printed(emulated)
    assert "Emulated processors (QEMU's TCG)" in text
    assert "(emulated)" in text
    assert "emulated processors: the speed is the emulator's" in text
    assert "virtio disk" in text
    assert "loop device" not in text
    assert max(len(line) for line in text.splitlines()) <= 80


def test_a_real_machine_is_not_called_emulated(real: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status(real, as_json=False)
    assert "mulated" not in printed(real) + capsys.readouterr().out
    assert not any(cell.emulated for cell in overview(real).cells.values())


def test_status_says_it(emulated: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status(emulated, as_json=False)
    assert "processors   emulated (QEMU's TCG)" in capsys.readouterr().out


def test_every_exported_row_of_every_table_says_it(emulated: Path, real: Path, tmp_path: Path) -> None:
    for study, expected in ((emulated, {True}), (real, {False})):
        export(study, tmp_path / study.parent.name)
        for name in TABLES:
            frame = pl.read_parquet(tmp_path / study.parent.name / f"{name}.parquet")
            assert expected == set(frame["emulated"].to_list()), name
    runs = pl.read_parquet(tmp_path / emulated.parent.name / "runs.parquet")
    assert {("qemu", "6.12.9", "tcg")} == set(runs.select("executor", "kernel", "accelerator").iter_rows())
    single = export(emulated, tmp_path / "one.parquet")[0]
    assert {True} == set(pl.read_parquet(single)["emulated"].to_list())


def test_a_run_that_is_not_there_yet_was_lived_nowhere(tmp_path: Path) -> None:
    study = write_study(tmp_path / "study", replace(EMULATED, missing=((0, 1),)))
    export(study, tmp_path / "out")
    runs = pl.read_parquet(tmp_path / "out" / "runs.parquet")
    assert {None, True} == set(runs["emulated"].to_list())


def test_the_page_says_it_for_every_cell_and_every_run(emulated: Path, real: Path, tmp_path: Path) -> None:
    document = page_document([overview(emulated), overview(real)])
    assert {(0, True), (1, False)} == {(cell["study"], cell["emulated"]) for cell in document["cells"]}
    measured = document["measurements"]
    assert {(0, True), (1, False)} == set(zip(measured["study"], measured["emulated"], strict=True))
    page = tmp_path / "page.html"
    build_report([emulated], page)
    shell = page.read_text(encoding="utf-8").partition('<script type="application/json"')[0]
    assert "Emulated processors (QEMU&#39;s TCG)" in shell
    assert "emulated processors: the speed is the emulator&#39;s" in shell
    assert "in guests of QEMU with kernel 6.12.9 (the machine&#39;s own is " in " ".join(shell.split())


def test_flushes_per_fsync_are_the_second_table(emulated: Path) -> None:
    text = printed(emulated).partition("Flushes per fsync")[2]
    row = next(line for line in text.splitlines() if "xfs" in line)
    assert ["xfs", "1", "0", "2", "1.98", "durable"] == [word for word in row.split() if word != "noatime"]
    (study,) = show_document([emulated])["studies"]
    found = study["cells"][0]["flushes"]
    assert [("data", "appending", 1.0), ("data", "overwriting", 0.0)] == [
        (rate["device"], rate["pattern"], rate["per_fsync"]) for rate in found[:2]
    ]
    json.dumps(study)


def test_cells_of_a_variant_that_flush_alike_are_one_row(tmp_path: Path) -> None:
    recipe = replace(
        EMULATED, database_blocks=(8192, 32768), filesystem_blocks=(4096,), repetitions=1, failed=()
    )
    study = write_study(tmp_path / "alike", recipe)
    text = printed(study).partition("Flushes per fsync")[2]
    variants = {cell.label.panel for cell in overview(study).cells.values()}
    assert len(overview(study).cells) == 2 * len(variants)
    assert "db 8k" not in text
    assert 1 == sum(line.split()[:1] == ["xfs"] for line in text.splitlines())
    # One cell of a variant that flushes otherwise: each of its rows names its block sizes.
    path = next(
        path
        for path in study.glob("visits/*/*/*/visit.json")
        if read(VisitRecord, path).cell.filesystem.type == "xfs"
        and read(VisitRecord, path).cell.build.block_size_bytes == 32768
        and not read(VisitRecord, path).key.canary
    )
    record = read(VisitRecord, path)
    counts = tuple(replace(count, flushes=7 * count.calls) for count in record.flush_counts)
    write(path, replace(record, flush_counts=counts))
    text = printed(study).partition("Flushes per fsync")[2]
    assert 2 == sum(line.split()[:1] == ["xfs"] for line in text.splitlines())
    assert 1 == text.count("db 8k") == text.count("db 32k")


def test_the_page_has_them_as_well(emulated: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    build_report([emulated], page)
    section = page.read_text(encoding="utf-8").partition('id="durability"')[2].partition("</section")[0]
    assert ">1.98</td>" in section
    assert "ext4 nobarrier" in section


def test_a_study_without_counts_has_no_table_of_them(real: Path, tmp_path: Path) -> None:
    assert "Flushes per fsync" not in printed(real)
    page = tmp_path / "page.html"
    build_report([real], page)
    text = page.read_text(encoding="utf-8")
    assert "No visit has counted flushes yet." in text
    assert ">data,<br>" not in text


def test_visits_that_disagree_show_their_range_and_none_counted_is_no_zero(emulated: Path) -> None:
    path = next(emulated.glob("visits/[!c]*/*/1.1/visit.json"))
    record = read(VisitRecord, path)
    first = replace(record, flush_counts=(FlushCount("data", "appending", 50, 50),))
    second = replace(record, flush_counts=(FlushCount("data", "appending", 50, 0),))
    rates = flush_rates([first, second, replace(record, flush_counts=())])
    assert "0–1" == rate_text(rates, "data", "appending")
    assert 0.5 == rates[0].per_call
    assert "–" == rate_text(rates, "journal", "appending")
    assert () == flush_rates([replace(record, flush_counts=(FlushCount("data", "appending", 0, 0),))])


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"accelerator": "kvm"}, "accelerator: kvm, tcg"),
        ({"kernel": "6.12.10"}, "kernel: 6.12.10, 6.12.9"),
        ({"qemu": "9.0"}, "QEMU: 7.2, 9.0"),
    ],
)
def test_visits_of_a_cell_in_unlike_surroundings_have_no_interval_and_say_why(
    tmp_path: Path, change: dict[str, str], word: str
) -> None:
    study = write_study(tmp_path / "study", replace(EMULATED, failed=()))
    whole = overview(study)
    run = whole.runs[0]
    assert all(whole.summary(cell, run, "tps").low is not None for cell in whole.cells)
    cell = changed(study, **change)
    found = overview(study)
    assert (word,) == found.cells[cell].incomparable
    summary = found.summary(cell, run, "tps")
    assert (None, None, 3) == (summary.low, summary.high, summary.n)
    others = [other for other in found.cells if other != cell]
    assert all(found.summary(other, run, "tps").low is not None for other in others)
    assert "not comparable" in printed(study)


@pytest.mark.parametrize("key", ["kernel", "kernel_digest"])
def test_equal_options_under_two_kernels_are_two_results(tmp_path: Path, key: str) -> None:
    """Also where both say one release, as two builds of one tree do."""
    study = write_study(tmp_path / "study", replace(EMULATED, failed=(), canaries=0))
    paths = sorted(study.glob("visits/[!c]*/*/*/visit.json"))
    records = [read(VisitRecord, path) for path in paths]
    for path, record in zip(paths, records, strict=True):
        write(path, replace(record, effective_digest="the same"))
    assert all(len(cell.identical_to) == 3 for cell in overview(study).cells.values())
    first = records[0].key.cell
    for path, record in zip(paths, records, strict=True):
        kernel = "6.1.0" if record.key.cell == first else "6.12.9"
        provenance = {**record.provenance, key: kernel}
        write(path, replace(record, effective_digest="the same", provenance=provenance))
    found = overview(study)
    assert () == found.cells[first].identical_to
    assert all(first not in cell.identical_to for cell in found.cells.values())
    assert not any(cell.changing for cell in found.cells.values())


def test_kernels_that_no_factor_explains_are_said_beside_every_figure(tmp_path: Path) -> None:
    study = write_study(tmp_path / "study", EMULATED)
    changed(study, kernel="6.1.0")
    (mark,) = [mark for mark in overview(study).marks if mark.startswith("kernels differ")]
    assert "6.1.0, 6.12.9" in mark
    cells = list(overview(study).study.schedule.cells.values())
    both = [replace(cells[0], kernel=KernelLevels(name)) for name in ("6.1", "6.12")]
    records = [visit.record for visit in overview(study).study.visits]
    assert not [mark for mark in study_marks(both, records) if mark.startswith("kernels differ")]


@pytest.mark.parametrize(
    ("workload", "said"), [("pgbench", True), ("power_cut", False), ("faulty_disk", False)]
)
def test_an_image_file_is_in_the_figures_of_what_stands_on_it(
    workload: str, real: Path, *, said: bool
) -> None:
    visits = [visit.record for visit in overview(real).study.visits]
    on_image = [
        replace(
            record,
            dataset=Dataset(workload, Levels()),
            device_facts=Levels({**record.device_facts, "kind": "image file on a loop device"}),
        )
        for record in visits
    ]
    marks = study_marks([], on_image)
    assert said == ("image file: the figures include the host's file system and the loop device" in marks)


def test_a_kernel_is_a_factor_where_two_cells_differ_in_nothing_else(real: Path) -> None:
    cell: Cell = next(iter(overview(real).study.schedule.cells.values()))
    xfs = replace(cell, filesystem=replace(cell.filesystem, type="xfs"))
    assert varies_the_kernel([cell, replace(cell, kernel=KernelLevels("6.1"))])
    assert not varies_the_kernel([cell, replace(xfs, kernel=KernelLevels("6.1"))])
