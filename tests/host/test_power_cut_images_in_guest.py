"""A point's image is the same on a guest's kernel as on this one, bit for bit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.guests.guest_lab import GuestLab

from bedplate.executors.qemu.runner import GuestRunner

pytestmark = [pytest.mark.host, pytest.mark.second_lane]

HERE = Path(__file__).resolve().parent
# Runs in the guest in the place of a visit.
SCRIPT = """
import sys, tempfile
from pathlib import Path
sys.path[:0] = [{host!r}, {repository!r}]
from images_of_cuts import digests
with tempfile.TemporaryDirectory(dir="/dev/shm") as made:
    Path(sys.argv[2], "digests").write_text("\\n".join(digests(Path(made))))
Path(sys.argv[2], "visit.json").write_text("{{}}")
"""


def test_a_guests_kernel_builds_the_same_images(
    shared_guest: tuple[GuestLab, GuestRunner], tmp_path: Path
) -> None:
    here = subprocess.run(
        [sys.executable, str(HERE / "images_of_cuts.py"), str(tmp_path)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{HERE.parents[1] / 'src'}:{HERE.parents[1]}"},
    ).stdout.split()
    lab, executor = shared_guest
    directory = lab.live(executor, lab.run(SCRIPT.format(host=str(HERE), repository=str(HERE.parents[1]))))
    assert here == (directory / "digests").read_text().split()
    assert 24 == len(here)
    assert 14 < len(set(here))
