"""What these tests look at after each of them is theirs alone: others may leave what they like meanwhile."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.tools.left_in_memory import left_in_memory

from bedplate.host.ledger import SHARED_MEMORY
from bedplate.host.process import wait_until

pytestmark = pytest.mark.host

# A program that was killed with its namespace: the device alone keeps its file.
LEAVES = 'mount -t tmpfs none "$1"; truncate --size 1M "$1/image"; losetup --find --show "$1/image"'


@contextmanager
def left_loop(place: Path) -> Iterator[str]:
    """A loop device over a file below a place, whose mount is gone."""
    apart = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", LEAVES, "sh"]
    node = subprocess.check_output([*apart, str(place)], text=True).strip()
    try:
        yield f"{Path(node).name} over "
    finally:
        subprocess.run(["losetup", "--detach", node], check=True)


def has(start: str, place: Path | None) -> bool:
    return any(line.startswith(start) for line in left_in_memory(place))


def test_a_device_is_theirs_whose_file_was_below_their_place(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    ours = tmp_path_factory.getbasetemp()
    with left_loop(tmp_path) as start:
        assert wait_until(lambda: has(start, ours), deadline_s=60.0)
    with tempfile.TemporaryDirectory() as elsewhere, left_loop(Path(elsewhere)) as start:
        assert wait_until(lambda: has(start, None), deadline_s=60.0)
        assert not has(start, ours)


def test_their_shared_memory_is_seen_by_nobody_else() -> None:
    segment = SHARED_MEMORY / "PostgreSQL.1234567890"
    segment.touch()
    try:
        assert has(str(segment), None)
        assert not Path(f"/proc/{os.getppid()}/root{segment}").exists()
    finally:
        segment.unlink()
