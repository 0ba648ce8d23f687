"""A neighbour of a recovery that cannot see what is renamed says so: without it fewer states would be cut, and no one knew."""

from __future__ import annotations

import ctypes
import errno
import os
from typing import TYPE_CHECKING, Any

import pytest

from bedplate.errors import BedplateError
from bedplate.workloads.power_cut.tearing import NameCommits

if TYPE_CHECKING:
    from pathlib import Path


class _Library:
    """The C library of a machine whose user has no watch left, or where a folder is gone."""

    def __init__(self, code: int) -> None:
        self._code = code

    def inotify_init1(self, _flags: int) -> int:
        return os.eventfd(0)  # nothing ever happens

    def inotify_add_watch(self, *_: object) -> int:
        ctypes.set_errno(self._code)
        return -1


def refused_with(code: int, place: Path, monkeypatch: pytest.MonkeyPatch) -> NameCommits:
    library: Any = _Library(code)
    monkeypatch.setattr("ctypes.CDLL", lambda *_, **__: library)
    return NameCommits(place, place / "neighbour")


def test_a_user_without_a_watch_left_is_told_which_limit_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = os.listdir("/proc/self/fd")  # noqa: PTH208 -- numbers, not paths
    with (
        pytest.raises(BedplateError, match=r"max_user_watches"),
        refused_with(errno.ENOSPC, tmp_path, monkeypatch),
    ):
        pass
    assert before == os.listdir("/proc/self/fd")  # noqa: PTH208


def test_any_other_refusal_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        pytest.raises(BedplateError, match=os.strerror(errno.ENOMEM)),
        refused_with(errno.ENOMEM, tmp_path, monkeypatch),
    ):
        pass


@pytest.mark.parametrize("code", [errno.ENOENT, errno.EACCES, errno.ENOTDIR])
def test_a_folder_that_is_gone_or_closed_has_no_names_that_change(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with refused_with(code, tmp_path, monkeypatch):
        pass


def test_a_name_that_changes_is_committed(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    old = tmp_path / "data" / "old"
    old.touch()
    with NameCommits(tmp_path / "data", tmp_path / "neighbour"):
        old.rename(tmp_path / "data" / "new")
        # What was renamed before the end is seen at the end, however late the thread comes.
    assert (tmp_path / "neighbour").exists()
