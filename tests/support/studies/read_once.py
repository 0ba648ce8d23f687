"""Studies that many tests only look at are read once: again only where something in their folder has changed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bedplate.analysis.overview import overview_of
from bedplate.study.stored import read_study

if TYPE_CHECKING:
    from typing import TypeAlias

    from bedplate.analysis.overview import Overview
    from bedplate.study.stored import Study

    State: TypeAlias = frozenset[tuple[str, int, int, int]]


@contextmanager
def read_once() -> Iterator[None]:
    """Within it `overview` gives back what it gave for the same folder in the same state; errors are found anew."""
    studies: dict[tuple[Path, State], Study] = {}
    overviews: dict[int, Overview] = {}

    def read(path: Path) -> Study:
        asked = path, state_of(path)
        if asked not in studies:
            studies[asked] = read_study(path)
        return studies[asked]

    def summarise(study: Study) -> Overview:
        # By its identity: as long as its overview is kept, so is the study.
        if id(study) not in overviews:
            overviews[id(study)] = overview_of(study)
        return overviews[id(study)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bedplate.analysis.overview.read_study", read)
        patch.setattr("bedplate.analysis.overview.overview_of", summarise)
        yield


def state_of(path: Path) -> State:
    """What is in a folder: of everything its path, its inode, its size and when it was last touched."""
    return frozenset(
        (place, found.st_ino, found.st_size, found.st_ctime_ns)
        for folder, _, names in os.walk(path)
        for place in (folder, *(f"{folder}/{name}" for name in names))
        for found in (os.lstat(place),)
    )


@pytest.fixture(autouse=True, scope="module")
def studies_read_once() -> Iterator[None]:
    """For each module of a room whose conftest imports it."""
    with read_once():
        yield
