"""A workload and an engine more are a folder and a line each: planted in a copy of the program, they run a study."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.studies.study_lab import SOURCES, Lab, study_lab

from bedplate.registry import WORKLOADS

pytestmark = [pytest.mark.host, pytest.mark.second_lane]

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
stone = "16 kB"
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
    assert {16384} == {cell["levels"]["cluster.settings.stone_bytes"] for cell in planned["cells"]}
    assert {True} == {cell["levels"]["cluster.settings.mortar"] for cell in planned["cells"]}
    visits = lab.visits()
    assert 6 == len(visits)
    assert {"completed"} == {visit.outcome.value for visit in visits.values()}
    for visit in visits.values():
        found = {item.name: (item.asked, item.effective) for item in visit.comparisons}
        assert (True, True) == found["pile.mortar"]
        # Chosen when it is made, and not when it is built.
        assert (16384, 16384) == found["pile.stone"]
        assert {"pile": "1"}.items() <= visit.versions.items()
        assert {"heap up", "server start", "server read back", "stop"} <= {
            each.step for each in visit.timings
        }


def test_every_reader_tells_of_it(lab: Lab) -> None:
    shown = lab.call("show", lab.study)
    assert "operations_per_s" in shown
    assert "lay" in shown
    found = json.loads(lab.call("show", lab.study, "--json"))
    rates = [
        run["metrics"]["operations_per_s"]["centre"]
        for cell in found["studies"][0]["cells"]
        for run in cell["runs"]
    ]
    assert 2 == len(rates)
    assert {16384} == {cell["block_size_bytes"] for cell in found["studies"][0]["cells"]}
    assert all(rate > 0 for rate in rates)
    compared = lab.call("compare", lab.study, "--baseline", "type=ext4", "--contender", "type=ext2")
    assert "lay" in compared
    assert "operations_per_s" in compared
    assert 2 == found["studies"][0]["walls"]


def test_it_has_a_section_of_the_page_and_a_table_of_the_export(lab: Lab) -> None:
    lab.call("report", lab.study, "--output", lab.base / "page.html")
    page = (lab.base / "page.html").read_text()
    assert '<li><a href="#walls">Walls</a></li>' in page
    assert page.index('<section id="courses"') < page.index('<section id="walls"')
    assert '<p class="note">2 walls.</p>' in page
    assert 'name: "walls"' in page
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page)
    document = json.loads(data)
    assert 2 == len(document["walls"])
    assert "bricks_in" in document["rules"]["templates"]
    lab.call("export", lab.study, "--output", lab.base / "tables")
    with (lab.base / "tables" / "walls.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert 6 == len(rows)
    assert {("lay", "200")} == {(row["run"], row["bricks"]) for row in rows}
    assert all(float(row["bricks_per_s"]) > 0 for row in rows)
    lab.call("export", lab.study, "--output", lab.base / "book.xlsx")


def test_what_is_not_planted_is_an_error_that_says_so(lab: Lab) -> None:
    (lab.base / "stones.toml").write_text(PLAN.replace('"brick"', '"stone"'))
    said = lab.call("plan", lab.base / "stones.toml", status=2)
    (expected,) = re.findall(r"workload\[0\].type: found 'stone'; expected (.*)", said)
    assert sorted((*WORKLOADS, "brick")) == sorted(expected.split(", "))
