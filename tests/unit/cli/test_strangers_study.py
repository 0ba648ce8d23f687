"""Whatever stands in a study that is no plain file of its owner: no command follows, reads, changes or waits for it."""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree, rmtree
from types import FrameType

import pytest
from tests.support.studies.planted_places import (
    KINDS,
    LINK_TO_FOLDER,
    LINKS,
    OF_OTHERS,
    OWN_WORDS,
    PIPE,
    WORDS,
    make_outside,
    places,
    planted,
    seen_from,
)
from tests.support.studies.published_sources import kernel_bench
from tests.support.studies.study_readers import sealed_study
from tests.support.tools.command_line import call_apart, call_here
from tests.support.tools.watched_folder import watched

from bedplate.cli import measuring
from bedplate.errors import EXIT_PLAN_OR_CALL_WRONG
from bedplate.study.layout import UNFINISHED, StudyLayout

# A pipe that is waited for without end fails its test, and not the session.
_HANGS_S = 60
_EACH_KIND = (
    ("show", "{study}", "--status"),
    ("run", "{study}/plan.toml", "--study", "{study}"),
    ("run", "{study}", "--repetitions", "9"),
)
_LINKS_ALONE = (
    ("show", "{study}"),
    ("show", "{study}", "--mail"),
    ("show", "{study}", "--effects"),
    ("report", "{study}", "-o", "{out}/page.html"),
    ("export", "{study}", "-o", "{out}/tables"),
    ("search", "{study}/plan.toml", "--study", "{study}", "--budget", "1h"),
    ("release", "{study}"),
    ("power-cut", "points", "{study}"),
    ("power-cut", "replay", "{study}", "01", "1", "--keep", "{out}/keep"),
    ("power-cut", "blame", "{study}", "01", "1"),
    ("power-cut", "bundle", "{study}", "01", "1", "--output", "{out}/bundle"),
)


@dataclass(frozen=True)
class Site:
    study: Path
    outside: Path
    out: Path

    def refuses(self, words: tuple[str, ...], place: Path, kind: str) -> None:
        """The command says what stands where, in words, and touches nothing outside."""
        with planted(place, kind, self.outside), watched(self.outside) as events:
            done = call_here(*(word.format(study=self.study, out=self.out) for word in words))
            said = done.stdout + done.stderr
            about = f"{words[0]}, {kind} at {place.relative_to(self.study)}: {said}"
            assert [] == events.events(), about
            assert OWN_WORDS not in said, about
            assert EXIT_PLAN_OR_CALL_WRONG == done.returncode, about
            assert f"{place} {WORDS[kind]}" in said, about


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    base = tmp_path_factory.mktemp("strangers")
    return Site(sealed_study(base / "studies" / "study"), make_outside(base / "outside"), base / "out")


@pytest.fixture(autouse=True)
def _nothing_is_waited_for() -> Iterator[None]:
    def end(_number: int, _frame: FrameType | None) -> None:
        raise AssertionError("something was waited for without end")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(_HANGS_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def kinds() -> tuple[str, ...]:
    return KINDS if os.geteuid() == 0 else LINKS


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("words", _EACH_KIND, ids=lambda words: words[0])
def test_nothing_strange_is_touched_wherever_it_stands(site: Site, words: tuple[str, ...], kind: str) -> None:
    if kind not in kinds():
        pytest.skip("needs root to make it")
    before = seen_from(site.outside)
    for place in places(site.study):
        # Of a visit under way the owners do not matter: nobody reads it, and it is removed.
        if not (kind in OF_OTHERS and any(above.name.endswith(UNFINISHED) for above in place.parents)):
            site.refuses(words, place, kind)
    assert before == seen_from(site.outside)


@pytest.mark.parametrize(
    "words", _LINKS_ALONE, ids=lambda words: "-".join(words[:2]) if words[0] == "power-cut" else words[0]
)
def test_no_command_follows_a_link_wherever_it_stands(site: Site, words: tuple[str, ...]) -> None:
    before = seen_from(site.outside)
    for number, place in enumerate(places(site.study)):
        site.refuses(words, place, LINKS[number % len(LINKS)])
    assert before == seen_from(site.outside)
    assert not site.out.exists()


def test_places_are_all_that_the_format_knows(site: Site) -> None:
    names = {str(path.relative_to(site.study)) for path in places(site.study)}
    assert {
        "study.json",
        ".lock",
        ".extension",
        "fleet/key",
        "fleet/nodes/node1.json",
        "scratch",
        "blame",
    } <= names
    for name in ("log.xz", "points.jsonl", "tests/test.json", "blame.jsonl", "logs"):
        assert any(place.endswith(f"/{name}") for place in names), name


@pytest.mark.parametrize(
    "words",
    [
        ("run", "{plan}", "--study", "{study}"),
        ("search", "{plan}", "--study", "{study}", "--budget", "1h"),
        ("import", "{out}", "--study", "{study}"),
    ],
    ids=lambda words: words[0],
)
def test_what_looks_like_a_killed_start_is_looked_at_too(
    site: Site, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """Without a `study.json` it is no study yet, and would become one."""
    study, before = tmp_path / "study", seen_from(site.outside)
    study.mkdir()
    names = [name for name, value in vars(StudyLayout).items() if isinstance(value, property)]
    for place in (getattr(StudyLayout(study), name) for name in names):
        for kind in (*LINKS, PIPE):
            with planted(place, kind, site.outside), watched(site.outside) as events:
                plan = site.study / "plan.toml"
                done = call_here(*(word.format(study=study, plan=plan, out=site.out) for word in words))
                about = f"{kind} at {place.name}: {done.stderr}"
                assert [] == events.events(), about
                assert EXIT_PLAN_OR_CALL_WRONG == done.returncode, about
                assert "is a" in done.stderr or "is not empty and no study" in done.stderr, about
            assert [] == list(study.iterdir()), about
    assert before == seen_from(site.outside)


@pytest.mark.parametrize("name", [".study.importing", ".study.importing/study.json"])
def test_the_folder_that_an_import_begins_in_is_looked_at_too(tmp_path: Path, name: str) -> None:
    outside = make_outside(tmp_path / "outside")
    source = kernel_bench(tmp_path / "source", lambda *_words: 1000.0)
    before = seen_from(outside)
    for kind in (*LINKS, PIPE):
        place = tmp_path / "place"
        place.mkdir()
        with planted(place / name, kind, outside), watched(outside) as events:
            done = call_here("import", source, "--study", place / "study")
            assert [] == events.events(), f"{kind} at {name}: {done.stdout}{done.stderr}"
            assert (EXIT_PLAN_OR_CALL_WRONG if "/" not in name else 0) == done.returncode, done.stderr
        rmtree(place)
    assert before == seen_from(outside)


_QUESTIONS = (
    ("ask", "filesystem", "--on", "ext4"),
    ("ask", "safe", "full_page_writes=off", "--on", "ext4"),
    ("quickstart",),
    ("power-cut", "try", str(Path(__file__).parents[3] / "examples/engines/toy"), "--on", "ext4"),
)


@pytest.mark.skipif(os.geteuid() != 0, reason="what is asked makes file systems")
@pytest.mark.parametrize("words", _QUESTIONS, ids=lambda words: " ".join(words[:2]))
def test_the_directory_of_a_question_is_looked_at_too(tmp_path: Path, words: tuple[str, ...]) -> None:
    outside = make_outside(tmp_path / "outside")
    before = seen_from(outside)
    for name in ("plan.toml", "study", "study/study.json", "study/visits"):
        if words == ("quickstart",) and name == "plan.toml":
            continue  # It has its plan elsewhere, and leaves this file alone.
        for kind in (*LINKS, PIPE):
            directory = tmp_path / "asked"
            directory.mkdir()
            with planted(directory / name, kind, outside), watched(outside) as events:
                done = call_here(*words, "--directory", directory, "--yes")
                about = f"{kind} at {name}: {done.stdout}{done.stderr}"
                assert [] == events.events(), about
                assert EXIT_PLAN_OR_CALL_WRONG == done.returncode, about
                assert OWN_WORDS not in about
            rmtree(directory)
    assert before == seen_from(outside)


@pytest.mark.skipif(os.geteuid() != 0, reason="what is asked makes file systems")
@pytest.mark.parametrize("kind", [*LINKS, PIPE])
def test_the_page_of_a_question_takes_the_place_of_a_link(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    before = seen_from(site.outside)
    copytree(site.study, tmp_path / "study")
    monkeypatch.setattr(measuring, "run", lambda *_words, **_named: 0)
    with planted(tmp_path / "report.html", kind, site.outside):
        done = call_here("quickstart", "--directory", tmp_path, "--yes")
        assert 0 == done.returncode, done.stderr
        assert stat.S_ISREG((tmp_path / "report.html").lstat().st_mode)
    assert before == seen_from(site.outside)


def test_an_index_names_the_study_and_reads_the_rest(site: Site) -> None:
    with planted(site.study / "visits", LINK_TO_FOLDER, site.outside), watched(site.outside) as events:
        done = call_here("index", site.study.parent)
        assert [] == events.events()
    assert 0 == done.returncode, done.stderr
    assert f"{site.study / 'visits'} is a link" in done.stderr


def test_what_a_command_makes_others_do_not_write_whatever_the_umask(site: Site, tmp_path: Path) -> None:
    page = tmp_path / "pages" / "page.html"
    before = os.umask(0)
    try:
        done = call_apart("report", site.study, "-o", page)
    finally:
        os.umask(before)
    assert 0 == done.returncode, done.stderr
    assert [0, 0] == [path.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH) for path in (page, page.parent)]
