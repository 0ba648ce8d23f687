"""The line that a visit leaves in the log."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.support.runs.raw_sequential_run import sequential_study
from tests.support.studies.synthetic_microbenchmark import synthetic_microbenchmark
from tests.support.studies.synthetic_study import Recipe, write_study
from tests.support.studies.synthetic_tpch import TpchRecipe, synthetic_tpch_study, tpch_runs

from bedplate.campaign.start import summary as _summary
from bedplate.model.codec import write
from bedplate.model.metrics import figure
from bedplate.model.visit import Outcome, Phase, RunRecord, Validity
from bedplate.study.store import read_progress
from bedplate.study.stored import read_study

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.study.stored import StoredVisit

ONE = TpchRecipe(
    filesystems=("ext4",),
    database_blocks=(8192,),
    repetitions=1,
    timeouts=(),
    other_plans=(),
    wavering_plans=(),
    failed=(),
)


def only_visit(study: Path) -> StoredVisit:
    (visit,) = read_study(study).visits
    return visit


def test_a_tpch_visit_tells_its_times_and_how_many_queries_ended(tmp_path: Path) -> None:
    visit = only_visit(synthetic_tpch_study(tmp_path / "study", ONE))
    text = _summary(visit.record, visit.runs)
    load, cold, warm, throughput = text.split(", ")
    assert load.startswith("load 2")
    assert load.endswith(" s")
    assert cold.startswith("cold ")
    assert "of" not in cold, "the count is said once of passes that are alike"
    assert warm.endswith(" (22 of 22)")
    assert throughput.endswith(" (44 of 44)")


def test_an_lmdb_visit_tells_how_long_its_tests_took(tmp_path: Path) -> None:
    visit = read_study(synthetic_microbenchmark(tmp_path / "study", repetitions=1)).visits[0]
    parts = _summary(visit.record, visit.runs).split(", ")
    assert [run.run for run in visit.runs] == [part.rpartition(" s")[0].rpartition(" ")[0] for part in parts]
    assert parts[0] == "write 1.0 s"


def test_a_run_without_a_speed_is_told_where_it_is_doubted(tmp_path: Path) -> None:
    visit = read_study(synthetic_microbenchmark(tmp_path / "study", repetitions=1)).visits[0]
    write_run, *rest = visit.runs
    bare = replace(write_run, figures=tuple(f for f in write_run.figures if f.metric != "tests_s"))
    assert "write" not in _summary(visit.record, (bare, *rest[:1]))
    doubted = replace(bare, validity=Validity.SUSPECT)
    assert _summary(visit.record, (doubted, *rest[:1])).startswith("write (suspect), read-cold ")


def test_bonnie_tells_its_time_and_fio_its_throughput(tmp_path: Path) -> None:
    visits = read_study(sequential_study(tmp_path / "study")).visits
    text = "; ".join(_summary(visit.record, visit.runs) for visit in visits)
    assert re.search(r"bonnie [\d.]+ s", text)
    assert re.search(r"random-read-8k [\d,.]+ MiB/s, wal-append [\d,.]+ MiB/s", text)


def test_a_pass_with_a_timeout_has_its_own_count(tmp_path: Path) -> None:
    recipe = replace(ONE, timeouts=((0, 20), (0, 21)), suspect=((0, 1, "warm"),), streams=0)
    visit = only_visit(synthetic_tpch_study(tmp_path / "study", recipe))
    whole = replace(visit.runs[1], figures=tuple(f for f in visit.runs[1].figures if f.item != "20"))
    text = _summary(visit.record, (visit.runs[0], whole, visit.runs[2]))
    assert "(20 of 21), warm" in text
    assert text.endswith("(20 of 22) (suspect)")
    assert ", warm > " in text, "the sum with a limit in it is no time"


def test_seconds_that_are_few_keep_a_digit(tmp_path: Path) -> None:
    visit = only_visit(synthetic_tpch_study(tmp_path / "study", replace(ONE, scale_factor=0.01)))
    assert _summary(visit.record, visit.runs).startswith("load 2.")


def test_a_failed_visit_tells_why(tmp_path: Path) -> None:
    recipe = replace(ONE, failed=((0, 1, "cold"),))
    visit = only_visit(synthetic_tpch_study(tmp_path / "study", recipe))
    assert visit.record.outcome is Outcome.FAILED
    assert "its answer differs" in _summary(visit.record, visit.runs)


def test_a_pgbench_visit_tells_its_tps(tmp_path: Path) -> None:
    recipe = Recipe(filesystem_blocks=(None,), database_blocks=(8192,), repetitions=1, course_s=5, canaries=0)
    visit = read_study(write_study(tmp_path / "study", recipe)).visits[0]
    first, second = _summary(visit.record, visit.runs).split(", r")
    assert first.startswith("read-only ")
    assert first.endswith(" tps")
    assert second.startswith("ead-write ")


def test_a_visit_of_power_cuts_tells_how_many_were_bad(tmp_path: Path) -> None:
    visit = only_visit(synthetic_tpch_study(tmp_path / "study", ONE))
    counts = (("cut", "lost", 40, 3), ("cut", "ordered", 120, 0), ("recut", "volatile-4k", 1000, 2))
    figures = tuple(
        figure(metric, count, phase=phase, item=item)
        for phase, item, *both in counts
        for metric, count in zip(("power_cuts", "power_cuts_bad"), both, strict=True)
    )
    run = replace(visit.runs[0], run="power-cut", figures=figures, validity=Validity.VALID)
    assert "power-cut 3 of 160 cuts bad, 2 of 1,000 in recovery" == _summary(visit.record, (run,))


@pytest.mark.parametrize("runs", [(), None])
def test_a_visit_without_figures_tells_nothing(tmp_path: Path, runs: tuple[()] | None) -> None:
    visit = only_visit(synthetic_tpch_study(tmp_path / "study", ONE))
    bare = tuple(replace(run, figures=()) for run in visit.runs)
    assert "" == _summary(visit.record, bare if runs is None else runs)


def test_the_progress_of_a_tpch_study_counts_its_visits(tmp_path: Path) -> None:
    recipe = replace(ONE, repetitions=3, failed=((0, 2, "warm"),), missing=((0, 3),))
    found = read_progress(synthetic_tpch_study(tmp_path / "study", recipe))
    assert (3, 1, 1, 1) == (found.visits, found.completed, found.failed, found.left)
    (failure,) = found.failures
    assert any(reason.startswith("warm: query 5") for reason in failure.reasons)


def test_every_phase_but_the_warm_up_counts_as_measured(tmp_path: Path) -> None:
    study = synthetic_tpch_study(tmp_path / "study", ONE)
    visit = only_visit(study)
    (spec, *_) = tpch_runs(ONE)
    phases = [Phase(name, 0.0, 7.0, 0.0, 7.0) for name in ("warmup", "load", "indexes", "query 14")]
    record = RunRecord(spec, Outcome.COMPLETED, phases=tuple(phases))
    write(visit.directory / "runs" / visit.record.runs[0] / "record.json", record)
    found = read_progress(study)
    assert 21.0 == found.measured_s
    assert found.measured_share == pytest.approx(21.0 / found.visits_s)
