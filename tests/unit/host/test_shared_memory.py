"""What is left of a killed server in shared memory goes, and nothing of a living one."""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bedplate.host.ledger import is_in_use, remove_orphaned_segments


@contextmanager
def _mapped(path: Path) -> Iterator[None]:
    """Mapped and closed, as a server has its segments."""
    with path.open("r+b") as file:
        memory = mmap.mmap(file.fileno(), 0)
    with memory:
        yield


def test_only_what_nobody_has_mapped_and_that_account_made_since_goes(tmp_path: Path) -> None:
    for name in ("PostgreSQL.1", "PostgreSQL.2", "other"):
        (tmp_path / name).write_bytes(b"segment")
    made_s = (tmp_path / "PostgreSQL.1").stat().st_ctime
    with _mapped(tmp_path / "PostgreSQL.2"):
        assert () == remove_orphaned_segments(os.getuid() + 1, 0.0, directory=tmp_path)
        assert () == remove_orphaned_segments(os.getuid(), made_s + 1, directory=tmp_path)
        assert (tmp_path / "PostgreSQL.1",) == remove_orphaned_segments(
            os.getuid(), made_s - 1, directory=tmp_path
        )
        assert ["PostgreSQL.2", "other"] == sorted(path.name for path in tmp_path.iterdir())
    assert (tmp_path / "PostgreSQL.2",) == remove_orphaned_segments(os.getuid(), 0.0, directory=tmp_path)


def test_what_a_living_server_has_noted_stays_although_nobody_maps_it_now(tmp_path: Path) -> None:
    table, other = tmp_path / "PostgreSQL.3000000001", tmp_path / "PostgreSQL.77"
    table.write_bytes(
        struct.pack("=IIIxxxxIIQ", 0x9A503D32, 2, 64, 3000000001, 1, 0) + struct.pack("=I", 4711)
    )
    # A segment of any other content names nobody.
    other.write_bytes(struct.pack("=II", 1, 4712))
    for number in ("4711", "4712", "99999999999", "own"):
        (tmp_path / f"PostgreSQL.{number}").touch()
    with _mapped(table), _mapped(other):
        assert (tmp_path / "PostgreSQL.4712",) == remove_orphaned_segments(
            os.getuid(), 0.0, directory=tmp_path
        )


def test_a_file_that_is_only_read_is_in_use_and_a_link_is_never_followed(tmp_path: Path) -> None:
    held, free, link = tmp_path / "held", tmp_path / "free", tmp_path / "link"
    held.touch()
    free.touch()
    link.symlink_to(free)
    with held.open("rb"):
        assert is_in_use(held)
    assert not is_in_use(held)
    assert not is_in_use(tmp_path / "absent")
    assert is_in_use(link)
