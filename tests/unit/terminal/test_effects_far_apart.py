"""Effects of levels that are a thousand times apart: a ratio is no nought."""

from __future__ import annotations

import math
import random
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.support.studies.known_study import KNOWN, Place, known_study
from tests.support.tools.command_line import call_here

if TYPE_CHECKING:
    from pathlib import Path

FAR = 2500.0


def speed(place: Place) -> float:
    noise = random.Random(f"{place.cell.id} {place.repetition}").gauss(0, 0.005)
    return 1000.0 * math.exp(noise) * {"xfs": FAR, "btrfs": 1 / FAR}.get(place.cell.filesystem.type, 1.0)


@pytest.mark.parametrize("command", ["effects", "compare"])
def test_ratios_that_are_very_small_or_large_are_told(command: str, tmp_path: Path) -> None:
    study = known_study(tmp_path / "study", speed, replace(KNOWN, database_blocks=(8192,), canaries=0))
    filters = ("--baseline", "type=ext4 barrier=yes", "--contender", "type=xfs,btrfs")
    said = call_here(command, study, *(filters if command == "compare" else ()), COLUMNS="160").stdout
    assert re.search(r"0\.000(39|40)\d", said)
    assert re.search(r"2,(49|50)\d", said)
    assert "0.000 " not in said
