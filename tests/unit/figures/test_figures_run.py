from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.studies.planted_reasons import planted

from bedplate.errors import StudyError
from bedplate.figures.run import make_figures
from bedplate.model import codec
from bedplate.model.cell import RunSpec
from bedplate.model.visit import Outcome, RunRecord

RECORD = RunRecord(RunSpec("ro", "pgbench"), Outcome.NOT_RUN, planted("the server had died before this run"))


def test_a_run_without_a_record_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"record\.json cannot be read"):
        make_figures(tmp_path, tmp_path)


def test_a_run_of_a_visit_without_a_record_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codec.write(tmp_path / "record.json", RECORD)
    read: list[str] = []
    read_bytes = codec.read_bytes

    def noted(path: Path) -> bytes:
        read.append(path.name)
        return read_bytes(path)

    monkeypatch.setattr(codec, "read_bytes", noted)
    with pytest.raises(StudyError, match=r"visit\.json cannot be read"):
        make_figures(tmp_path, tmp_path)
    # Each of them once: figures are made of the record that named their workload.
    assert ["record.json", "visit.json"] == read
    assert ["record.json"] == [path.name for path in tmp_path.iterdir()]


def test_an_unknown_workload_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    codec.write(tmp_path / "record.json", replace(RECORD, spec=RunSpec("q", "tpcx")))
    with pytest.raises(StudyError, match="known are pgbench"):
        make_figures(tmp_path, tmp_path)
