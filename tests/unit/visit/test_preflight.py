"""What keeps a visit from beginning, told before anything is touched."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from bedplate.visit.life import closed_state

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.model.visit import VisitRequest


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state directory, not made yet, in a folder whose every parent lets others through."""
    for parent in (tmp_path, *tmp_path.parents):
        mode = parent.stat().st_mode & 0o777
        if not mode & 0o001:
            parent.chmod(mode | 0o001)
    (tmp_path / "home").mkdir(mode=0o700)
    return tmp_path / "home" / "state"


def said_of(state: Path, engine: str) -> list[str]:
    cell = SimpleNamespace(build=SimpleNamespace(engine=engine))
    return closed_state(cast("VisitRequest", SimpleNamespace(cell=cell, state_directory=str(state))))


def test_a_state_directory_that_the_server_cannot_enter_is_refused_with_the_way_out(state: Path) -> None:
    first, out = said_of(state, "postgresql")
    assert first.startswith(f"{state.parent} (mode 0700) lets no other account through")
    assert "BEDPLATE_STATE" in out


def test_a_reachable_state_directory_and_an_engine_without_a_server_are_not_refused(state: Path) -> None:
    assert [] == said_of(state, "lmdb")
    state.parent.chmod(0o755)
    assert [] == said_of(state, "postgresql")
