"""A story counts the study's own look at the cut among its own: what was found once is not told as steady."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.model.test_fault_of_a_cut import LOST

from bedplate.cli.power_cuts.blame import beside_record
from bedplate.model.power_cut import CutPoint, Placement, PointOutcome, PointRecord, Profile
from bedplate.model.power_cut_blame import Repeatability

POINT = CutPoint(7, 9, Profile.SUBSET_4K, Placement.UNIFORM, seed=1)
RECORD = PointRecord(POINT, PointOutcome.LOST, None, 0, 0, 0, 1)


@pytest.mark.parametrize("record", [None, RECORD])
def test_what_was_found_alike_is_steady(record: PointRecord | None) -> None:
    assert LOST == beside_record(LOST, record)


@pytest.mark.parametrize(
    "record",
    [
        replace(RECORD, outcome=PointOutcome.OK),
        replace(RECORD, outcome=PointOutcome.SILENT),
        replace(RECORD, failed_once="it did not mount"),
    ],
)
def test_what_was_found_otherwise_changes(record: PointRecord) -> None:
    found = beside_record(LOST, record)
    assert (Repeatability.CHANGES, False) == (found.steadiness, found.is_smallest)


def test_a_cut_that_was_not_bad_again_stays_so() -> None:
    again = replace(LOST, steadiness=Repeatability.NOT_BAD_AGAIN)
    assert again == beside_record(again, RECORD)
