"""Counting what a build has written, while it writes."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from bedplate.host.native_driver import count_objects, watched


def test_objects_are_counted_in_all_folders(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    for name in ("one.o", "a/two.o", "a/b/three.o", "a/b/four.so", "a/no"):
        (tmp_path / name).touch()
    assert 3 == count_objects(tmp_path)


def test_of_a_folder_that_was_there_what_is_written_since_counts(tmp_path: Path) -> None:
    for name, at_ns in (("old.o", 10), ("new.o", 30), ("just.o", 20), ("new.c", 30)):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, ns=(at_ns, at_ns))
    assert 2 == count_objects(tmp_path, since_ns=20)


def test_growing_count_is_reported_while_the_block_runs_and_never_after(tmp_path: Path) -> None:
    seen: list[int] = []
    arrived = threading.Event()

    def report(count: int) -> None:
        seen.append(count)
        if count == 1:
            arrived.set()

    with watched(lambda: count_objects(tmp_path), report, interval_s=0.001):
        (tmp_path / "one.o").touch()
        assert arrived.wait(30)
    after = len(seen)
    (tmp_path / "two.o").touch()
    assert not [thread for thread in threading.enumerate() if thread.name == "count of progress"]
    assert after == len(seen)
