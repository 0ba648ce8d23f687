"""`index`: one page over a folder of studies, each with its answer, its page and what is wrong with it."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
from tests.support.studies.known_study import KNOWN, Place, known_study
from tests.support.tools.command_line import call_here

from bedplate.installation import COMMAND
from bedplate.model import codec
from bedplate.study.records import StudyFacts

HOSTILE = "</h2><script>alert(1)</script> \x1b[31m & more"


def tps(place: Place) -> float:
    """XFS is twice as fast; repetitions differ a little."""
    return (2000.0 if place.cell.filesystem.type == "xfs" else 1000.0) + place.repetition


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    """Three studies at three levels: with a page, with a hostile title, and damaged."""
    known_study(tmp_path / "first", tps, KNOWN)
    (tmp_path / "first.html").write_text("its page")
    known_study(tmp_path / "team" / "ask" / "study", tps, KNOWN)
    (tmp_path / "team" / "ask" / "report.html").write_text("its page")
    facts = tmp_path / "team" / "ask" / "study" / "study.json"
    found = codec.loads(StudyFacts, facts.read_text())
    facts.write_text(codec.dumps(replace(found, title=HOSTILE)))
    damaged = known_study(tmp_path / "damaged", tps, KNOWN)
    (damaged / "machine.json").write_text("{")
    return tmp_path


def test_every_study_has_its_answer_and_the_way_to_its_page(shelf: Path) -> None:
    done = call_here("index", shelf)
    assert 0 == done.returncode, done.stderr
    assert [str(shelf / "index.html")] == done.stdout.splitlines()
    text = (shelf / "index.html").read_text()
    assert "3 studies" in text
    assert ["first.html", "team/ask/report.html"] == sorted(re.findall(r'<a href="([^"]+)">', text))
    assert 2 == text.count("<dl")
    assert "xfs" in unescape(text)
    assert 2 == text.count("<p>What do file system, db block, barrier and nodatacow change?</p>")
    created = codec.loads(StudyFacts, (shelf / "first" / "study.json").read_text()).created
    assert f"first · {created[:10]}, " in text


def test_a_step_that_is_told_has_its_command(tmp_path: Path) -> None:
    known_study(tmp_path / "study", tps, replace(KNOWN, repetitions=2))
    assert 0 == call_here("index", tmp_path).returncode
    text = (tmp_path / "index.html").read_text()
    assert re.search(r'min:</p><pre class="copied"[^>]*>sudo \S*bedplate run ', text)


def test_what_came_from_outside_is_text(shelf: Path) -> None:
    call_here("index", shelf, "-o", shelf / "out" / "all.html")
    text = (shelf / "out" / "all.html").read_text()
    assert "<script" not in text
    assert "script-src 'none'" in unescape(text)
    assert "&lt;script&gt;" in text
    # Links lead from where the index stands.
    assert 'href="../first.html"' in text


def test_a_damaged_study_is_named_and_hides_no_other(shelf: Path) -> None:
    done = call_here("index", shelf)
    assert "damaged: " in done.stderr
    assert "machine.json" in done.stderr
    text = unescape((shelf / "index.html").read_text())
    assert "damaged cannot be read" in text


def test_the_index_of_yesterday_is_no_page_of_a_study(tmp_path: Path) -> None:
    known_study(tmp_path / "study", tps, KNOWN)
    for _ in range(2):
        assert 0 == call_here("index", tmp_path, "-o", tmp_path / "report.html").returncode
        assert "<a href=" not in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize("name", ["a; touch made|sh", "$(touch made)", "a b", "-x"])
def test_the_command_that_makes_a_page_is_one_for_a_shell(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known_study(tmp_path / "shelf" / name, tps, KNOWN)
    monkeypatch.chdir(tmp_path / "shelf")
    for given in (tmp_path / "shelf", Path()):
        assert 0 == call_here("index", given).returncode
        (offered,) = re.findall(r"no page yet: <code>([^<]+)</code>", Path("index.html").read_text())
        command, *words = shlex.split(unescape(offered), posix=True)
        assert COMMAND == command
        place = str(given / name)
        place = f"./{place}" if place.startswith("-") else place
        assert ["report", place, "-o", f"{place}.html"] == words
    done = call_here(*words)
    assert 0 == done.returncode, done.stderr
    call_here("index", ".")
    assert 1 == Path("index.html").read_text().count("<a href=")


def test_a_study_that_is_the_folder_itself_has_its_page_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known_study(tmp_path / "study", tps, KNOWN)
    monkeypatch.chdir(tmp_path / "study")
    assert 0 == call_here("index", ".", "-o", "../index.html").returncode
    text = (tmp_path / "index.html").read_text()
    assert f"{COMMAND} report {tmp_path}/study -o {tmp_path}/study.html" in text
    (tmp_path / "study.html").write_text("its page")
    call_here("index", ".", "-o", "../index.html")
    assert '<a href="study.html">' in (tmp_path / "index.html").read_text()


def test_a_name_that_is_no_text_hides_no_study(shelf: Path) -> None:
    odd = os.fsdecode(b"caf\xe9")
    for name in (odd, f"{odd}2"):
        known_study(shelf / name, tps, KNOWN)
    (shelf / f"{odd}.html").write_text("its page")
    done = call_here("index", shelf)
    assert 0 == done.returncode, done.stderr
    text = (shelf / "index.html").read_text()
    assert '<a href="caf%E9.html">' in text
    assert "5 studies" in text
    assert 1 == text.count("no page yet")
    assert "no page yet:" not in text


def test_a_folder_that_may_not_be_read_hides_no_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known_study(tmp_path / "study", tps, KNOWN)
    (tmp_path / "report.html").write_text("of which study")
    (tmp_path / "private").mkdir()
    exists = Path.exists

    def refused(path: Path, **more: bool) -> bool:
        if path.parent.name == "private":
            raise PermissionError(13, "Permission denied", str(path))
        return exists(path, **more)

    # Root, as whom tests may run, is refused nothing.
    monkeypatch.setattr(Path, "exists", refused)
    done = call_here("index", tmp_path)
    assert 0 == done.returncode, done.stderr
    assert "<a href=" not in (tmp_path / "index.html").read_text()


def test_a_folder_without_studies_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    done = call_here("index", tmp_path)
    assert 2 == done.returncode
    assert "holds no study" in done.stderr
    assert not (tmp_path / "index.html").exists()
