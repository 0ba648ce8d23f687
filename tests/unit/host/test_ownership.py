"""What sudo made belongs to who called it, and nothing else does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bedplate.host.ownership import first_made, give_to_caller, make_for_caller

Chowned = list[tuple[str, int, int, bool]]


@pytest.fixture
def chowned(monkeypatch: pytest.MonkeyPatch) -> Chowned:
    """Root by name only: what would be given is written down."""
    given: Chowned = []

    def chown(
        name: str | Path, uid: int, gid: int, *, dir_fd: int | None = None, follow_symlinks: bool = True
    ) -> None:
        given.append((Path(name).name, uid, gid, follow_symlinks))

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "chown", chown)
    monkeypatch.setenv("SUDO_UID", "1000")
    monkeypatch.setenv("SUDO_GID", "1001")
    return given


def test_everything_below_is_given_and_links_are_not_followed(tmp_path: Path, chowned: Chowned) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("")
    study = tmp_path / "study"
    (study / "visits" / "a").mkdir(parents=True)
    (study / "visits" / "a" / "visit.json").write_text("")
    (study / "link").symlink_to(outside)
    os.link(outside / "secret", study / "twice")
    give_to_caller(study)
    assert {"study", "visits", "a", "visit.json", "link"} == {name for name, *_ in chowned}
    assert {(1000, 1001, False)} == {rest for _, *numbers in chowned for rest in [tuple(numbers)]}


def test_a_link_in_place_of_the_study_is_not_entered(tmp_path: Path, chowned: Chowned) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("")
    (tmp_path / "study").symlink_to(tmp_path / "outside")
    give_to_caller(tmp_path / "study")
    assert ["study"] == [name for name, *_ in chowned]


@pytest.mark.parametrize(
    ("uid", "gid"), [("", "1"), ("x", "1"), ("0", "0"), ("-1", "5"), ("1000", ""), ("1000", "-3")]
)
def test_without_a_caller_nothing_is_given(
    tmp_path: Path, chowned: Chowned, monkeypatch: pytest.MonkeyPatch, uid: str, gid: str
) -> None:
    monkeypatch.setenv("SUDO_UID", uid)
    monkeypatch.setenv("SUDO_GID", gid)
    give_to_caller(tmp_path)
    assert [] == chowned


def test_without_root_nothing_is_given(
    tmp_path: Path, chowned: Chowned, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    give_to_caller(tmp_path)
    assert [] == chowned


def test_what_is_not_there_is_not_given(tmp_path: Path, chowned: Chowned) -> None:
    give_to_caller(tmp_path / "nothing")
    assert [] == chowned


def test_the_first_that_is_made_is_the_topmost_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tmp_path / "a" == first_made(tmp_path / "a" / "b" / "c")
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert tmp_path / "a" / "b" / "c" == first_made(tmp_path / "a" / "b" / "c")
    assert tmp_path / "a" / "b" == first_made(tmp_path / "a" / "b")
    monkeypatch.chdir(tmp_path)
    assert tmp_path / "x" == first_made(Path("x/y"))


def test_directories_are_given_as_they_are_made(tmp_path: Path, chowned: Chowned) -> None:
    make_for_caller(tmp_path / "new" / "deep" / "study")
    assert ["new", "deep", "study"] == [name for name, *_ in chowned]
    make_for_caller(tmp_path / "new" / "deep" / "study")
    assert 3 == len(chowned)


@pytest.fixture
def owned(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, chowned: Chowned) -> Path:
    """A directory of the caller's; what is made below it seems to be root's, whoever runs this test."""
    real = os.lstat

    def lstat(path: Path) -> os.stat_result:
        fields = list(real(path))
        fields[4] = 1000 if Path(path) == tmp_path else 0
        return os.stat_result(fields)

    monkeypatch.setattr("bedplate.host.ownership.os.lstat", lstat)
    return tmp_path


def test_what_a_killed_start_made_above_the_study_is_given_by_the_next(owned: Path) -> None:
    study = owned / "new" / "deep" / "study"
    study.mkdir(parents=True)
    assert owned / "new" == first_made(study)


def test_a_directory_with_anything_else_in_it_is_not_given(owned: Path) -> None:
    study = owned / "new" / "deep" / "study"
    study.mkdir(parents=True)
    (owned / "new" / "other").mkdir()
    assert study == first_made(study)


def test_directories_outside_of_the_callers_are_not_given(
    monkeypatch: pytest.MonkeyPatch, owned: Path
) -> None:
    study = owned / "new" / "study"
    study.mkdir(parents=True)
    monkeypatch.setenv("SUDO_UID", "1001")
    assert study == first_made(study)
