"""A study of several nodes: named wherever figures stand, compared within a node, incomplete where it is."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.studies.synthetic_study import MACHINE, Recipe, write_study

from bedplate.analysis.comparison import ComparisonQuestion, answer
from bedplate.analysis.fleet import fleet_marks, folded, incomplete_nodes
from bedplate.analysis.overview import overview, study_health
from bedplate.errors import StudyError
from bedplate.export.tables import export
from bedplate.export.workbook import about_sheet
from bedplate.model.codec import write
from bedplate.model.machine import Machine, NodeFacts
from bedplate.page.static import page_shell
from bedplate.page.views import machines_view
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


def question() -> ComparisonQuestion:
    return ComparisonQuestion(baseline="type=ext4 barrier=yes", contender="type=xfs", workload="read-only")


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
    assert any("incomplete on n2 (1 of 3 repetitions)" in note.sentence for note in cell.notes)
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
    assert ("n0" if count == 1 else "n[0-5]") in mark
    assert len(mark) < 250


def with_facts(study: Path, machines: Mapping[str, Machine]) -> Path:
    """The same study with what was found about its nodes."""
    for name, machine in machines.items():
        file = study / "fleet" / "nodes" / f"{name}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        write(file, NodeFacts(name, machine, firmware="ACME 1.2"))
    return study


def test_each_kind_of_node_has_a_column_and_those_that_are_alike_share_one(tmp_path: Path) -> None:
    study = with_facts(
        on_nodes(tmp_path / "s"),
        {
            **{f"n{number:02d}": replace(MACHINE, hostname=f"host{number}") for number in range(1, 13)},
            "big": replace(MACHINE, hostname="tower", memory_bytes=64 * 2**30, tunables={"smt": "on"}),
        },
    )
    view = machines_view([overview(study)])
    assert (("node big",), ("nodes n[01-12]",)) == view.heads
    facts = {fact.name: fact.values for fact in view.facts}
    assert ("tower", "host[1-12]") == facts["Host"]
    assert "64 GiB, pages of 4 KiB" == facts["Memory"][0]
    assert ("ACME 1.2", "ACME 1.2") == facts["Firmware"]
    assert "Scratch device" not in facts
    place = page_shell([overview(study)])["places"][0][1]
    assert place.startswith("node big: ")
    assert "64 GiB of memory" in place
    assert "; nodes n[01-12]: " in place
    about = {getattr(cell, "value", cell) for row in about_sheet(overview(study)).rows for cell in row}
    assert {"node big", "nodes n[01-12]", "64 GiB"} <= about


def test_a_fleet_and_one_machine_that_are_alike_stand_in_columns_of_their_own(tmp_path: Path) -> None:
    fleet = overview(with_facts(on_nodes(tmp_path / "fleet"), {"n1": MACHINE}))
    write_study(tmp_path / "alone", RECIPE)
    assert (("fleet: node n1",), ("alone",)) == machines_view([fleet, overview(tmp_path / "alone")]).heads


def test_an_export_names_the_node_of_every_run_and_what_the_nodes_are(tmp_path: Path) -> None:
    study = with_facts(on_nodes(tmp_path / "s"), {"n1": MACHINE, "n2": replace(MACHINE, cpu_count=96)})
    export(study, tmp_path / "all.json")
    tables = json.loads((tmp_path / "all.json").read_text())
    assert {1: "n1", 2: "n2"} == {
        row["repetition"]: row["node"] for row in tables["runs"] if row["repetition"] < 3
    }
    assert [("n1", MACHINE.cpu_count), ("n2", 96)] == [
        (row["node"], row["cpu_count"]) for row in tables["nodes"]
    ]
    assert dict(MACHINE.tunables) == json.loads(tables["nodes"][0]["tunables"])
    export(study, tmp_path / "tables", ["csv"])
    assert (tmp_path / "tables" / "nodes.csv").read_text().count("\n") == 3


def test_a_study_of_one_machine_has_no_table_of_nodes(tmp_path: Path) -> None:
    write_study(tmp_path / "s", RECIPE)
    export(tmp_path / "s", tmp_path / "all.json")
    tables = json.loads((tmp_path / "all.json").read_text())
    assert "nodes" not in tables
    assert {None} == {row["node"] for row in tables["runs"]}


def test_facts_of_a_node_that_cannot_be_read_are_named_with_the_way_out(tmp_path: Path) -> None:
    study = with_facts(on_nodes(tmp_path / "s"), {"n1": MACHINE})
    (study / "fleet" / "nodes" / "n1.json").write_text("{")
    with pytest.raises(StudyError, match=r"n1\.json"):
        read_study(study)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("n1",), "n1"),
        (("n1", "n2"), "n1, n2"),
        (("n1", "n2", "n3"), "n[1-3]"),
        (("n9", "n10", "n11"), "n[9-11]"),
        (("n08", "n09", "n10", "m3"), "n[08-10], m3"),
        (("n1", "n3", "n5"), "n1, n3, n5"),
        (("a", "b", "c"), "a, b, c"),
        (tuple("abcdefghij"), "a, b, c, d, e, f, g, h and 2 more"),
    ],
)
def test_names_are_folded_as_slurm_writes_them(names: tuple[str, ...], words: str) -> None:
    assert words == folded(names)
