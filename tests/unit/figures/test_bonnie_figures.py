"""The figures of a run of bonnie++: what is measured, what is absent and why, and when it is not to be believed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from tests.support.runs.raw_sequential_run import BONNIE, RawSequential

from bedplate.model.course import COURSE_FILE
from bedplate.model.figure import Figure, RunFigures, Status
from bedplate.model.reason import sentences
from bedplate.model.visit import Outcome, Validity
from bedplate.units import GIB, MIB
from bedplate.workloads.bonnie.figures import STAGES


def rows(found: RunFigures) -> dict[tuple[str, str], Figure]:
    return {(row.phase, row.metric): row for row in found.figures}


def test_every_stage_has_its_rate_its_cpu_and_its_longest_operation(tmp_path: Path) -> None:
    found = RawSequential().figures(tmp_path)
    assert (Validity.VALID, ()) == (found.validity, found.validity_reasons)
    by = rows(found)
    # tests/golden/bonnie/limited.csv: 1441325 KiB/s at 45 %, 42008us.
    assert 1441325 / 1024 == by["put_block", "throughput_mib_per_s"].value
    assert 0.45 == by["put_block", "tool_cpu_share"].value
    assert pytest.approx(42.008) == by["put_block", "latency_ms_max"].value
    assert 58521 == by["seeks", "operations_per_s"].value
    assert ("seeks", "throughput_mib_per_s") not in by
    assert [*STAGES, "sync"] == list(dict.fromkeys(phase for phase, _ in by if phase != "measure"))


def test_cpu_per_gib_is_the_groups_and_the_machines(tmp_path: Path) -> None:
    by = rows(RawSequential().figures(tmp_path))
    # 2 s at 0.5 CPU of the group and 0.55 of the machine, for a file of 1 GiB.
    assert pytest.approx(1.0) == by["rewrite", "cpu_s_per_gib"].value
    assert pytest.approx(1.1) == by["rewrite", "machine_cpu_s_per_gib"].value
    # The stages of single bytes move 3 MiB of it.
    assert pytest.approx(1024 / 3) == by["putc", "cpu_s_per_gib"].value
    assert ("seeks", "cpu_s_per_gib") not in by


def test_what_is_not_measurable_is_absent_and_says_why(tmp_path: Path) -> None:
    by = rows(RawSequential().figures(tmp_path))
    created = by["seq_create", "operations_per_s"]
    assert (Status.ABSENT, None) == (created.status, created.value)
    assert "less than 0.5 s" in str(created.reason)
    share = by["seeks", "tool_cpu_share"]
    assert (Status.ABSENT, None) == (share.status, share.value)
    assert "5 seekers" in str(share.reason)


def test_without_the_groups_counter_cpu_per_gib_is_absent(tmp_path: Path) -> None:
    by = rows(RawSequential(growth={"server.cpu_s": None}).figures(tmp_path))
    found = by["put_block", "cpu_s_per_gib"]
    assert (None, "the counter server.cpu_s is not there on this machine or engine") == (
        found.value,
        str(found.reason),
    )


def test_the_run_has_its_sums_and_a_course_with_its_stages(tmp_path: Path) -> None:
    found = RawSequential().figures(tmp_path)
    by = rows(found)
    assert pytest.approx(2.0 * len(STAGES)) == by["measure", "stages_total_s"].value
    assert 9.0 == by["measure", "tool_cpu_s"].value
    assert pytest.approx(0.5) == by["sync", "phase_s"].value
    (course,) = tmp_path.glob(f"runs/*/{COURSE_FILE}")
    frame = pl.read_parquet(course)
    assert list(STAGES) == [phase for phase in frame["phase"].unique(maintain_order=True) if phase != "sync"]
    assert pytest.approx(1024) == frame["device_read_mib_per_s"].drop_nulls().median()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"growth": {"device.read_sectors": 2048.0}},
            "the cache answered: rewrite read 1 GiB, and the device gave 2 MiB",
        ),
        (
            {"facts": {"file_bytes": GIB, "memory_bytes": 8 * GIB, "seeks": 30000}},
            "the file of 1 GiB is smaller than 2 x",
        ),
        ({"golden": {}}, "bonnie.out cannot be read"),
        ({"golden": {"bonnie.out": "bonnie/full.err"}}, "bonnie++"),
    ],
)
def test_a_run_that_measured_a_cache_or_nothing_is_not_valid(
    tmp_path: Path, changes: dict[str, object], expected: str
) -> None:
    found = replace(RawSequential(), **changes).figures(tmp_path)  # type: ignore[arg-type]
    assert found.validity is not Validity.VALID
    assert any(expected in reason.sentence for reason in found.validity_reasons), found.validity_reasons


def test_a_share_just_above_the_limit_is_believed(tmp_path: Path) -> None:
    # 2 s of 52 MiB/s are a little more than a tenth of 1 GiB.
    assert (
        Validity.VALID
        is RawSequential(growth={"device.read_sectors": 2048.0 * 52}).figures(tmp_path).validity
    )


def test_a_canary_need_not_outgrow_the_memory(tmp_path: Path) -> None:
    small = {"file_bytes": 256 * MIB, "memory_bytes": 8 * GIB, "seeks": 30000}
    found = RawSequential(canary=True, facts=small, growth={"device.read_sectors": 0.0}).figures(tmp_path)
    assert Validity.VALID is found.validity


def test_a_run_that_failed_has_no_figures_and_keeps_its_course(tmp_path: Path) -> None:
    found = RawSequential(outcome=Outcome.FAILED).figures(tmp_path)
    assert ((), Validity.UNKNOWN, Outcome.FAILED) == (found.figures, found.validity, found.outcome)
    assert list(tmp_path.glob(f"runs/*/{COURSE_FILE}"))


def test_a_run_that_never_began_has_neither(tmp_path: Path) -> None:
    found = RawSequential(seconds={}, outcome=Outcome.FAILED, spec=BONNIE).figures(tmp_path)
    assert ("nothing was measured",) == sentences(found.validity_reasons[:1])
    assert [] == list(tmp_path.glob(f"runs/*/{COURSE_FILE}"))
