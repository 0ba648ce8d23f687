"""Pairs with planted figures in a process of its own, for a test to kill: `python -m tests.support.studies.paired_process FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.support.studies.paired_lab import paired_lab, slower
from tests.support.studies.planted_executor import PlantedExecutor

if __name__ == "__main__":
    with pytest.MonkeyPatch.context() as patch:
        paired_lab(Path(sys.argv[1]), patch).play(PlantedExecutor(slower(0.05), noise=0.04))
