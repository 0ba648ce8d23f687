"""A story counts the study's own look at the cut among its own: what was found once is not told as steady."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.model.test_fault_of_a_cut import LOST

from bedplate.cli.cut_tools import _one_of_each
from bedplate.cuts.blame import Repeatability
from bedplate.cuts.records import CutPoint, Placement, PointOutcome, PointRecord, Profile, RecordingFacts
from bedplate.workloads.power_cut.cut_questions import beside_record

RECORDING = RecordingFacts(9, 0, 3, 3, 0, 9, 9, 1, 1.0, 9, 9, bound_ms=600.0)
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
    assert replace(LOST, steadiness=Repeatability.CHANGES) == beside_record(LOST, record)


def test_a_cut_that_was_not_bad_again_stays_so() -> None:
    again = replace(LOST, steadiness=Repeatability.NOT_BAD_AGAIN)
    assert again == beside_record(again, RECORD)


def test_a_loss_that_settings_allow_stands_for_no_other() -> None:
    allowed, other = replace(RECORD, lost_ms=100.0), replace(RECORD, lost_ms=4000.0)
    assert [allowed, other] == list(_one_of_each([allowed, other, other], RECORDING))
    assert [allowed] == list(_one_of_each([allowed, other], None))
