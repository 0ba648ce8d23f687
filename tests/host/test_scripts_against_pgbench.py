"""The reader of scripts against pgbench: what pgbench takes for a command, the reader takes for one, in whatever surroundings.

pgbench reads all of its scripts before it looks for a server. So one without a server says whether it takes a script, and a command
that no pgbench has says where pgbench sees commands.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.sources.pgbench_scripts import COMMANDS, SQL, difference

pytestmark = pytest.mark.host


@pytest.fixture(scope="session")
def pgbench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The distribution's, else bedplate's own."""
    distributed = sorted(Path("/usr/lib/postgresql").glob("*/bin/pgbench"))
    if distributed:
        return distributed[-1]
    from tests.host.conftest import built  # noqa: PLC0415 -- it may build one

    return Path(built().prefix) / "bin" / "pgbench"


@settings(max_examples=1500, deadline=None, suppress_health_check=list(HealthCheck))
@given(parts=st.lists(st.sampled_from(COMMANDS) | st.sampled_from(SQL), min_size=1, max_size=14))
def test_the_reader_takes_what_pgbench_takes(
    pgbench: Path, parts: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    script = tmp_path_factory.getbasetemp() / "script.sql"
    assert difference("".join(parts), pgbench, script) is None
