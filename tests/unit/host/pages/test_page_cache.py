"""What of files is in the page cache, found and put there again by a process of its own."""

from __future__ import annotations

import mmap
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from bedplate.host.interruption import arrive
from bedplate.host.pages import CachedFile, cached_files, cached_ranges, read_into_cache
from bedplate.host.process import end_process, wait_until, wait_until_gone

# Those who run tests in parallel have threads; a visit has none when it reads.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
PAGE = mmap.PAGESIZE
PAGES = 64


@pytest.fixture
def place() -> Iterator[Path]:
    """On a file system that forgets its pages: in memory, where tests may lie, everything is there for good."""
    for candidate in ("/var/tmp", "."):
        if not os.access(candidate, os.W_OK):
            continue
        with TemporaryDirectory(prefix="bedplate-page-cache-", dir=candidate) as name:
            probe = written(Path(name) / "probe")
            forgets = not cached_ranges(probe)
            probe.unlink()
            if forgets:
                yield Path(name)
                return
    pytest.skip("no folder here is on a file system that forgets its pages")


def written(path: Path) -> Path:
    """A file of 64 pages of which none is cached."""
    path.write_bytes(os.urandom(PAGES * PAGE))
    forget(path)
    return path


def forget(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR)
    # The unit tests' os.fsync does nothing, and what is dirty cannot be forgotten.
    subprocess.run(["sync", str(path)], check=True)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def test_what_was_read_is_found_forgotten_and_put_there_again(place: Path) -> None:
    path = written(place / "table")
    ranges = ((3 * PAGE, 2 * PAGE), (40 * PAGE, PAGE))
    read_into_cache(place, (CachedFile("table", ranges),), lambda: None)
    assert ranges == cached_ranges(path)
    found = cached_files(place)
    assert (CachedFile("table", ranges),) == found
    forget(path)
    assert () == cached_files(place)
    read_into_cache(place, found, lambda: None)
    assert found == cached_files(place)


def test_the_file_that_was_written_last_is_the_last(place: Path) -> None:
    names = ("b", "a", "c")
    for order, name in enumerate(names):
        (place / name).write_bytes(b"x")
        os.utime(place / name, ns=(0, order))
    (place / "empty").touch()
    (place / "link").symlink_to("a")
    assert names == tuple(file.path for file in cached_files(place))


def test_the_reader_is_in_the_group_and_a_file_that_is_gone_is_left_out(tmp_path: Path) -> None:
    mark = tmp_path / "mark"

    def enter() -> None:
        mark.write_text(str(os.getpid()))

    read_into_cache(tmp_path, (CachedFile("gone", ((0, PAGE),)),), enter)
    assert str(os.getpid()) != mark.read_text()


def test_a_group_that_cannot_be_entered_is_said(tmp_path: Path) -> None:
    def refuse() -> None:
        raise OSError("no such group")

    with pytest.raises(OSError, match="no such group"):
        read_into_cache(tmp_path, (), refuse)


def test_a_visit_that_is_abandoned_while_its_reader_reads_leaves_no_reader(tmp_path: Path) -> None:
    # Whoever opens it waits for a writer, as for a disk that is slow.
    os.mkfifo(tmp_path / "slow")
    mark = tmp_path / "mark"

    def enter() -> None:
        mark.write_text(str(os.getpid()))
        os.kill(os.getppid(), signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, lambda *_: arrive(KeyboardInterrupt()))
    try:
        with pytest.raises(KeyboardInterrupt):
            read_into_cache(tmp_path, (CachedFile("slow", ((0, PAGE),)),), enter)
    finally:
        signal.signal(signal.SIGUSR1, before)
    reader = int(mark.read_text())
    there = Path(f"/proc/{reader}").exists()
    if there:
        end_process(reader)
    assert not there


# Its reader says who it is once it has written where its descriptors lead.
VISIT_WITH_A_LOCK = """
import fcntl, os, pathlib, sys
from bedplate.host.pages import CachedFile, read_into_cache

place = pathlib.Path(sys.argv[1])
lock = open(place / "lock", "w")
fcntl.flock(lock, fcntl.LOCK_EX)


def enter():
    descriptors = ["/proc/self/fd/" + name for name in os.listdir("/proc/self/fd")]
    (place / "held").write_text(" ".join(os.readlink(each) for each in descriptors if os.path.islink(each)))
    (place / "new").write_text(str(os.getpid()))
    (place / "new").rename(place / "reader")


read_into_cache(place, (CachedFile("slow", ((0, 4096),)),), enter)
"""


def test_the_reader_of_a_killed_visit_ends_with_it_and_holds_none_of_its_locks(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "slow")
    reader = tmp_path / "reader"
    visit = subprocess.Popen([sys.executable, "-c", VISIT_WITH_A_LOCK, tmp_path])
    try:
        assert wait_until(reader.exists, deadline_s=60.0)
    finally:
        visit.kill()
        visit.wait()
    gone = wait_until_gone((int(reader.read_text()),), deadline_s=30.0)
    end_process(int(reader.read_text()))
    assert gone
    assert str(tmp_path / "lock") not in (tmp_path / "held").read_text().split()
