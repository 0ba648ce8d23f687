"""A study of several nodes: named wherever figures stand, compared within a node, incomplete where it is."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.synthetic_study import Recipe, write_study

from bedplate.report.compared import Question, answer
from bedplate.report.fleet import fleet_marks, incomplete_nodes
from bedplate.report.overview import overview
from bedplate.report.study_health import study_health
from bedplate.study.stored import read_study

RECIPE = Recipe(filesystem_blocks=(4096,), database_blocks=(8192,), repetitions=6, canaries=2)


def on_nodes(
    directory: Path,
    nodes: tuple[str, ...] = ("n1", "n2"),
    *,
    changes: Mapping[str, Mapping[str, str]] | None = None,
    boots: Mapping[str, str] | None = None,
    recipe: Recipe = RECIPE,
) -> Path:
    """The synthetic study as a fleet would have lived it; `changes` to the provenance of a node's visits."""
    write_study(directory, recipe)
    file = directory / "schedule.json"
    schedule = json.loads(file.read_text())
    for visit in schedule["visits"]:
        visit["node"] = nodes[(visit["repetition"] - 1) % len(nodes)]
    file.write_text(json.dumps(schedule))
    for path in directory.glob("visits/*/*/*/visit.json"):
        record: dict[str, Any] = json.loads(path.read_text())
        node = nodes[(record["key"]["repetition"] - 1) % len(nodes)]
        record["provenance"] |= {"node": node, **(changes or {}).get(node, {})}
        record["boot_id"] = (boots or {}).get(node, f"boot of {node}")
        path.write_text(json.dumps(record))
    return directory


def question() -> Question:
    return Question(baseline="type=ext4 barrier=yes", contender="type=xfs", workload="read-only")


def test_the_nodes_are_named_beside_every_figure(tmp_path: Path) -> None:
    marks = overview(on_nodes(tmp_path / "s")).marks
    assert any("2 nodes (n1, n2)" in mark and "a node is a block" in mark for mark in marks)
    assert not any("one machine" in mark for mark in marks)


def test_a_study_of_one_machine_says_nothing_of_nodes(tmp_path: Path) -> None:
    write_study(tmp_path / "s", RECIPE)
    study = read_study(tmp_path / "s")
    assert () == fleet_marks(study)
    assert {} == incomplete_nodes(study)


def test_nodes_that_are_one_machine_show_logic_and_no_speed(tmp_path: Path) -> None:
    marks = overview(on_nodes(tmp_path / "s", boots={"n1": "same", "n2": "same"})).marks
    assert any("nodes n1, n2 are one machine" in mark and "no speed" in mark for mark in marks)


def test_nodes_that_differ_are_compared_each_within_itself(tmp_path: Path) -> None:
    study = on_nodes(tmp_path / "s", changes={"n1": {"kernel": "6.1"}, "n2": {"kernel": "6.12"}})
    found = overview(study)
    assert all(() == cell.incomparable for cell in found.cells.values())
    (compared,) = answer([found], question()).compared
    assert () == compared.incomparable
    assert compared.comparison.basis is not None
    assert 6 == compared.comparison.n
    assert any(note.startswith("by node: n1 ") and "n2 " in note for note in compared.notes)


def test_a_node_that_changed_within_a_study_is_told(tmp_path: Path) -> None:
    study = on_nodes(tmp_path / "s", changes={"n1": {"kernel": "6.1"}})
    path = next(path for path in study.glob("visits/*/*/1.1/visit.json") if "canary" not in str(path))
    record = json.loads(path.read_text())
    record["provenance"]["kernel"] = "another"
    path.write_text(json.dumps(record))
    assert any(cell.incomparable for cell in overview(study).cells.values())


def test_what_is_missing_on_a_node_is_declared_and_not_filled_up(tmp_path: Path) -> None:
    study = on_nodes(tmp_path / "s")
    xfs = next(path for path in study.glob("visits/*") if path.name.startswith("xfs"))
    for path in xfs.glob("*/2.1"):
        shutil.rmtree(path)
    found = overview(study)
    (cell,) = [cell for cell in found.cells.values() if cell.incomplete]
    assert xfs.name == cell.id
    assert ("n2 (1 of 3 repetitions)",) == cell.incomplete
    assert any("incomplete on n2 (1 of 3 repetitions)" in note for note in cell.notes)
    (compared,) = answer([found], question()).compared
    # Only repetitions that both have, each on one node.
    assert 5 == compared.comparison.n


def test_a_slow_node_is_no_drift(tmp_path: Path) -> None:
    recipe = Recipe(filesystem_blocks=(4096,), database_blocks=(8192,), repetitions=8, canaries=0)
    study = on_nodes(tmp_path / "s", recipe=recipe)
    for path in study.glob("visits/*/*/*/runs/*/run.json"):
        run = json.loads(path.read_text())
        repetition = int(path.parents[2].name.partition(".")[0])
        # The first node has the first half of the time, the second one is half as fast.
        if repetition > 4:
            for row in run["figures"]:
                if row["metric"] == "tps" and row["value"]:
                    row["value"] /= 2
            path.write_text(json.dumps(run))
    file = study / "schedule.json"
    schedule = json.loads(file.read_text())
    for visit in schedule["visits"]:
        visit["node"] = "n1" if visit["repetition"] <= 4 else "n2"
    file.write_text(json.dumps(schedule))
    for path in study.glob("visits/*/*/*/visit.json"):
        record = json.loads(path.read_text())
        record["provenance"]["node"] = "n1" if record["key"]["repetition"] <= 4 else "n2"
        path.write_text(json.dumps(record))
    health = study_health(overview(study))
    assert not any(series.changed for series in health.series if not series.is_canary)


@pytest.mark.parametrize("count", [1, 12])
def test_many_nodes_are_named_in_short(tmp_path: Path, count: int) -> None:
    nodes = tuple(f"n{number}" for number in range(count))
    (mark,) = fleet_marks(read_study(on_nodes(tmp_path / "s", nodes)))[:1]
    assert "n0" in mark
    assert len(mark) < 250
