"""What is said of cells whose cuts were bad with a cache that asks less than that of the device, or that nothing cut with its own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.support.studies.synthetic_power_cuts import (
    DATASET,
    RECIPE,
    controls,
    points_of,
    power_cut_study,
    write_points,
)

from bedplate.analysis.answer import fitted, headline, headline_lines
from bedplate.analysis.mail import mail_text
from bedplate.analysis.overview import Overview, overview
from bedplate.cuts.records import POINTS_FILE, PointOutcome, PointRecord, Profile

if TYPE_CHECKING:
    from pathlib import Path


def cut_otherwise(place: Path, begin: str, points: list[PointRecord]) -> Overview:
    """A study of power cuts on a device whose sectors nothing tells, with these points in place of those of one cell."""
    study = power_cut_study(place / "study", recipe=replace(RECIPE, runs=(), repetitions=1))
    (run,) = study.glob(f"visits/{begin}-*/{DATASET.id}/*/runs/*")
    write_points(run / POINTS_FILE, points)
    return overview(study)


def said(found: Overview) -> str:
    return "\n".join(fitted(headline_lines(headline(found)), columns=200, most=None))


def test_what_sectors_of_4_kib_corrupt_is_no_promise_of_the_settings_where_sectors_are_smaller(
    tmp_path: Path,
) -> None:
    """Every cut that left 512-byte sectors was good, of those that left whole blocks half were silently corrupt."""
    bad = points_of({Profile.SUBSET_4K: PointOutcome.SILENT})
    found = cut_otherwise(tmp_path, "xfs", [*bad, *controls()])
    words = said(found)
    assert "corrupt on xfs (10 of 20 cuts)" in words
    assert "promise: xfs" not in words
    (row,) = (line for line in mail_text(headline(found)).splitlines() if line.startswith("xfs "))
    assert ["xfs", "10", "of", "20,", "<", "73", "%", "unsafe"] == row.split()


def test_what_was_cut_with_another_cache_alone_is_open_and_said_so(tmp_path: Path) -> None:
    in_order = [each for each in points_of({}, count=160) if each.point.profile is Profile.ORDERED]
    found = cut_otherwise(tmp_path, "xfs", [*in_order, *controls()])
    cuts = headline(found).cuts
    assert cuts is not None
    assert [each.split("-")[0] for each in cuts.not_asked] == ["xfs"]
    assert not cuts.of_others
    assert "xfs: power was cut, but never with a volatile cache, 512-byte sectors." in said(found)
