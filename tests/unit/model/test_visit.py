from __future__ import annotations

from dataclasses import replace

import pytest
from tests.support.studies.planted_reasons import planted

from bedplate.model.cell import (
    BuildLevels,
    Cell,
    ClusterLevels,
    Dataset,
    DeviceLevels,
    FilesystemLevels,
    KernelLevels,
)
from bedplate.model.levels import Levels
from bedplate.model.visit import FORMAT_VERSION, CheckOutcome, Outcome, VisitKey, VisitRecord

CELL = Cell(DeviceLevels(), KernelLevels(), FilesystemLevels("xfs"), BuildLevels(), ClusterLevels())
DATASET = Dataset("pgbench", Levels(scale=1))
FAILED = VisitRecord(
    format_version=FORMAT_VERSION,
    key=VisitKey(CELL.id, DATASET.id, 1, 1),
    cell=CELL,
    dataset=DATASET,
    outcome=Outcome.FAILED,
    reasons=planted("fsck found errors after a clean unmount: bad magic number"),
    failed_step="check",
    started_wall_s=1.0,
    seconds=1.0,
    boot_id="b",
    executor="local",
    filesystem_check="bad magic number",
    filesystem_check_outcome=CheckOutcome.ERRORS,
)


@pytest.mark.parametrize(
    ("errors", "record"),
    [
        (True, FAILED),
        (True, replace(FAILED, failed_step="clean-up")),
        (False, replace(FAILED, filesystem_check_outcome=CheckOutcome.COULD_NOT_RUN)),
        (False, replace(FAILED, filesystem_check_outcome=CheckOutcome.CLEAN, failed_step="clean-up")),
        # Older records have no outcome of the check.
        (True, replace(FAILED, filesystem_check_outcome=None)),
        (False, replace(FAILED, filesystem_check_outcome=None, filesystem_check=None)),
        (
            False,
            replace(FAILED, filesystem_check_outcome=None, filesystem_check="clean", failed_step="unmount"),
        ),
    ],
)
def test_errors_of_the_file_system_are_told_by_codes_and_never_by_the_sentence(
    errors: bool, record: VisitRecord
) -> None:
    assert errors is record.found_errors
