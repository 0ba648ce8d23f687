"""What of the conclusions of 2011 a study of `vondra-2011-afternoon` is asked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.support.studies.known_study import KNOWN, Place, known_study
from tests.unit.analysis.test_claims import CLAIMS, speed

from bedplate.analysis.claims import Finding, judge_claims, load_claims
from bedplate.analysis.overview import overview
from bedplate.plan.load import load_plan


def afternoon_speed(place: Place) -> float:
    """The same of more file systems."""
    kind = place.cell.filesystem.type
    known = replace(place.cell.filesystem, type=kind if kind in {"xfs", "btrfs"} else "ext4")
    return speed(replace(place, cell=replace(place.cell, filesystem=known)))


def test_a_study_of_the_afternoon_is_asked_what_concerns_its_file_systems_and_runs(tmp_path: Path) -> None:
    path = CLAIMS[0].parents[1] / "plans" / "vondra-2011-afternoon.toml"
    plan = load_plan(path.read_text(encoding="utf-8"), source=path.name, directory=path.parent)
    cells = tuple(
        cell
        for cell in plan.cells()
        if cell.filesystem.features.get("data") in {None, "ordered"}
        and cell.filesystem.block_size_bytes in {None, 1024, 4096}
        and cell.build.block_size_bytes in {1024, 2048, 8192, 16384}
    )
    recipe = replace(KNOWN, runs=("read-write",), repetitions=3, cells=cells)
    study = known_study(tmp_path / "study", afternoon_speed, recipe)
    (vondra,) = (file for file in load_claims(CLAIMS) if "Vondra" in file.title)
    found = {
        each.claim.id: each
        for (judged,) in [judge_claims([overview(study)], [vondra]).judged]
        for each in judged
    }
    unmeasured = {name for name, each in found.items() if each.finding is Finding.NOT_MEASURED}
    assert {"reiserfs-read-only", "nilfs2-page-cache"} <= unmeasured
    assert {name for name in found if name.startswith(("tpch-", "ext4-loads-faster-tpch"))} <= unmeasured
    assert {name for name in found if name.startswith("read-only-")} <= unmeasured
    assert {
        "nodatacow-read-write",
        *("barriers-off-small-blocks", "barriers-off-spread", "barriers-small-differences"),
        *("no-barriers-best-block", "smallest-blocks-corner"),
    } <= set(found) - unmeasured
    assert Finding.HOLDS is found["no-barriers-best-block"].finding
