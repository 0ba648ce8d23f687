"""A study's directory by its descriptor: what has no place in it is refused by name, and no link is followed that comes later."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.unit.study.test_store import create, schedule

from bedplate.errors import StudyError
from bedplate.model import codec
from bedplate.model.limits import MOST_STUDY_LEVELS, names_in
from bedplate.study.layout import UNFINISHED, Folder, StudyLayout
from bedplate.study.store import StudyStore

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives a file to somebody else, which root alone may")
_OTHER = 12345


@pytest.fixture
def study(tmp_path: Path) -> Path:
    with create(tmp_path / "study"):
        return tmp_path / "study"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    place = tmp_path / "outside"
    place.mkdir()
    (place / "kept").write_text("theirs")
    return place


def reasons(study: Path, *, to_write: bool = False) -> tuple[str, ...]:
    with pytest.raises(StudyError) as caught:
        Folder.of_study(study, to_write=to_write)
    return caught.value.reasons


def test_a_link_to_the_study_itself_is_the_callers_own_way(study: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(study)
    with Folder.of_study(tmp_path / "link", to_write=True) as folder:
        assert folder.has(tmp_path / "link" / "study.json")


def test_a_relative_name_is_another_directory_in_another_place(
    study: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(study)
    Folder.of_study(Path()).close()
    assert "study.json" in names_in(Path())
    monkeypatch.chdir(outside)
    assert b"theirs" == codec.read_bytes(Path("kept"))


def test_notes_and_hidden_files_of_the_owner_may_be_there(study: Path) -> None:
    for name in (".DS_Store", "notes.txt", "visits/.hidden", ".plan.toml.swp"):
        (study / name).write_text("")
    Folder.of_study(study, to_write=True).close()


def test_all_that_is_strange_is_named_and_what_is_too_much_is_counted(study: Path) -> None:
    for number in range(25):
        (study / f"link-{number:02d}").symlink_to("/etc/passwd")
    said = reasons(study)
    assert 10 == sum("is a link" in reason for reason in said)
    assert "and 15 more" in said
    assert "nothing of" in said[-1]


def test_no_study_is_so_deep(study: Path) -> None:
    place = study
    for _ in range(MOST_STUDY_LEVELS + 60):
        place /= "d"
    place.mkdir(parents=True)
    assert any(f"is more than {MOST_STUDY_LEVELS} folders deep" in reason for reason in reasons(study))


@as_root
def test_a_study_of_somebody_else_is_read_and_not_written(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in (study, *study.rglob("*")):
        os.chown(path, _OTHER, _OTHER)
    Folder.of_study(study).close()
    assert f"{study} belongs to uid {_OTHER}" in reasons(study, to_write=True)[0]
    with pytest.raises(StudyError, match=f"belongs to uid {_OTHER}"):
        StudyStore.open(study)
    monkeypatch.setenv("SUDO_UID", str(_OTHER))
    monkeypatch.setenv("SUDO_GID", str(_OTHER))
    StudyStore.open(study).close()


@as_root
def test_what_a_killed_start_under_sudo_left_to_root_is_no_strangers(study: Path) -> None:
    os.chown(study, _OTHER, _OTHER)
    Folder.of_study(study).close()
    # Another name of a file of root's is.
    os.link(study / "plan.toml", study.with_name("shadow"))
    assert f"{study / 'plan.toml'} belongs to uid 0, the study to uid {_OTHER}" in reasons(study)


@as_root
def test_the_owners_of_a_visit_under_way_do_not_matter(study: Path) -> None:
    log = study / "visits" / "cell" / "data" / f"1.1{UNFINISHED}" / "logs" / "server.log"
    log.parent.mkdir(parents=True)
    log.write_text("")
    os.chown(log, _OTHER, _OTHER)
    Folder.of_study(study).close()
    finished = log.parent.parent.with_name("1.1")
    log.parent.parent.rename(finished)
    assert f"{finished / 'logs' / 'server.log'} belongs to uid {_OTHER}" in reasons(study)[0]


def test_a_lock_with_another_name_is_not_written(study: Path, outside: Path) -> None:
    (study / ".lock").unlink()
    os.link(outside / "kept", study / ".lock")
    with pytest.raises(StudyError, match="another name"):
        StudyStore.open(study)
    assert "theirs" == (outside / "kept").read_text()


@pytest.mark.parametrize("name", ["visits", "scratch", ".extension", ".extension.part", "plan"])
def test_a_link_that_comes_while_a_study_is_written_leads_nowhere(
    study: Path, outside: Path, name: str
) -> None:
    layout, visit = StudyLayout(study), schedule().visits[0]
    with StudyStore.open(study) as store:
        if (study / name).is_dir():
            shutil.rmtree(study / name)
        (study / name).symlink_to(outside)
        ways: dict[str, Callable[[], object]] = {
            "visits": lambda: ExitStack().enter_context(store.attempt(visit)),
            "scratch": lambda: store.scratch_directory,
        }
        files = {layout.plan_files / "a.sql": "select 1"}
        do = ways.get(name, lambda: store._put_in_place(store.facts, files))
        with pytest.raises((StudyError, OSError)):
            do()
    assert ["kept"] == [path.name for path in outside.iterdir()]
    assert "theirs" == (outside / "kept").read_text()


def test_a_visit_that_leaves_something_strange_is_kept_without_it(study: Path, outside: Path) -> None:
    visit = schedule().visits[0]
    with StudyStore.open(study) as store, store.attempt(visit) as attempt:
        (attempt.directory / "visit.json").write_text("{}")
        (attempt.directory / "logs").mkdir()
        (attempt.directory / "logs" / "link").symlink_to(outside)
        os.mkfifo(attempt.directory / "pipe")
        attempt.finish()
    place = store.layout.attempt(visit, 1)
    assert {"checksums.json", "logs", "visit.json"} == {path.name for path in place.iterdir()}
    said = (place / "logs" / "removed.txt").read_text()
    assert "logs/link was removed" in said
    assert "pipe was removed" in said
    assert ["kept"] == [path.name for path in outside.iterdir()]
    Folder.of_study(study, to_write=True).close()


def test_others_may_write_to_nothing_of_a_study_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with create(tmp_path / "study") as store, store.attempt(schedule().visits[0]) as attempt:
            _ = store.scratch_directory
            modes = {str(path): path.stat().st_mode for path in store.layout.directory.rglob("*")}
            modes[str(attempt.directory)] = attempt.directory.stat().st_mode
    finally:
        os.umask(before)
    assert [] == [name for name, mode in modes.items() if mode & (stat.S_IWGRP | stat.S_IWOTH)]


def test_a_record_is_written_beside_a_link_of_its_name(tmp_path: Path, outside: Path) -> None:
    for name in ("record.json", f".record.json.{os.getpid()}.part"):
        (tmp_path / name).symlink_to(outside / "kept")
    codec.write_text(tmp_path / "record.json", "ours")
    assert "ours" == (tmp_path / "record.json").read_text()
    assert not (tmp_path / "record.json").is_symlink()
    assert "theirs" == (outside / "kept").read_text()
