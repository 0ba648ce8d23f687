"""A search on real file systems through the real command line: killed, gone on with, and extended to the factorial."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest
from tests.support.studies.study_lab import Lab, identities
from tests.support.tools.patience import AT_MOST_S

from bedplate.study.stored import read_study

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.host, pytest.mark.third_lane]

# Half of the four cells have no barriers, and are left out before the first visit.
TYPES = ('type = "ext4"', 'type = { vary = ["ext4", "xfs"] }\nbarrier = { vary = [true, false] }')
ASKED = ("--best", "tps", "--run", "read-only", "--budget", "10min")


def search(lab: Lab, plan: Path, *words: str) -> subprocess.Popen[str]:
    return lab.start("search", plan, "--study", lab.study, *words)


def test_a_killed_search_goes_on_from_its_records_and_extends_to_all_cells(lab: Lab) -> None:
    plan = lab.plan(TYPES)
    finished: dict[str, tuple[int, int]] = {}
    # The first falls into the making of the study, the others into visits, figures and between blocks.
    for seconds in (1.3, 4.0, 9.0, 14.0):
        process = search(lab, plan, *ASKED)
        try:
            process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        now = identities(lab.study) if (lab.study / "visits").is_dir() else {}
        assert finished == {path: now.get(path) for path in finished}
        finished = now
    status = json.loads(lab.call("show", lab.study, "--status", "--json"))
    assert status["search"]["ending"] is None
    assert 600 == status["search"]["budget_s"]

    # What was begun needs no question; another one is refused.
    said, _ = (process := search(lab, plan, "--best", "latency_ms_p99")).communicate(timeout=AT_MOST_S)
    assert 2 == process.returncode, said
    assert "--best: the study was begun with tps, not latency_ms_p99" in said
    assert "is a search; `bedplate search PLAN" in lab.run(plan, status=2)
    said, _ = (process := search(lab, plan)).communicate(timeout=AT_MOST_S)
    assert 0 == process.returncode, said
    assert [] == lab.left_behind()
    assert "2 cells: unsafe after a power cut" in said
    assert "DEVICE DIRECTORY" in said
    after = identities(lab.study)
    assert finished == {path: after.get(path) for path in finished}

    study = read_study(lab.study)
    assert () == (*study.set_aside, *study.changed)
    places = [(v.cell_id, v.repetition) for v in study.schedule.visits]
    assert len(set(places)) == len(places)
    assert 2 == len({cell for cell, _ in places})
    status = json.loads(lab.call("show", lab.study, "--status", "--json"))
    assert status["search"]["ending"] in {"this one", "one of these", "not known"}
    assert status["search"]["spent_s"] <= 600

    said = lab.call("run", lab.study, "--repetitions", "2")
    assert [] == lab.left_behind()
    extended = read_study(lab.study)
    made = {(v.record.key.cell, v.record.key.repetition) for v in extended.visits}
    assert {(cell, repetition) for cell in extended.schedule.cells for repetition in (1, 2)} <= made
    assert set(places) <= made
    assert "search" not in json.loads(lab.call("show", lab.study, "--status", "--json"))
    lab.call("show", lab.study)


def test_an_interrupted_search_gives_everything_back(lab: Lab) -> None:
    plan = lab.plan(TYPES)
    process = lab.start_until("[2/2]", "search", plan, "--study", lab.study, *ASKED)
    os.killpg(process.pid, signal.SIGINT)
    said, _ = process.communicate(timeout=AT_MOST_S)
    assert 130 == process.returncode, said
    assert [] == lab.left_behind()
    assert 1 <= len(lab.visits()) <= 2
