from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bedplate.host import cache
from bedplate.host.cache import lock_of, make_once, put_in_place, work_place
from bedplate.host.files import file_lock


def tree(folder: Path) -> Path:
    (folder / "a/b").mkdir(parents=True)
    (folder / "file").write_text("1")
    (folder / "a/b/file").write_text("2")
    (folder / "a/link").symlink_to("/no/such")
    return folder


def test_everything_is_on_disk_before_it_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = tree(tmp_path / "fresh")
    synced: list[tuple[str, bool]] = []

    def fsync(file: int) -> None:
        name = str(Path(f"/proc/self/fd/{file}").readlink()).removeprefix(f"{tmp_path}")
        synced.append((name, fresh.exists()))

    monkeypatch.setattr(os, "fsync", fsync)
    put_in_place(fresh, tmp_path / "place")
    before = {name for name, was_fresh in synced if was_fresh}
    assert before == {"/fresh", "/fresh/a", "/fresh/a/b", "/fresh/file", "/fresh/a/b/file"}
    assert synced[-1] == ("", False)
    assert (tmp_path / "place/a/b/file").read_text() == "2"


def test_what_was_there_is_replaced_and_no_file_stays_open(tmp_path: Path) -> None:
    (tmp_path / "place/half").mkdir(parents=True)
    before = len(list(Path("/proc/self/fd").iterdir()))
    put_in_place(tree(tmp_path / "fresh"), tmp_path / "place")
    assert before == len(list(Path("/proc/self/fd").iterdir()))
    assert sorted(path.name for path in (tmp_path / "place").iterdir()) == ["a", "file"]
    assert not (tmp_path / "fresh").exists()


def test_a_power_cut_before_the_end_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(file: int) -> None:
        raise OSError(5, f"no disk for {file}")

    (tmp_path / "place").mkdir()
    (tmp_path / "place/old").touch()
    monkeypatch.setattr(os, "fsync", cut)
    with pytest.raises(OSError, match="no disk"):
        put_in_place(tree(tmp_path / "fresh"), tmp_path / "place")
    assert (tmp_path / "place/old").exists()


# One that makes a folder of two files, and dies before its call number KILL_AT that changes a file system.
_MAKER = """
import os, signal, sys
from pathlib import Path
from bedplate.host.cache import make_once, put_in_place

folder, kill_at, calls = Path(sys.argv[1]), int(sys.argv[2]), 0

def kill(event, arguments):
    global calls
    if event in ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree") or (
        event == "open" and str(folder.parent) in str(arguments[0])
    ):
        calls += 1
        if calls == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

def make(work):
    (work / "image").write_text("whole")
    (work / "record").write_text("whole")
    put_in_place(work, folder)
    with open(folder.parent.parent / "makers", "a") as makers:
        makers.write("one\\n")
    return folder

def read():
    whole = (folder / "record").is_file() and (folder / "image").is_file()
    return folder if whole else None

sys.addaudithook(kill)
make_once(folder, read, make)
"""


def maker(folder: Path, *, kill_at: int = 0) -> subprocess.Popen[bytes]:
    source = str(Path(cache.__file__).parents[2])
    argv = [sys.executable, "-S", "-c", _MAKER, str(folder), str(kill_at)]
    return subprocess.Popen(argv, env={**os.environ, "PYTHONPATH": source})


def whole(folder: Path) -> Path | None:
    return folder if (folder / "record").is_file() and (folder / "image").is_file() else None


def made(work: Path, folder: Path) -> Path:
    for name in ("image", "record"):
        (work / name).write_text("whole")
    put_in_place(work, folder)
    return folder


def ensure(folder: Path) -> Path:
    return make_once(folder, lambda: whole(folder), lambda work: made(work, folder))


def is_whole(folder: Path) -> bool:
    return ["whole", "whole"] == [(folder / name).read_text() for name in ("image", "record")]


@pytest.mark.parametrize("is_half_there", [False, True])
def test_whoever_is_killed_anywhere_leaves_a_whole_folder_or_none(
    tmp_path: Path, is_half_there: bool
) -> None:
    for kill_at in range(1, 100):
        folder = tmp_path / str(kill_at) / "kind/name"
        if is_half_there:
            folder.mkdir(parents=True)
            (folder / "image").touch()
        status = maker(folder, kill_at=kill_at).wait()
        if (folder / "record").exists():
            assert is_whole(folder)
        assert is_whole(ensure(folder))
        assert {".name.lock", "name"} == {path.name for path in folder.parent.iterdir()}
        if status == 0:
            # It ended before it was to be killed: all its calls were tried.
            assert kill_at > 10
            return
    pytest.fail("a maker has more calls than were tried")


def test_of_those_that_ask_at_once_one_makes_it(tmp_path: Path) -> None:
    folder = tmp_path / "kind/name"
    # Both wait for it, so that they begin together.
    with file_lock(lock_of(folder)):
        both = [maker(folder) for _ in range(2)]
    assert [0, 0] == [process.wait() for process in both]
    assert is_whole(folder)
    assert "one\n" == (tmp_path / "makers").read_text()


def test_a_full_disk_ends_it_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "kind/name"

    def full(file: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(file))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        ensure(folder)
    assert [lock_of(folder)] == list(folder.parent.iterdir())
    monkeypatch.undo()
    assert folder == ensure(folder)
    assert [lock_of(folder), folder] == sorted(folder.parent.iterdir())


def test_work_of_the_living_stays_and_that_of_the_killed_goes(tmp_path: Path) -> None:
    dead, living = tmp_path / ".work-dead", tmp_path / ".work-living"
    for work in (dead, living):
        work.mkdir()
        lock_of(work).touch()
    with file_lock(lock_of(living)), work_place(tmp_path / "mine") as mine:
        assert [] == list(mine.iterdir())
        assert not dead.exists()
        assert living.exists()
    assert not mine.exists()


def test_a_file_takes_its_place_as_a_folder_does(tmp_path: Path) -> None:
    (tmp_path / "driver").write_text("old")
    (tmp_path / "fresh").write_text("new")
    put_in_place(tmp_path / "fresh", tmp_path / "driver")
    assert "new" == (tmp_path / "driver").read_text()
    assert not (tmp_path / "fresh").exists()
