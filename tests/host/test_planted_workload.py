"""A workload and an engine more are a folder and a line each: planted in a copy of the program, they run a study."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.studies.study_lab import SOURCES, Lab, study_lab

pytestmark = pytest.mark.host

PLANTED = Path(__file__).resolve().parents[1] / "planted"
LINES = {
    '    "power_cut": "bedplate.workloads.power_cut",\n': '    "brick": "bedplate.workloads.brick",\n',
    '    "none": "bedplate.engines.none",\n': '    "pile": "bedplate.engines.pile",\n',
}
PLAN = """
title = "Bricks"
repetitions = 3
[scratch_device]
image_size = "512 MB"
[[filesystem]]
type = { vary = ["ext4", "ext2"] }
[pile]
mortar = true
[[workload]]
type = "brick"
bricks = 200
[canary]
enabled = false
"""


def plant(program: Path) -> None:
    """The two folders, and a line for each; nothing else is touched."""
    shutil.copytree(PLANTED / "brick", program / "workloads" / "brick")
    shutil.copytree(PLANTED / "pile", program / "engines" / "pile")
    registry = program / "registry.py"
    text = registry.read_text()
    for after, line in LINES.items():
        assert 1 == text.count(after)
        text = text.replace(after, after + line)
    registry.write_text(text)


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with study_lab() as place:
        copied = place.base / "program"
        shutil.copytree(SOURCES / "src", copied / "src", ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("drivers", "plans", "requirements"):
            shutil.copytree(SOURCES / name, copied / name)
        plant(copied / "src" / "bedplate")
        place.environment["PYTHONPATH"] = str(copied / "src")
        (place.base / "bricks.toml").write_text(PLAN)
        place.run(place.base / "bricks.toml")
        yield place


def test_it_is_planned_and_run(lab: Lab) -> None:
    planned = json.loads(lab.call("plan", lab.base / "bricks.toml", "--json"))
    assert 2 == len(planned["cells"])
    assert {True} == {cell["levels"]["cluster.settings.mortar"] for cell in planned["cells"]}
    visits = lab.visits()
    assert 6 == len(visits)
    assert {"completed"} == {visit.outcome.value for visit in visits.values()}
    assert {("pile.mortar", True)} <= {
        (item.name, item.effective) for visit in visits.values() for item in visit.comparisons
    }


def test_every_reader_tells_of_it(lab: Lab) -> None:
    shown = lab.call("show", lab.study)
    assert "operations_per_s" in shown
    assert "lay" in shown
    found = json.loads(lab.call("show", lab.study, "--json"))
    rates = [
        run["metrics"]["operations_per_s"]["median"]
        for cell in found["studies"][0]["cells"]
        for run in cell["runs"]
    ]
    assert 2 == len(rates)
    assert all(rate > 0 for rate in rates)
    compared = lab.call("compare", lab.study, "--baseline", "type=ext4", "--contender", "type=ext2")
    assert "lay" in compared
    assert "operations_per_s" in compared
    lab.call("report", lab.study, "--output", lab.base / "page.html")
    assert "lay" in (lab.base / "page.html").read_text()
    lab.call("export", lab.study, "--output", lab.base / "tables")
    assert any("lay" in path.read_text() for path in (lab.base / "tables").glob("*.csv"))


def test_what_is_not_planted_is_an_error_that_says_so(lab: Lab) -> None:
    (lab.base / "stones.toml").write_text(PLAN.replace('"brick"', '"stone"'))
    said = lab.call("plan", lab.base / "stones.toml", status=2)
    assert (
        "workload[0].type: found 'stone'; expected pgbench, tpch, lmdb, bonnie, fio, power_cut, brick" in said
    )
