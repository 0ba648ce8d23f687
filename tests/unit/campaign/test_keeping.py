"""A visit gets its place when nobody writes in it any more."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.unit.study.test_store import create, schedule, write_record

from bedplate.campaign import start
from bedplate.campaign.start import keep
from bedplate.errors import RequirementMissing
from bedplate.host.process import writers_below
from bedplate.model import codec
from bedplate.model.visit import VisitRecord
from bedplate.study.stored import read_study

if TYPE_CHECKING:
    from pathlib import Path


def hold(path: Path, mode: str) -> subprocess.Popen[str]:
    """A process that has a file open until its standard input ends."""
    program = f"import sys; file = open(sys.argv[1], {mode!r}); print('open', flush=True); sys.stdin.read()"
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert "open\n" == process.stdout.readline()
    return process


def test_who_writes_is_named_and_who_reads_is_not(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    log = tmp_path / "logs" / "server.log"
    log.touch()
    with hold(log, "a") as writer, hold(log, "r") as reader:
        (sentence,) = writers_below(tmp_path)
        assert sentence.startswith(f"process {writer.pid} (python")
        assert str(log) in sentence
        writer.communicate()
        assert () == writers_below(tmp_path)
        reader.communicate()


def test_a_visit_in_which_a_process_writes_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start, "_WRITERS_LIMIT_S", 0.0)
    visit = schedule().visits[0]
    with create(tmp_path / "s") as store, store.attempt(visit) as attempt:
        write_record(attempt, visit)
        record = codec.read(VisitRecord, attempt.directory / "visit.json")
        with hold(attempt.directory / "server.log", "a") as writer:
            with pytest.raises(RequirementMissing, match=f"process {writer.pid} .* still writes"):
                keep(attempt, record, seconds_before=1.0)
            writer.communicate()
        kept, _ = keep(attempt, record, seconds_before=1.0)
        attempt.finish()
    assert kept.sealed
    assert [kept] == [found.record for found in read_study(tmp_path / "s").visits]
