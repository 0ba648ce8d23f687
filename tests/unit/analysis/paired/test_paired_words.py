"""The answer of a study of pairs: it names the margin that was asked for, with all its digits."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.support.studies.paired_lab import paired_lab, slower
from tests.support.studies.planted_executor import PlantedExecutor

from bedplate.analysis.paired import answer_lines

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_margin_with_half_a_per_cent_is_not_rounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = paired_lab(tmp_path, monkeypatch)
    lab.play(PlantedExecutor(slower(0.0), noise=0.001))
    found = lab.read()
    assert answer_lines(found)[0].startswith("Same within 5 %: ")
    finer = replace(found.lines[0], comparison=replace(found.lines[0].comparison, margin=0.025))
    assert answer_lines(replace(found, lines=(finer,)))[0].startswith("Same within 2.5 %: ")
    several = answer_lines(replace(found, lines=(finer,) * 4))
    assert any("and 1 more line, 1 of them known" in line for line in several)
