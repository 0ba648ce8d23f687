"""The writer of an own engine in a plan, and what is made of a run of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError
from tests.support.runs.raw_pgbench_run import Raw, values_of, write_raw

from bedplate.errors import OutputNotUnderstood
from bedplate.figures.run import make_figures
from bedplate.model import codec
from bedplate.model.cell import BuildLevels, Cell, ClusterLevels, RunSpec
from bedplate.model.levels import Levels
from bedplate.model.visit import RunRecord, Validity, VisitRecord
from bedplate.plan.load import load_plan
from bedplate.workloads.acks.model import SUMMARY_FILE, read_summary
from bedplate.workloads.acks.plan import AcksTable

ENGINE = 'name = "brickbase"\n'


def test_a_plan_comes_to_a_run_for_each_number_of_clients() -> None:
    asked = AcksTable.model_validate(
        {"type": "acks", "clients": {"vary": [1, 8]}, "warmup": 0, "duration": "5 s"}
    )
    assert (2, 1, ("own-engine",)) == (asked.run_count(), asked.dataset_count(), asked.engines())
    planned = asked.planned(1, 1)
    assert ["acks-clients-1", "acks-clients-8"] == [run.name for run in planned.runs]
    assert {"clients": 8, "warmup_s": 0, "duration_s": 5} == dict(planned.runs[1].levels)
    assert ["acks"] == [run.name for run in AcksTable.model_validate({"type": "acks"}).planned(1, 1).runs]
    with pytest.raises(ValidationError, match="duration"):
        AcksTable.model_validate({"type": "acks", "duration": "0 s"})


def test_the_ready_plan_has_its_speed_and_its_cuts(repository: Path) -> None:
    path = repository / "plans" / "own-engine.toml"
    plan = load_plan(path.read_text(encoding="utf-8"), source=str(path), directory=path.parent)
    assert ["acks", "power_cut"] == [workload.type for workload in plan.workloads]


def written(place: Path, *, summary: str | None = None) -> tuple[Path, Path]:
    """A raw run of an own engine: 60 s at a thousand acknowledgements a second."""
    visit, run = write_raw(place, Raw(checkpoints=()))
    found = codec.read(VisitRecord, visit / "visit.json")
    cell = Cell(
        found.cell.device,
        found.cell.kernel,
        found.cell.filesystem,
        BuildLevels.unbuilt("own-engine"),
        ClusterLevels(settings=Levels(name="brickbase"), configuration=ENGINE),
    )
    codec.write(visit / "visit.json", replace(found, cell=cell))
    record = codec.read(RunRecord, run / "record.json")
    spec = RunSpec("acks", "acks", Levels(clients=4, warmup_s=10.0, duration_s=60.0))
    facts = {
        "clients": 4,
        "duration_s_asked": 60.0,
        "cpu_count": 2,
        "database_bytes": 2**20,
        "reader_cpu_s": 0.5,
    }
    codec.write(run / "record.json", replace(record, spec=spec, facts=facts))
    text = "end 60000 60.000000 0 0.050000\n" if summary is None else summary
    (run / "logs" / SUMMARY_FILE).write_text(text)
    (visit / "logs" / "server.log").unlink()
    return visit, run


def test_an_acknowledgement_is_a_transaction_and_nothing_is_said_of_a_server(tmp_path: Path) -> None:
    made = make_figures(*written(tmp_path))
    assert (Validity.VALID, ()) == (made.validity, made.validity_reasons)
    found = values_of(made)
    assert 1000 == pytest.approx(found["tps"], rel=0.01)
    assert 0.4 == pytest.approx(found["device_flushes_per_transaction"], rel=0.01)
    assert 8.0 == pytest.approx(found["device_written_kib_per_transaction"], rel=0.01)
    assert 4.0 == pytest.approx(found["latency_ms_p50"], rel=0.01)
    of_a_server = {
        "shared_buffers_hit_ratio",
        "wal_kib_per_transaction",
        "checkpoints_timed",
        "tps_in_checkpoint",
    }
    assert not of_a_server & set(found)


@pytest.mark.parametrize(
    ("summary", "code"),
    [
        ("end 59999 60.000000 0 0.050000\n", "counts-differ"),
        ("end 60000 58.000000 0 0.050000\n", "window-too-short"),
        ("end 60000 60.000000 700 0.050000\n", "acknowledgements-read-late"),
        ("end 60000 60.000000 0 7.000000\n", "writer-fell-silent"),
    ],
)
def test_what_speaks_against_a_run_makes_it_suspect(tmp_path: Path, summary: str, code: str) -> None:
    made = make_figures(*written(tmp_path, summary=summary))
    assert Validity.SUSPECT is made.validity
    assert code in {reason.code for reason in made.validity_reasons}


def test_without_the_readers_last_line_nothing_is_known_for_sure(tmp_path: Path) -> None:
    made = make_figures(*written(tmp_path, summary=""))
    assert (Validity.UNKNOWN, {"input-unreadable"}) == (
        made.validity,
        {reason.code for reason in made.validity_reasons},
    )
    with pytest.raises(OutputNotUnderstood, match="the reader of the writer's pipe"):
        read_summary(tmp_path / "runs" / "01-rw" / "logs")
