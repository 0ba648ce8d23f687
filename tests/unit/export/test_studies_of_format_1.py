"""Studies of format 1, in which a reason was its sentence, are shown, reported and exported as those of today."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.studies.planted_reasons import planted
from tests.support.studies.synthetic_power_cuts import power_cut_study
from tests.support.studies.synthetic_study import Recipe, write_study
from tests.support.studies.synthetic_tpch import TpchRecipe, synthetic_tpch_study

from bedplate.analysis.overview import overview
from bedplate.export.tables import export
from bedplate.model import codec
from bedplate.model.reason import FULL_PAGE_WRITES_OFF, UNCLASSIFIED
from bedplate.model.visit import VisitRecord
from bedplate.page.document import page_document
from bedplate.study.stored import read_study
from bedplate.terminal.tables import show_document

if TYPE_CHECKING:
    from collections.abc import Callable

SMALL = Recipe(
    filesystem_blocks=(4096,),
    database_blocks=(8192,),
    course_s=5,
    failed=((0, 1),),
    suspect=((1, 2),),
    missing=((2, 1),),
)
_TORN = "full_page_writes = off: a page torn by the cut cannot be repaired from the WAL"


def as_in_format_1(value: Any) -> Any:
    """The same document as bedplate wrote it before reasons had codes."""
    if isinstance(value, dict):
        if value.keys() == {"code", "sentence", "values"}:
            return value["sentence"]
        if "format_version" in value:
            value = {**value, "format_version": 1}
        return {key: as_in_format_1(entry) for key, entry in value.items()}
    return [as_in_format_1(entry) for entry in value] if isinstance(value, list) else value


def to_format_1(study: Path, pattern: str = "**/*.json") -> Path:
    for path in study.glob(pattern):
        path.write_text(json.dumps(as_in_format_1(json.loads(path.read_text()))))
    return study


def everything_said(study: Path, output: Path) -> dict[str, Any]:
    """What `show --json`, the page and the export have of a study."""
    (exported,) = export(study, output)
    return {
        "show": show_document([study]),
        "page": page_document([overview(study)]),
        "export": json.loads(exported.read_text()),
    }


def pgbench(path: Path) -> Path:
    return write_study(path, SMALL)


def tpch(path: Path) -> Path:
    return synthetic_tpch_study(path, TpchRecipe(failed=((0, 2, "warm"),)))


def power_cuts(path: Path) -> Path:
    return power_cut_study(path, refused="xfs")


@pytest.mark.parametrize("write", [pgbench, tpch, power_cuts])
def test_it_says_what_one_of_today_says(tmp_path: Path, write: Callable[[Path], Path]) -> None:
    study = write(tmp_path / "study")
    expected = everything_said(study, tmp_path / "today.json")
    assert '"sentence"' in "".join(path.read_text() for path in study.glob("**/*.json"))
    # One repetition, and then all of it.
    for pattern in ("visits/*/*/1.1/**/*.json", "**/*.json"):
        to_format_1(study, pattern)
        assert expected == everything_said(study, tmp_path / "then.json"), pattern


def test_its_reasons_are_unclassified(tmp_path: Path) -> None:
    found = read_study(to_format_1(pgbench(tmp_path / "study")))
    failed = [visit.record for visit in found.visits if visit.record.reasons]
    doubted = [run for visit in found.visits for run in visit.runs if run.validity_reasons]
    assert failed
    assert doubted
    assert {UNCLASSIFIED} == {reason.code for record in failed for reason in record.reasons}
    assert {UNCLASSIFIED} == {reason.code for run in doubted for reason in run.validity_reasons}


def test_a_sentence_that_decided_decides_as_before(tmp_path: Path) -> None:
    study = power_cut_study(tmp_path / "study")
    for path in study.glob("visits/*/*/*/visit.json"):
        record = codec.read(VisitRecord, path)
        assert record.durability is not None
        torn = planted(_TORN, code=FULL_PAGE_WRITES_OFF)
        declared = replace(
            record.durability, volatile_cache="unsafe", protected_cache="unknown", reasons=torn
        )
        codec.write(path, replace(record, durability=declared))
    expected = [cell.durability for cell in overview(study).cells.values()]
    to_format_1(study)
    assert expected == [cell.durability for cell in overview(study).cells.values()]
    assert any(
        "weighted cuts that tear a page are too few" in reason.sentence
        for each in expected
        if each is not None
        for reason in each.reasons
    )
