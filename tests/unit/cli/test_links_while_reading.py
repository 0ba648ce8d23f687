"""A study in which a folder becomes a link after it was looked at: no command that reads it follows the link, or reads what is behind it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copytree

import pytest
from tests.support.studies.study_readers import READERS, said_by_reader, sealed_study
from tests.support.tools.watched_folder import watched

from bedplate.errors import (
    EXIT_DONE,
    EXIT_PLAN_OR_CALL_WRONG,
    EXIT_REQUIREMENT_MISSING,
    EXIT_SOME_RUNS_FAILED,
    StudyError,
)
from bedplate.model import codec
from bedplate.study.layout import Folder, StudyLayout
from bedplate.study.stored import verify_study, visit_directories

_COMMANDS = (
    *READERS,
    ("show", "{study}", "--mail"),
    ("index", "{study}/.."),
    ("run", "{study}", "--repetitions", "9"),
    ("power-cut", "replay", "{study}", "01", "1", "--keep", "{out}/keep"),
    ("power-cut", "blame", "{study}", "01", "1"),
    ("power-cut", "bundle", "{study}", "01", "1", "--output", "{out}/bundle"),
)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = sealed_study(tmp_path_factory.mktemp("flipping") / "study")
    (made / "plan").mkdir(exist_ok=True)
    (made / "plan" / "script.sql").write_text("SELECT 1;\n")
    return made


@pytest.fixture(scope="module")
def outside(study: Path) -> Path:
    """The same files, so that not even a checksum tells them from the study's."""
    return copytree(study, study.parent.parent / f"{study.parent.name}-outside")


def each_level(study: Path) -> tuple[Path, ...]:
    """A folder of each level, none of them in another."""
    attempts = sorted(study.glob("visits/*/*/*"))
    by_cell = {path.parent.parent: path for path in attempts}
    first, second, third, fourth, *_ = by_cell.values()
    beside = next(
        path
        for path in attempts
        if path.parent.parent not in {first.parent.parent, second.parent.parent}
        and path not in {third, fourth}
    )
    runs = sorted((beside / "runs").iterdir())
    return (study / "plan", first.parent.parent, second.parent, third, fourth / "runs", runs[0])


class Moment:
    """When folders of a study become links to their copies: after it was looked at, and so many files were read. Nobody looks again."""

    def __init__(self, study: Path, outside: Path, places: tuple[Path, ...], *, files: int) -> None:
        self._study, self._outside, self._places, self._files = study, outside, places, files
        self._aside = study.parent / "aside"
        self.read = 0
        self.has_come = False

    @contextmanager
    def watched(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """Make the links when the moment comes, and undo them in the end."""
        look, opened = Folder.require_plain, codec.opened

        def look_once(folder: Folder, *, to_write: bool = False) -> None:
            if not self.has_come:
                look(folder, to_write=to_write)
                self._come()

        @contextmanager
        def opened_in_turn(path: Path) -> Iterator[object]:
            with opened(path) as file:
                yield file
            self.read += path.is_relative_to(self._study)
            self._come()

        try:
            with monkeypatch.context() as patches:
                patches.setattr(Folder, "require_plain", look_once)
                patches.setattr(codec, "opened", opened_in_turn)
                yield
        finally:
            for number, place in enumerate(self._places if self.has_come else ()):
                place.unlink()
                Path(f"{self._aside}-{number}").rename(place)

    def _come(self) -> None:
        if self.read < self._files or self.has_come:
            return
        self.has_come = True
        for number, place in enumerate(self._places):
            place.rename(f"{self._aside}-{number}")
            place.symlink_to(self._outside / place.relative_to(self._study))


@pytest.mark.parametrize(
    "words", _COMMANDS, ids=lambda words: "-".join(word for word in words if "{" not in word)
)
@pytest.mark.parametrize("where", ["visits", "each level", "half way"])
def test_no_reader_goes_through_a_link_that_comes_after_the_look(
    monkeypatch: pytest.MonkeyPatch, study: Path, outside: Path, where: str, words: tuple[str, ...]
) -> None:
    files = 0
    if where == "half way":
        never = Moment(study, outside, (), files=1_000_000)
        with never.watched(monkeypatch):
            said_by_reader(words, study)
        files = max(1, never.read // 2)
    places = each_level(study) if where == "each level" else (study / "visits",)
    moment = Moment(study, outside, places, files=files)
    with moment.watched(monkeypatch), watched(outside) as events:
        status, said = said_by_reader(words, study)
        assert [] == events.events(), said
    assert moment.has_come
    assert status in {
        EXIT_DONE,
        EXIT_SOME_RUNS_FAILED,
        EXIT_PLAN_OR_CALL_WRONG,
        EXIT_REQUIREMENT_MISSING,
    }, said


def test_a_study_that_another_takes_the_place_of_is_not_read_on(study: Path, outside: Path) -> None:
    Folder.of_study(study).close()
    aside = study.with_name("aside")
    study.rename(aside)
    study.symlink_to(outside)
    try:
        with watched(outside / "visits") as events:
            with pytest.raises(StudyError, match="another directory"):
                list(visit_directories(StudyLayout(study).visits))
            assert [] == events.events()
    finally:
        study.unlink()
        aside.rename(study)


def test_a_folder_that_is_a_link_by_turns_is_never_followed(study: Path, outside: Path) -> None:
    attempt = next(iter(sorted(study.glob("visits/*/*/*"))))
    link, aside = study.parent / "link", study.parent / "aside"
    link.symlink_to(outside / attempt.relative_to(study))
    is_done = threading.Event()

    def flip() -> None:
        while not is_done.is_set():
            attempt.rename(aside)
            link.rename(attempt)
            attempt.rename(link)
            aside.rename(attempt)

    flipping = threading.Thread(target=flip)
    flipping.start()
    try:
        with watched(outside) as events:
            for _ in range(40):
                with pytest.MonkeyPatch.context() as patches:
                    patches.setattr(Folder, "require_plain", lambda *_args, **_options: None)
                    verify_study(study)
            assert [] == events.events()
    finally:
        is_done.set()
        flipping.join()
        link.unlink()
