"""Visits of bonnie++ and fio for real, on small files: what is recorded, and what goes wrong."""

from __future__ import annotations

import json
import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.tools.patience import AT_MOST_S
from tests.support.tools.processes import processes_naming

from bedplate.figures.run import make_figures
from bedplate.host.command import environment
from bedplate.model import codec
from bedplate.model.cell import (
    BuildLevels,
    Cell,
    ClusterLevels,
    Dataset,
    DeviceLevels,
    FilesystemLevels,
    RunSpec,
)
from bedplate.model.figure import RunFigures
from bedplate.model.levels import Levels, Scalar
from bedplate.model.reason import sentences
from bedplate.model.visit import Outcome, RunRecord, Validity, VisitRecord, VisitRequest
from bedplate.units import MIB
from bedplate.workloads.fio.jobs import READY_FIO_JOBS
from bedplate.workloads.fio.model import FIO_JOB, FIO_LAY_OUT, PG_TEST_FSYNC

if TYPE_CHECKING:
    Bench = Any

pytestmark = pytest.mark.host

# Other programs of a busy machine are no fault of the run, nor is what the kernel says of them.
_OF_OTHERS = ("a hypervisor", "other programs", "another program dropped", "the kernel gave")


def request(
    bench: Bench,
    *runs: RunSpec,
    file_bytes: int | None = None,
    filesystem: FilesystemLevels | None = None,
    memory_bytes: int | None = None,
    inputs: dict[str, str] | None = None,
    **changes: Any,
) -> VisitRequest:
    for name in {"bonnie++" if run.workload == "bonnie" else "fio" for run in runs}:
        if shutil.which(name, path=environment()["PATH"]) is None:
            pytest.skip(f"needs {name}: the package of the same name")
    asked: VisitRequest = bench.request(filesystem, runs=runs, **changes)
    cell = Cell(
        DeviceLevels(memory_bytes=memory_bytes),
        asked.cell.kernel,
        asked.cell.filesystem,
        BuildLevels.unbuilt("none"),
        ClusterLevels(),
    )
    levels = Levels() if file_bytes is None else Levels(file_bytes=file_bytes)
    return replace(
        asked,
        cell=cell,
        build=None,
        dataset=Dataset(runs[0].workload, levels),
        native_drivers={},
        inputs=inputs or {},
    )


def bonnie(name: str = "bonnie", *, direct: bool = False, files: int = 1024) -> RunSpec:
    per_character = 0 if direct else MIB
    levels = Levels(direct=direct, chunk_bytes=8192, per_character_bytes=per_character, files=files)
    return RunSpec(name, "bonnie", levels)


def job(name: str, **options: Scalar) -> RunSpec:
    ready = READY_FIO_JOBS[name].options if name in READY_FIO_JOBS else {}
    return RunSpec(name, "fio", Levels({**ready, **options}))


def records(bench: Bench, visit: VisitRecord) -> list[RunRecord]:
    return [codec.read(RunRecord, bench.directory / "runs" / name / "record.json") for name in visit.runs]


def figures(bench: Bench, visit: VisitRecord) -> list[RunFigures]:
    return [make_figures(bench.directory, bench.directory / "runs" / name) for name in visit.runs]


def doubts(found: RunFigures) -> list[str]:
    return [words for words in sentences(found.validity_reasons) if not words.startswith(_OF_OTHERS)]


def grown_bytes(record: RunRecord, phase: str, counter: str) -> float:
    (found,) = [counters for counters in record.phase_counters if counters.phase == phase]
    return 512 * (found.after.values[counter] - found.before.values[counter])


def value(found: RunFigures, metric: str, phase: str = "measure", item: str = "") -> float | None:
    rows = [row.value for row in found.figures if (row.phase, row.item, row.metric) == (phase, item, metric)]
    assert len(rows) == 1, (metric, phase, item)
    return rows[0]


def test_a_visit_goes_through_bonnies_stages_with_and_without_o_direct(bench: Bench) -> None:
    events: list[dict[str, Any]] = []
    visit = bench.live(
        request(
            bench,
            bonnie(),
            bonnie("bonnie-direct", direct=True),
            file_bytes=512 * MIB,
            memory_bytes=256 * MIB,
            image_bytes=1024 * MIB,
        ),
        lambda line: events.append(json.loads(line)),
    )
    assert (Outcome.COMPLETED, ()) == (visit.outcome, visit.reasons)
    assert [] == bench.left_behind()
    assert "bonnie 1" == visit.provenance["protocol"]
    assert visit.versions["bonnie++"].startswith("2.00")
    for record, made in zip(records(bench, visit), figures(bench, visit), strict=True):
        phases = [phase.name for phase in record.phases]
        assert ["putc"] * (record.spec.name == "bonnie") + ["put_block", "rewrite"] == phases[
            : 3 - ("putc" not in phases)
        ]
        assert "sync" == phases[-1]
        # The memory holds half of the file: reading it again must come from the device.
        assert grown_bytes(record, "get_block", "device.read_sectors") > 256 * MIB
        assert grown_bytes(record, "put_block", "device.written_sectors") > 256 * MIB
        assert grown_bytes(record, "rewrite", "device.read_sectors") > 256 * MIB
        assert [] == doubts(made)
        assert value(made, "cpu_s_per_gib", "get_block")
        assert {(record.spec.name, phase) for phase in phases} <= {
            (event.get("run"), event.get("phase")) for event in events
        }
        check_clocks(record)


def check_clocks(record: RunRecord) -> None:
    ends = [moment for phase in record.phases for moment in (phase.start_monotonic_s, phase.end_monotonic_s)]
    assert sorted(ends) == ends
    for phase, counters in zip(record.phases, record.phase_counters, strict=True):
        assert phase.name == counters.phase
        assert counters.before.monotonic_s <= phase.start_monotonic_s
        assert counters.after.monotonic_s >= phase.end_monotonic_s


@pytest.mark.parametrize("kind", ["xfs", "btrfs"])
def test_a_visit_makes_the_jobs_of_fio_each_on_files_of_its_own(bench: Bench, kind: str) -> None:
    runs = (
        job("random-read-8k", size="64 MB", io_size="16 MB"),
        job("wal-append", size="1 MB"),
        job("wal-overwrite", size="1 MB"),
        job("checkpoint", size="32 MB"),
        job("sequential-scan", size="64 MB"),
    )
    visit = bench.live(request(bench, *runs, filesystem=FilesystemLevels(kind)))
    assert (Outcome.COMPLETED, ()) == (visit.outcome, visit.reasons)
    assert [] == bench.left_behind()
    assert visit.versions["fio"].startswith("3.")
    found = records(bench, visit)
    read, append, overwrite, checkpoint, scan = found
    assert [FIO_LAY_OUT, FIO_JOB, "sync"] == [phase.name for phase in read.phases]
    assert [FIO_JOB, "sync"] == [phase.name for phase in append.phases]
    # What was laid out is nowhere but on the device.
    assert grown_bytes(scan, FIO_JOB, "device.read_sectors") >= 64 * MIB
    assert grown_bytes(read, FIO_JOB, "device.read_sectors") >= 15 * MIB
    assert grown_bytes(checkpoint, FIO_JOB, "device.written_sectors") >= 32 * MIB
    for record in (append, overwrite):
        flushed = grown_bytes(record, FIO_JOB, "device.flushes") / 512
        assert flushed >= MIB // 8192 - 1
    for record, made in zip(found, figures(bench, visit), strict=True):
        assert [] == doubts(made)
        assert value(made, "throughput_mib_per_s")
        assert value(made, "cpu_s_per_gib") is not None
        check_clocks(record)
    logs = bench.directory / "runs" / visit.runs[0] / "logs"
    assert {"fio.out", "fio.err", "fio-lay-out.out", "fio_iops.log"} <= {path.name for path in logs.iterdir()}


def test_pg_test_fsync_runs_beside_fio(bench: Bench, repository: Path) -> None:
    # The real one takes 16 s at least; this one says what a real one said, and writes where it was told.
    programs = str(bench.base)
    said = repository / "tests/golden/pg_test_fsync/pg18-ext4.txt"
    program = bench.base / PG_TEST_FSYNC
    program.write_text(
        f'#!/bin/sh\nset -e\ntest "$1 $3 $4" = "-f -s 1"\n: > "$2"\ncat <<EOF\n{said.read_text()}EOF\n'
    )
    program.chmod(0o755)
    spec = RunSpec(PG_TEST_FSYNC, "fio", Levels(tool=PG_TEST_FSYNC, seconds=1))
    visit = bench.live(request(bench, spec, inputs={PG_TEST_FSYNC: programs}))
    assert (Outcome.COMPLETED, ()) == (visit.outcome, visit.reasons)
    (made,) = figures(bench, visit)
    assert value(made, "operations_per_s") == value(made, "operations_per_s", "one write", "fdatasync")


def test_a_full_device_ends_in_the_tools_words_and_the_next_run_has_room(bench: Bench) -> None:
    visit = bench.live(
        request(bench, job("large", rw="write", bs="64 kB", size="700 MB"), job("wal-append", size="1 MB"))
    )
    large, append = records(bench, visit)
    assert (Outcome.FAILED, Outcome.COMPLETED) == (large.outcome, append.outcome)
    assert any("No space left on device" in reason.sentence for reason in large.reasons), large.reasons
    assert any("the scratch device is full" in reason.sentence for reason in large.reasons)
    assert [] == bench.left_behind()


def test_bonnie_on_a_full_device_says_so_too(bench: Bench) -> None:
    visit = bench.live(request(bench, bonnie(), file_bytes=700 * MIB))
    (record,) = records(bench, visit)
    assert Outcome.FAILED is record.outcome
    assert any("No space left on device" in reason.sentence for reason in record.reasons), record.reasons
    assert any("the scratch device is full" in reason.sentence for reason in record.reasons)
    (made,) = figures(bench, visit)
    assert ((), Validity.UNKNOWN) == (made.figures, made.validity)


def test_a_tool_that_is_killed_is_a_failed_run(bench: Bench) -> None:
    spec = job("endless", rw="randwrite", bs="8 kB", size="16 MB", runtime="60 s")

    def kill(line: str) -> None:
        event = json.loads(line)
        if event.get("phase") == FIO_JOB:
            # It says so just before it begins.
            pid = None
            while pid is None:
                pid = next(iter(_fio_below(bench.base)), None)
            os.kill(pid, signal.SIGKILL)

    visit = bench.live(request(bench, spec), kill)
    (record,) = records(bench, visit)
    assert Outcome.FAILED is record.outcome
    assert any("fio was killed by SIGKILL" in reason.sentence for reason in record.reasons), record.reasons
    assert [] == bench.left_behind()


def _fio_below(base: Path) -> list[int]:
    """Processes that are fio and name the bench, parents first."""
    return [process.pid for process in processes_naming(str(base)) if process.arguments[0] == "fio"]


def test_a_visit_that_is_stopped_leaves_no_tool_behind(bench: Bench) -> None:
    visit = bench.start(
        request(bench, job("endless", rw="randwrite", bs="8 kB", size="16 MB", runtime="60 s"))
    )
    assert visit.stdout is not None
    for line in visit.stdout:
        if json.loads(line).get("phase") == FIO_JOB:
            break
    visit.terminate()
    visit.wait(AT_MOST_S)
    assert [] == _fio_below(bench.base)
    assert [] == bench.left_behind()


def test_a_tool_that_is_missing_is_named_before_anything_is_touched(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = request(bench, job("wal-append", size="1 MB"))
    # Everything that the search path has but fio.
    for directory in ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"):
        for program in Path(directory).glob("*"):
            if program.name != "fio" and not (tmp_path / program.name).is_symlink():
                (tmp_path / program.name).symlink_to(program)
    from bedplate.host import requirement  # noqa: PLC0415
    from bedplate.host.command import Commands  # noqa: PLC0415
    from bedplate.visit.life import unmet_needs  # noqa: PLC0415

    monkeypatch.setattr(requirement, "_SYSTEM_DIRECTORIES", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert ("fio is missing (package fio): measures files without a database",) == unmet_needs(
        asked, Commands()
    )
