"""`--cells` on `show`, `report` and `export`: one selection, as in `compare`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.support.studies.synthetic_study import Recipe, write_study

from bedplate.cli.app import call
from bedplate.errors import PlanError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    recipe = Recipe(filesystem_blocks=(4096,), database_blocks=(8192, 32768), repetitions=1, course_s=2)
    return write_study(tmp_path_factory.mktemp("cells") / "study", recipe)


def test_show_takes_it_more_than_once(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both = ("--cells", "type=xfs build.block_size=8k", "--cells", "type=xfs build.block_size=32k")
    assert 0 == call(["show", str(study), "--json", *both])
    (found,) = json.loads(capsys.readouterr().out)["studies"]
    assert {8192, 32768} == {cell["block_size_bytes"] for cell in found["cells"]}
    assert {"xfs"} == {cell["label"].split()[0] for cell in found["cells"]}


def test_report_and_export_take_it(study: Path, tmp_path: Path) -> None:
    words = ["--cells", "type=xfs", "-o"]
    assert 0 == call(["report", str(study), *words, str(tmp_path / "page.html")])
    assert "A selection, type=xfs: 2 of " in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert 0 == call(["export", str(study), *words, str(tmp_path / "rows.json")])
    rows = json.loads((tmp_path / "rows.json").read_text(encoding="utf-8"))["runs"]
    assert {"xfs"} == {row["filesystem"] for row in rows if not row["canary"]}


@pytest.mark.parametrize("command", ["show", "report", "export"])
def test_a_filter_that_selects_nothing_writes_nothing(command: str, study: Path, tmp_path: Path) -> None:
    output = [] if command == "show" else ["-o", str(tmp_path / "out.json")]
    with pytest.raises(PlanError, match="nowhere 'zfs'"):
        call([command, str(study), "--cells", "type=zfs", *output])
    assert not list(tmp_path.iterdir())


def test_a_class_and_several_factors_are_chosen_together_and_xfs_stays(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = ("--cells", "class=durable barrier=yes type=ext4,xfs")
    assert 0 == call(["show", str(study), "--json", *chosen])
    (found,) = json.loads(capsys.readouterr().out)["studies"]
    assert ["ext4", "ext4", "xfs", "xfs"] == sorted(cell["label"].split()[0] for cell in found["cells"])
    kept = (
        "kept although no barrier can be asked of them, as what was chosen holds there anyway: 2 cells (xfs)"
    )
    assert kept in found["marks"]
    for command in (
        ["compare", "--baseline", "type=ext4", "--contender", "type=xfs"],
        ["effects"],
        ["advise"],
    ):
        assert 0 == call([command[0], str(study), *command[1:], *chosen])
        assert "kept although no barrier" in capsys.readouterr().out.replace("\n", " ").lower()


def test_what_a_choice_passes_over_is_said(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == call(["show", str(study), "--json", "--cells", "barrier=no"])
    (found,) = json.loads(capsys.readouterr().out)["studies"]
    assert "passed over, as no barrier can be asked of them: 4 cells (btrfs, xfs)" in found["marks"]
