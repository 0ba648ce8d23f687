"""What a job leaves in its folders is its user's: it is read up to a limit, and no link in it is followed, least of all by root."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.support.studies.planted_places import LINKS, OWN_WORDS, make_outside, planted, seen_from

from bedplate.errors import EXIT_REQUIREMENT_MISSING
from bedplate.executors.slurm import fleet_run, on_node
from bedplate.executors.slurm.job_folder import FAILURE, end_of_log, words_of_failure
from bedplate.executors.slurm.payload import STARTED, WHOLE
from bedplate.host.ledger import ReleaseReport
from bedplate.model import codec

_NOBODY = 65534
_HOLES_BYTES = 20 * 1024**3
_ROOT_WRITES = (STARTED, "facts.json", "released.txt")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    return make_outside(tmp_path / "outside")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """That of one thing that a job does; a test that is root gives it to a user, as whom nothing runs."""
    made = tmp_path / "job" / "001"
    (made / "logs").mkdir(parents=True)
    return made


@pytest.mark.parametrize("kind", LINKS)
def test_no_link_of_a_job_is_read(folder: Path, outside: Path, kind: str) -> None:
    with planted(folder / FAILURE, kind, outside):
        assert f"{folder / FAILURE} cannot be read: it is a link" == words_of_failure(folder)
    with planted(folder / WHOLE, kind, outside):
        assert 0.0 == fleet_run._whole_seconds(folder)
    with planted(folder / "job.log", kind, outside):
        assert end_of_log(folder / "job.log", 100) is None


def test_a_file_of_a_job_is_read_up_to_its_limit(folder: Path) -> None:
    for name in (FAILURE, WHOLE, "job.log"):
        (folder / name).touch()
        os.truncate(folder / name, _HOLES_BYTES)
    assert "at most 1,048,576" in str(words_of_failure(folder))
    assert 0.0 == fleet_run._whole_seconds(folder)
    assert b"\0" * 100 == end_of_log(folder / "job.log", 100)


@pytest.mark.parametrize("name", _ROOT_WRITES)
@pytest.mark.parametrize("words", [["--release"], ["--facts", "request.json"]], ids=lambda words: words[0])
def test_root_writes_through_no_link_of_the_jobs_user(
    monkeypatch: pytest.MonkeyPatch, folder: Path, outside: Path, words: list[str], name: str
) -> None:
    _nothing_else_is_done(monkeypatch)
    before = seen_from(outside)
    for kind in LINKS:
        with planted(folder / name, kind, outside):
            status = on_node.main([*words, str(folder)])
        assert (EXIT_REQUIREMENT_MISSING, before) == (status, seen_from(outside)), kind


@pytest.mark.parametrize("words", [["--release"], ["--facts", "request.json"]], ids=lambda words: words[0])
def test_root_writes_through_no_link_that_comes_meanwhile(
    monkeypatch: pytest.MonkeyPatch, folder: Path, outside: Path, words: list[str]
) -> None:
    _nothing_else_is_done(monkeypatch)
    before = seen_from(outside)
    aside = folder.with_name("aside")

    def flip(*_arguments: object) -> ReleaseReport:
        folder.rename(aside)
        folder.symlink_to(outside / "folder")
        (aside / "facts.json").symlink_to(outside / "new")
        (aside / "released.txt").symlink_to(outside / "secret")
        return ReleaseReport((), (), ())

    monkeypatch.setattr(on_node, "release_orphans", flip)
    monkeypatch.setattr(on_node, "find_facts", flip)
    on_node.main([*words, str(folder)])
    assert before == seen_from(outside)
    assert OWN_WORDS not in "".join(
        path.read_text() for path in aside.iterdir() if path.is_file() and not path.is_symlink()
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a folder to another user")
def test_a_folder_of_somebody_else_than_who_called_sudo_is_not_written_to(
    monkeypatch: pytest.MonkeyPatch, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _nothing_else_is_done(monkeypatch)
    monkeypatch.setenv("SUDO_UID", str(_NOBODY))
    monkeypatch.setenv("SUDO_GID", str(_NOBODY))
    assert EXIT_REQUIREMENT_MISSING == on_node.main(["--release", str(folder)])
    assert "belongs to uid 0, and uid 65534 called sudo" in capsys.readouterr().err
    assert ["logs"] == [path.name for path in folder.iterdir()]
    os.chown(folder, _NOBODY, _NOBODY)
    os.chown(folder / "logs", _NOBODY, _NOBODY)
    assert 0 == on_node.main(["--release", str(folder)])
    assert {_NOBODY} == {path.stat().st_uid for path in folder.iterdir()}


def _nothing_else_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_node, "_end_on_signals", lambda: None)
    monkeypatch.setattr(on_node, "_watch", lambda *_words: None)
    monkeypatch.setattr(codec, "read", lambda *_words: None)
    monkeypatch.setattr(on_node, "find_facts", lambda _request: None)
    monkeypatch.setattr(on_node, "release_orphans", lambda *_words: ReleaseReport((), (), ()))
