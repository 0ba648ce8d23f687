"""sysbench visits for real, seconds long, on both servers: the same figures of the same scripts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from bedplate.campaign.preparation import MadeAnyway
from bedplate.engines.mariadb.prepare import PREPARATION
from bedplate.errors import BedplateError
from bedplate.figures.run import make_figures
from bedplate.figures.validity import CACHES_DROPPED, KERNEL_WARNING, OTHERS_AT_WORK, THROTTLED_MACHINE
from bedplate.model import codec
from bedplate.model.cell import BuildLevels, ClusterLevels, Dataset, RunSpec
from bedplate.model.levels import Levels
from bedplate.model.visit import Outcome, RunRecord
from bedplate.workloads.sysbench.prepare import INPUTS

if TYPE_CHECKING:
    from bedplate.model.visit import VisitRequest

    Bench = Any

pytestmark = [pytest.mark.host, pytest.mark.second_lane]

SMALL = Levels(innodb_log_file_size="8388608", innodb_buffer_pool_size="33554432")


def request(bench: Bench, engine: str, inputs: dict[str, str], *runs: RunSpec) -> VisitRequest:
    asked: VisitRequest = bench.request(runs=runs)
    dataset = Dataset("sysbench", Levels(tables=2, table_size=1000))
    asked = replace(asked, dataset=dataset, inputs=inputs)
    if engine == "postgresql":
        return asked
    build = BuildLevels.unbuilt(engine)
    cell = replace(asked.cell, build=build, cluster=ClusterLevels(settings=SMALL))
    return replace(asked, cell=cell, build=PREPARATION.ensure(build, lambda _: None, tarball=None))


@pytest.fixture(scope="module")
def inputs() -> dict[str, str]:
    try:
        return dict(INPUTS.make(Dataset("sysbench", Levels({})), MadeAnyway(), lambda *_: None))
    except BedplateError as error:
        pytest.skip(f"the packages cannot be had here: {error}")


def run_of(script: str, **more: Any) -> RunSpec:
    return RunSpec(script, "sysbench", Levels(script=script, threads=2, warmup_s=1.0, duration_s=2.0, **more))


@pytest.mark.parametrize("engine", ["mariadb", "postgresql"])
def test_a_visit_loads_runs_and_is_read_back(bench: Bench, inputs: dict[str, str], engine: str) -> None:
    visit = bench.live(request(bench, engine, inputs, run_of("oltp_read_only"), run_of("oltp_read_write")))
    assert (Outcome.COMPLETED, ()) == (visit.outcome, visit.reasons)
    assert [] == bench.left_behind()
    assert "sysbench 1." in visit.provenance["tools"]
    assert visit.durability is not None
    for number, name in enumerate(visit.runs):
        directory = bench.directory / "runs" / name
        record = codec.read(RunRecord, directory / "record.json")
        assert ["warmup", "measure"] == [phase.name for phase in record.phases]
        made = make_figures(bench.directory, directory)
        found = {figure.metric: figure.value for figure in made.figures}
        assert (found["tps"] or 0) > 0
        assert (found["latency_ms_p99"] or 0) > 0
        assert [True, 0.0] == [found["ignored_errors"] is not None, found["reconnects"]]
        assert (number > 0) == ((found["wal_kib_per_transaction"] or 0) > 0.1)
        # Seconds hold no checkpoint, and a test runs beside others.
        expected = {
            "read-write-without-a-checkpoint",
            "log-not-turned-over",
            "ignored-errors",
            OTHERS_AT_WORK.code,
            CACHES_DROPPED.code,
            # Of the disks that fail in tests beside this one.
            KERNEL_WARNING.code,
            THROTTLED_MACHINE.code,
        }
        assert {reason.code for reason in made.validity_reasons} <= expected
        assert ("buffer_pool_hit_ratio" in found) == (engine == "mariadb")
