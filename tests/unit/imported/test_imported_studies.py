"""An imported study is read as any other, and is never run, added to or compared with what was measured here."""

from __future__ import annotations

import csv
import json
import shutil
from typing import TYPE_CHECKING

import pytest
from tests.support.studies.known_study import KNOWN, known_study
from tests.support.studies.published_sources import (
    KERNELS,
    kernel_bench,
    pg_fs_benchmark,
    postgresbench,
)
from tests.support.tools.command_line import call_here

from bedplate.analysis.comparison import (
    IMPORTED_BESIDE_MEASURED,
    ComparisonQuestion,
    answer,
    require_one_origin,
)
from bedplate.analysis.overview import overview
from bedplate.campaign import running
from bedplate.errors import PlanError, StudyError
from bedplate.imported.importing import import_source
from bedplate.model.reason import reasons_of
from bedplate.model.visit import Outcome
from bedplate.page.build import build_report
from bedplate.statistics.comparison import Verdict
from bedplate.study.layout import IMPORTED_STUDY
from bedplate.study.records import IMPORTED
from bedplate.study.store import StudyStore
from bedplate.study.stored import read_study

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bedplate.analysis.overview import Overview

CLAIMS = """title = "t"
[[claim]]
id = "faster"
sentence = "4.6.0 is at least 20 % faster."
[[claim.check]]
kind = "ratio"
run = "read-write clients=4"
metric = "tps"
baseline = "kernel.release=2.6.39"
contender = "kernel.release=4.6.0"
at_least = 1.2
"""


def tps(kernel: str, script: str, repetition: int) -> float:
    """The later kernel makes 1.5 times the transactions; repetitions scatter a little."""
    return (
        1000.25 * 1.5 ** KERNELS.index(kernel) * (1 + repetition / 1000) * (5 if script == "read-only" else 1)
    )


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """kernel-bench of two kernels, three times."""
    kernel_bench(tmp_path / "source", tps)
    import_source(tmp_path / "source", tmp_path / "study")
    return tmp_path / "study"


def codes_of(call: Callable[[], object]) -> list[str]:
    with pytest.raises((PlanError, StudyError)) as error:
        call()
    return [each.code for each in reasons_of(error.value)]


def compared(found: Overview, baseline: str, contender: str) -> list[Verdict]:
    told = answer([found], ComparisonQuestion(baseline, contender, metrics=("tps",)))
    return [each.comparison.verdict for each in told.compared]


def test_every_run_is_a_measurement_with_the_figure_of_the_source(study: Path) -> None:
    found = overview(study)
    assert 12 == len(found.measurements)
    assert {(Outcome.COMPLETED, None)} == {(m.outcome, m.trouble) for m in found.measurements}
    for m in found.measurements:
        kernel = found.study.schedule.cells[m.cell].kernel.release
        assert kernel is not None
        assert pytest.approx(tps(kernel, m.run.split(" ")[0], m.repetition), abs=1e-6) == m.value("tps")
        assert m.directory is not None
        text = (m.directory / "logs" / "source.txt").read_text()
        assert f"tps = {m.value('tps'):.6f} (excluding" in text
    assert (IMPORTED, IMPORTED) == (found.study.facts.origin, found.study.facts.executor)
    assert found.marks[0].startswith("imported: ")
    assert () == found.study.set_aside


def test_three_repetitions_are_judged_and_one_is_not(study: Path, tmp_path: Path) -> None:
    assert {Verdict.FASTER} == set(compared(overview(study), "kernel.release=2.6.39", "kernel.release=4.6.0"))
    pg_fs_benchmark(tmp_path / "once")
    import_source(tmp_path / "once", tmp_path / "single")
    assert {Verdict.CANNOT_TELL} == set(compared(overview(tmp_path / "single"), "type=xfs", "type=ext4"))


def test_copies_of_one_run_are_no_repetitions(tmp_path: Path) -> None:
    pg_fs_benchmark(tmp_path / "source" / "a")
    # Without the rows of when its runs began, a copy is one nonetheless.
    for name in ("b", "c"):
        shutil.copytree(tmp_path / "source" / "a", tmp_path / "source" / name)
    (tmp_path / "source" / "c" / "i5" / "20220907-mdraid" / "results.csv").unlink()
    found = import_source(tmp_path / "source", tmp_path / "study")
    assert 8 == len(found.runs)
    assert ["source-duplicate"] * 16 == [each.code for each in found.problems]
    assert "b/i5/20220903-zfs/mirror/no-fpw/1000/run-ro-1/pgbench.log" in str(found.problems[0])
    assert "is the run of a/i5/20220903-zfs/" in str(found.problems[0])
    assert {Verdict.CANNOT_TELL} == set(compared(overview(tmp_path / "study"), "type=xfs", "type=ext4"))


def test_two_sets_that_failed_with_the_same_words_are_two(tmp_path: Path) -> None:
    pg_fs_benchmark(tmp_path / "source")
    sets = tmp_path / "source" / "i5"
    first, second = sets / "20220903-zfs", sets / "20220910-zfs"
    for log in first.rglob("pgbench.log"):
        log.write_text("")
    (first / "results.csv").unlink(missing_ok=True)
    shutil.copytree(first, second)
    found = import_source(tmp_path / "source", tmp_path / "study")
    assert 2 * len(list(first.rglob("pgbench.log"))) == len(found.failures)


def test_runs_that_failed_alike_are_a_run_each(tmp_path: Path) -> None:
    source = kernel_bench(tmp_path / "source", tps)
    for log in source.glob("i5-2500k/4.6.0/30/*/read-write-4.log"):
        log.write_text("no")
    found = import_source(source, tmp_path / "study")
    assert (12, 3, ()) == (len(found.runs), len(found.failures), found.problems)


def test_claims_are_judged_in_it(study: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(CLAIMS)
    done = call_here("show", study, "--claims", "--file", tmp_path / "mine.toml", "--json")
    assert 0 == done.returncode, done.stderr
    assert '"holds"' in done.stdout


@pytest.mark.parametrize("words", ["show", "status", "summary", "effects", "advise"])
def test_readers_show_it_and_offer_no_command_that_would_run_it(study: Path, words: str) -> None:
    done = call_here(words, study)
    assert 0 == done.returncode, done.stderr
    assert "extend" not in done.stdout


def test_it_is_exported_with_its_origin(study: Path, tmp_path: Path) -> None:
    done = call_here("export", study, "-o", tmp_path / "t", "--format", "csv", "--table", "runs")
    assert 0 == done.returncode, done.stderr
    with (tmp_path / "t" / "runs.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert 12 == len(rows)
    assert {IMPORTED} == {row["executor"] for row in rows}


def test_it_is_put_on_a_page(study: Path, tmp_path: Path) -> None:
    build_report([study], tmp_path / "page.html")
    assert "imported: others made these runs" in (tmp_path / "page.html").read_text().casefold()


def test_a_page_says_nothing_of_a_machine_that_its_source_does_not_say(study: Path, tmp_path: Path) -> None:
    build_report([study], tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "on i5-2500k; the source says no more of the machine." in page
    assert not [each for each in ("unknown number", "none found", "no memory limits") if each in page]
    # Nothing was recorded beside the figures, so there is no chapter of it.
    assert not [
        each for each in ("courses", "latency", "caches", "checkpoints") if f'<a href="#{each}">' in page
    ]
    assert '<a href="#order">' in page
    assert "The runs are in the order of the source." in page
    import_source(postgresbench(tmp_path / "services", ("Neon",)), tmp_path / "rented")
    build_report([tmp_path / "rented"], tmp_path / "rented.html")
    page = (tmp_path / "rented.html").read_text()
    assert "16 GiB" in page


def test_a_page_of_runs_that_have_the_size_of_their_database_and_not_of_their_wal(tmp_path: Path) -> None:
    import_source(pg_fs_benchmark(tmp_path / "source"), tmp_path / "study")
    build_report([tmp_path / "study"], tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size > 0


def test_a_comparison_with_measured_cells_is_refused_by_a_code(study: Path, tmp_path: Path) -> None:
    known_study(tmp_path / "measured", lambda place: 1000.0 + place.repetition, KNOWN)
    both = [overview(tmp_path / "measured"), overview(study)]
    asked = ComparisonQuestion("type=ext4", "type=ext4", factors=("machine", "kernel", "build"))
    assert [IMPORTED_BESIDE_MEASURED] == codes_of(lambda: answer(both, asked))
    assert [IMPORTED_BESIDE_MEASURED] == codes_of(
        lambda: build_report([study, tmp_path / "measured"], tmp_path / "page.html")
    )
    assert not (tmp_path / "page.html").exists()
    require_one_origin(both[:1])
    require_one_origin([both[1], both[1]])
    done = call_here(
        "compare", study, tmp_path / "measured", "--baseline", "type=ext4", "--contender", "type=xfs"
    )
    assert (2, "") == (done.returncode, done.stdout)


def test_nothing_is_run_in_it_or_added_to_it(study: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text('title = "t"\n[[filesystem]]\ntype = "ext4"\n[[workload]]\ntype = "pgbench"\n')
    before = {path: path.read_bytes() for path in study.rglob("*") if path.is_file()}
    for call in (
        lambda: StudyStore.open(study),
        lambda: running.extend(study, repetitions=5),
        lambda: running.run(plan, study),
    ):
        assert [IMPORTED_STUDY] == codes_of(call)
    assert before == {path: path.read_bytes() for path in study.rglob("*") if path.is_file()}


def test_a_run_that_the_source_lacks_did_not_run_and_shares_the_dataset(tmp_path: Path) -> None:
    kernel_bench(tmp_path / "source", tps)
    (tmp_path / "source" / "i5-2500k" / "4.6.0" / "30" / "2" / "read-write-4.log").unlink()
    import_source(tmp_path / "source", tmp_path / "study")
    found = overview(tmp_path / "study")
    assert 1 == len(found.study.schedule.datasets)
    (lacking,) = [m for m in found.measurements if m.outcome is not Outcome.COMPLETED]
    assert (Outcome.NOT_RUN, ["not-in-the-source"]) == (lacking.outcome, [r.code for r in lacking.reasons])


@pytest.mark.parametrize(
    ("make", "log", "sides", "counts"),
    [
        (
            lambda folder: kernel_bench(folder, tps),
            "i5-2500k/4.6.0/30/2/read-write-4.log",
            ("kernel.release=2.6.39", "kernel.release=4.6.0"),
            {"read-only clients=4": 3, "read-write clients=4": 2},
        ),
        (
            pg_fs_benchmark,
            "i5/20220907-mdraid/0/xfs/1000/run-rw-1/pgbench.log",
            ("type=xfs", "type=ext4"),
            {"read-only clients=16": 1, "simple-update clients=16": 0},
        ),
    ],
    ids=["kernel-bench", "pg-fs-benchmark"],
)
def test_a_run_that_failed_leaves_the_others_of_its_visit_in_the_comparison(
    tmp_path: Path,
    make: Callable[[Path], Path],
    log: str,
    sides: tuple[str, str],
    counts: dict[str, int],
) -> None:
    source = make(tmp_path / "source")
    import_source(source, tmp_path / "whole")
    (source / log).write_text((source / log).read_text()[:90])
    import_source(source, tmp_path / "study")
    whole, found = overview(tmp_path / "whole"), overview(tmp_path / "study")
    assert whole.study.schedule.runs == found.study.schedule.runs
    assert [Outcome.FAILED] == [m.outcome for m in found.measurements if m.outcome is not Outcome.COMPLETED]
    assert len(whole.measurements) - 1 == sum(m.trouble is None for m in found.measurements)
    told = answer([found], ComparisonQuestion(*sides, metrics=("tps",)))
    assert counts == {each.asked.run[1]: each.comparison.n for each in told.compared}


def test_two_ways_of_measuring_at_one_scale_are_two_datasets(tmp_path: Path) -> None:
    import_source(pg_fs_benchmark(tmp_path / "source"), tmp_path / "study")
    found = overview(tmp_path / "study")
    assert {None, "20220912-zfs-limit"} == {
        each.levels.text("series") for each in found.study.schedule.datasets.values()
    }
    assert {None} == {m.trouble for m in found.measurements}


def test_one_cell_on_two_machines_is_two_cells_that_are_not_comparable(tmp_path: Path) -> None:
    kernel_bench(tmp_path / "source", tps, machine="small", kernels=KERNELS[:1])
    kernel_bench(tmp_path / "source", tps, machine="large", kernels=KERNELS[:1])
    import_source(tmp_path / "source", tmp_path / "study")
    found = overview(tmp_path / "study")
    assert 2 == len(found.cells)
    told = answer([found], ComparisonQuestion("machine=small", "machine=large", metrics=("tps",)))
    assert {("machine: large, small",)} == {each.incomparable for each in told.compared}
    assert "large, small" == found.study.machine.hostname


def test_what_a_source_does_not_say_is_absent(tmp_path: Path) -> None:
    import_source(pg_fs_benchmark(tmp_path / "source"), tmp_path / "study")
    machine = read_study(tmp_path / "study").machine
    assert (None, None, None) == (machine.cpu_count, machine.memory_bytes, machine.page_size_bytes)
    assert ("unknown", "unknown") == (machine.memory_words, machine.page_words)


def test_documents_become_a_study_too(tmp_path: Path) -> None:
    found = import_source(postgresbench(tmp_path / "source"), tmp_path / "study")
    assert "postgresbench" == found.adapter
    read = overview(tmp_path / "study")
    assert 6 == sum(m.value("tps") is not None for m in read.measurements)
    assert 3 == read.repetitions
    assert 0 == call_here("show", tmp_path / "study").returncode


def test_the_command_says_the_count_and_each_thing_that_was_left_out(tmp_path: Path) -> None:
    kernel_bench(tmp_path / "source", tps)
    done = call_here("import", tmp_path / "source", "--study", tmp_path / "whole")
    assert (0, "") == (done.returncode, done.stderr)
    assert "12 runs of kernel-bench, 0 without figures" in done.stdout
    (tmp_path / "source" / "link").symlink_to("/etc/passwd")
    (tmp_path / "source" / "i5-2500k" / "4.6.0" / "30" / "2" / "read-write-4.log").write_text("no")
    done = call_here("import", tmp_path / "source", "--study", tmp_path / "parts")
    assert 1 == done.returncode
    assert 2 == len(done.stderr.splitlines())
    assert "Traceback" not in done.stderr
    assert "link is a link" in (tmp_path / "parts" / "plan.toml").read_text()


def test_a_directory_that_holds_something_else_is_left_alone(study: Path, tmp_path: Path) -> None:
    before = json.loads((study / "study.json").read_text())
    done = call_here("import", tmp_path / "source", "--study", study)
    assert 2 == done.returncode
    assert before == json.loads((study / "study.json").read_text())


def test_what_a_kill_left_half_made_is_made_anew(tmp_path: Path) -> None:
    kernel_bench(tmp_path / "source", tps)
    (tmp_path / ".study.importing" / "visits").mkdir(parents=True)
    import_source(tmp_path / "source", tmp_path / "study")
    assert not (tmp_path / ".study.importing").exists()
    assert 12 == len(overview(tmp_path / "study").measurements)
