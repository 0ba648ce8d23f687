"""The script for the ext4 list shows on this kernel what its text says; and leaves nothing behind."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

pytestmark = [pytest.mark.host, pytest.mark.third_lane]

UPSTREAM = Path(__file__).resolve().parents[2] / "docs" / "upstream"
AGAIN = "A written: fsync fails, No space left on device\nB written: fsync succeeds\n"


def printed(script: str, *words: str) -> str:
    done = subprocess.run(["sh", UPSTREAM / script, *words], check=False, capture_output=True, text=True)
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "first_byte"),
    [
        (("ext4", "written"), "B"),
        (("ext4", "appended", "dioread_lock"), "B"),
        (("xfs", "appended"), "B"),
    ],
)
def test_a_second_write_is_there_where_it_must_be(words: tuple[str, ...], first_byte: str) -> None:
    said = printed("ext4-failed-first-write.sh", *words)
    assert AGAIN in said
    assert said.split()[-1] == first_byte


def test_whatever_ext4_does_with_its_defaults_the_script_comes_to_its_end() -> None:
    # Zeros on the kernels of the text; a kernel that was mended says B.
    said = printed("ext4-failed-first-write.sh", "ext4", "appended")
    assert AGAIN in said
    assert said.split()[-1] in ("\\0", "B")


def test_a_script_that_cannot_go_on_leaves_no_folder_and_no_loop_device(tmp_path: Path) -> None:
    folder = tmp_path / "eio"
    said = printed("postgresql-eio.sh", str(tmp_path), str(folder), "xfs", "off")
    assert said
    assert not folder.exists()
    loops = subprocess.run(
        ["losetup", "--list", "--noheadings", "--output", "BACK-FILE"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert str(folder) not in loops.stdout
