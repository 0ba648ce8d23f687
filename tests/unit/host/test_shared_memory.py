"""What is left of a killed server in shared memory goes, and nothing of a living one."""

from __future__ import annotations

import os
from pathlib import Path

from bedplate.host.shared_memory import remove_orphaned_segments


def test_only_what_nobody_has_mapped_and_that_account_made_since_goes(tmp_path: Path) -> None:
    segments, process = tmp_path / "shm", tmp_path / "proc/7"
    segments.mkdir()
    process.mkdir(parents=True)
    for name in ("PostgreSQL.1", "PostgreSQL.2", "other"):
        (segments / name).touch()
    (process / "maps").write_text(
        f"7f00-7f10 rw-s 00000000 00:19 5                          {segments}/PostgreSQL.2\n7ff0-7ff1 rw-p 0 00:00 0\n"
    )
    made_s = (segments / "PostgreSQL.1").stat().st_ctime
    places = {"directory": segments, "proc": tmp_path / "proc"}
    assert () == remove_orphaned_segments(os.getuid() + 1, 0.0, **places)
    assert () == remove_orphaned_segments(os.getuid(), made_s + 1, **places)
    assert (segments / "PostgreSQL.1",) == remove_orphaned_segments(os.getuid(), made_s - 1, **places)
    assert ["PostgreSQL.2", "other"] == sorted(path.name for path in segments.iterdir())
