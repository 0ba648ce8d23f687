"""A loop device that goes with its last user: what was written through its cache reaches the image when asked for."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from bedplate.host.devices.passing_loop import passing_loop, write_back

pytestmark = pytest.mark.host


def test_what_a_program_wrote_and_closed_is_in_the_image_once_written_back(tmp_path: Path) -> None:
    image = tmp_path / "image"
    image.write_bytes(bytes(1 << 20))
    text = b"LOGREDONE".ljust(4096, b".")
    with passing_loop(image) as loop:
        assert (loop.path, loop.size_bytes) == (f"/dev/{loop.name}", 1 << 20)
        device = os.open(loop.path, os.O_RDWR)
        try:
            assert os.pwrite(device, text, 8192) == len(text)
        finally:
            os.close(device)
        write_back(loop.path)
        assert image.read_bytes()[8192 : 8192 + 4096] == text


def test_a_mark_of_write_protection_that_another_left_behind_is_taken_off(tmp_path: Path) -> None:
    image = tmp_path / "image"
    image.write_bytes(bytes(1 << 20))
    with passing_loop(image) as loop:
        first = loop.path
        subprocess.run(["blockdev", "--setro", first], check=True)
    try:
        # The kernel gives the lowest free device, which others may have taken meanwhile.
        for _ in range(20):
            with passing_loop(image) as loop:
                ended = subprocess.run(
                    ["blockdev", "--getro", loop.path], check=True, capture_output=True, text=True
                )
                assert ended.stdout.strip() == "0"
                if loop.path == first:
                    break
    finally:
        subprocess.run(["blockdev", "--setrw", first], check=False)
