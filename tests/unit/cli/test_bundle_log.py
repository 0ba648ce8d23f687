"""The log of a bundle: what was blamed and the cut are always in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.tools.written_log import Written, written_log
from tests.unit.model.test_fault_of_a_cut import IN_ORDER, LOST, WRITE

from bedplate.cuts.blame import BlameEvidence, Found
from bedplate.cuts.log import read_log
from bedplate.cuts.records import CutPoint, Placement, Profile
from bedplate.workloads.power_cut import bundle
from bedplate.workloads.power_cut.bundle import _log_lines

LATE = replace(IN_ORDER, mended_by=replace(WRITE, entry=90), writes_until_mended=1)


def lost(*entries: int) -> BlameEvidence:
    return replace(LOST, smallest=tuple(replace(WRITE, entry=entry) for entry in entries))


@pytest.mark.parametrize(
    ("evidence", "position", "expected"),
    [
        # A lost write that was on its way at the cut has a number behind it.
        (lost(62), 60, [*range(40, 60), "# the cut", 60, 61, 62]),
        (lost(59), 60, [*range(39, 60), "# the cut"]),
        (
            lost(10, 95),
            97,
            ["# 10 entries left out", 10, "# 66 entries left out", *range(77, 97), "# the cut"],
        ),
        (LATE, 60, [*range(40, 60), "# the cut", "# 22 entries left out", *range(82, 91)]),
    ],
)
def test_the_cut_and_what_is_blamed_are_there_and_what_is_left_out_is_said(
    evidence: BlameEvidence,
    position: int,
    expected: Sequence[int | str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bundle, "_LOG_LINES_MOST", 9 if "left out" in str(expected) else 2000)
    written = [Written(0, 16 * number, b"x" * 512) for number in range(100)]
    with read_log(written_log(tmp_path / "log", written)) as log:
        point = CutPoint(7, position, Profile.ORDERED, Placement.UNIFORM, seed=0)
        _, *lines = _log_lines(log, Found(evidence, point))
    assert expected == [line if line.startswith("#") else int(line.split()[0]) for line in lines]
    blamed = [int(line.split()[0]) for line in lines if " LOST 0+8192: " in line or " TOO LATE: " in line]
    late = () if evidence.mended_by is None else (evidence.mended_by,)
    assert [write.entry for write in (*evidence.smallest, *late)] == blamed
