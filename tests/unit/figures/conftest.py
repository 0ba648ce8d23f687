"""The log reader, built once for the session from the repository's source."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from bedplate.host.command import Commands
from bedplate.host.native_driver import COMPILER, ensure_driver

if TYPE_CHECKING:
    from pathlib import Path


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
