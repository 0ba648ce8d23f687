from __future__ import annotations

import os
from pathlib import Path

from bedplate.host.pages import direct_files


def test_files_opened_with_direct_io_below_the_directory_are_found(tmp_path: Path) -> None:
    data, proc = tmp_path / "data", tmp_path / "proc"
    (proc / "7/fd").mkdir(parents=True)
    (proc / "7/fdinfo").mkdir()
    (proc / "self").mkdir()
    # A process that has ended has no files.
    (proc / "8").mkdir()
    for number, (path, flags) in enumerate(
        (
            (data / "base/1", os.O_RDWR | os.O_DIRECT),
            (data / "wal", os.O_RDWR),
            (tmp_path / "database/1", os.O_RDWR | os.O_DIRECT),
        )
    ):
        (proc / f"7/fd/{number}").symlink_to(path)
        (proc / f"7/fdinfo/{number}").write_text(f"pos:\t0\nflags:\t0{flags:o}\nmnt_id:\t1\n")
    # Closed between the two readings.
    (proc / "7/fd/9").symlink_to(data / "gone")
    assert frozenset({data / "base/1"}) == direct_files(data, proc=proc)
