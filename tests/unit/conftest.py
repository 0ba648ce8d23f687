"""What holds for every test that touches no machine."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True, scope="session")
def _no_power_is_cut() -> Iterator[None]:
    """Thousands of small studies are written, and each waited for its disk. A wrong descriptor is still an error."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: os.fstat(file if isinstance(file, int) else file.fileno()))
        yield
