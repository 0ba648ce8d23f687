"""A visit writes by paths, as root, in a folder that may be a user's: no link there is followed, and no device opened."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.host, pytest.mark.second_lane]

_TRY = """
import os, sys
from pathlib import Path
from bedplate.host.mount import enter_own_namespaces, follow_no_links_below
place = Path(sys.argv[1])
enter_own_namespaces()
follow_no_links_below(place)
# They come once the visit runs.
(place / "file").symlink_to(sys.argv[2])
(place / "logs").rename(place / "former")
(place / "logs").symlink_to(Path(sys.argv[2]).parent)
os.mknod(place / "zero", 0o600 | 0o020000, os.makedev(1, 5))
for name in ("file", "logs/server.log", "zero"):
    try:
        (place / name).open("ab").close()
    except OSError as error:
        print(name, error.strerror)
(place / "former" / "server.log").write_text("ours")
(place / "former" / "server.log").rename(place / "record.json")
"""


def test_no_link_of_its_folder_is_followed(tmp_path: Path) -> None:
    place, outside = tmp_path / "visit", tmp_path / "outside"
    (place / "logs").mkdir(parents=True)
    outside.mkdir()
    (outside / "kept").write_text("theirs")
    sources = Path(__file__).parents[2] / "src"
    done = subprocess.run(
        [sys.executable, "-c", _TRY, str(place), str(outside / "kept")],
        env={"PYTHONPATH": str(sources), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "" == done.stderr
    assert ["file", "logs/server.log", "zero"] == [line.split()[0] for line in done.stdout.splitlines()]
    assert "theirs" == (outside / "kept").read_text()
    assert ["kept"] == [path.name for path in outside.iterdir()]
    assert "ours" == (place / "record.json").read_text()


def test_a_folder_that_is_a_link_by_now_ends_the_visit(tmp_path: Path) -> None:
    (tmp_path / "visit").symlink_to(tmp_path)
    script = "import sys; from pathlib import Path\nfrom bedplate.host.mount import follow_no_links_below\nfollow_no_links_below(Path(sys.argv[1]))\n"
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "visit")],
        env={"PYTHONPATH": str(Path(__file__).parents[2] / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "is a link, or no folder, by now" in done.stderr
