"""A search with planted figures in a process of its own, for a test to kill: `python -m tests.support.studies.search_process FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.support.studies.planted_executor import PlantedExecutor
from tests.support.studies.search_lab import search_lab, truth

if __name__ == "__main__":
    with pytest.MonkeyPatch.context() as patch:
        search_lab(Path(sys.argv[1]), patch).play(PlantedExecutor(truth))
