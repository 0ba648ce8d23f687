"""What is left of a killed server in shared memory goes, and nothing of a living one."""

from __future__ import annotations

import os
import struct
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


def test_what_a_living_server_has_noted_stays_although_nobody_maps_it_now(tmp_path: Path) -> None:
    segments, process = tmp_path / "shm", tmp_path / "proc/7"
    segments.mkdir()
    process.mkdir(parents=True)
    table, other = segments / "PostgreSQL.3000000001", segments / "PostgreSQL.77"
    table.write_bytes(
        struct.pack("=IIIxxxxIIQ", 0x9A503D32, 2, 64, 3000000001, 1, 0) + struct.pack("=I", 4711)
    )
    # A segment of any other content names nobody.
    other.write_bytes(struct.pack("=II", 1, 4712))
    for number in ("4711", "4712", "99999999999", "own"):
        (segments / f"PostgreSQL.{number}").touch()
    (process / "maps").write_text(f"7f00-7f10 rw-s 0 00:19 5 {table}\n7f20-7f30 rw-s 0 00:19 6 {other}\n")
    assert (segments / "PostgreSQL.4712",) == remove_orphaned_segments(
        os.getuid(), 0.0, directory=segments, proc=tmp_path / "proc"
    )
