"""What holds for every test that touches no machine."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from bedplate.host.command import Commands
from bedplate.host.native_driver import COMPILER, ensure_driver

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True, scope="session")
def _no_power_is_cut() -> Iterator[None]:
    """Thousands of small studies are written, and each waited for its disk. A wrong descriptor is still an error."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: os.fstat(file if isinstance(file, int) else file.fileno()))
        yield


@pytest.fixture(scope="session")
def log_reader(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled `bedplate-pgbench-log`."""
    if shutil.which(COMPILER) is None:
        pytest.skip(f"needs a C compiler ({COMPILER}): package gcc")
    return ensure_driver(
        "bedplate-pgbench-log",
        source=repository / "drivers/pgbench_log.c",
        cache_directory=tmp_path_factory.mktemp("drivers"),
        commands=Commands(),
    )
