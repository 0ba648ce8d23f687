"""No damage of a study is more than a sentence that names a file, and none of its characters is obeyed."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.damaged_study import OBEYED, damage
from tests.synthetic_power_cuts import RECIPE, power_cut_study

from bedplate.cli import _run_command
from bedplate.executor.terminal import guard_streams, neutral
from bedplate.model import codec
from bedplate.model.visit import VisitRecord
from bedplate.study.checksums import write_checksums

SEEDS = range(240)
READERS = (
    ("status", "{study}"),
    ("status", "{study}", "--verify", "--json"),
    ("show", "{study}"),
    ("compare", "{study}", "--baseline", "type=ext4 barrier=yes", "--contender", "type=xfs"),
    ("effects", "{study}", "--workload", "read-write"),
    ("advise", "{study}", "--json"),
    ("claims", "{study}"),
    ("power-cut", "points", "{study}"),
    ("export", "{study}", "-o", "{out}/tables"),
    ("export", "{study}", "-o", "{out}/book.ods"),
    ("export", "{study}", "-o", "{out}/all.json"),
    ("report", "{study}", "-o", "{out}/page.html"),
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Speeds and power cuts of four cells; every other visit has checksums, the rest are of an earlier version."""
    recipe = replace(RECIPE, repetitions=2, course_s=2)
    study = power_cut_study(tmp_path_factory.mktemp("whole") / "study", recipe=recipe)
    for visit in sorted((study / "visits").glob("*/*/*"))[::2]:
        record = codec.read(VisitRecord, visit / "visit.json")
        codec.write(visit / "visit.json", replace(record, sealed=True))
        write_checksums(visit)
    return study


def call(words: tuple[str, ...], study: Path, capfd: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """What a reader says of a study, at its edge to the terminal, and its exit code; an exception is a failure."""
    out = study.parent / "out"
    streams = sys.stdout, sys.stderr
    for stream in streams:
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    guard_streams()
    try:
        status = _run_command([word.format(study=study, out=out) for word in words])
    except Exception as error:
        raise AssertionError(f"{' '.join(words)}: {error!r}") from error
    finally:
        sys.stdout.flush()
        sys.stdout, sys.stderr = streams
    said = capfd.readouterr()
    return status, said.out + said.err


def require_harmless(words: tuple[str, ...], status: int, said: str, study: Path) -> None:
    assert said == neutral(said), f"{words}: a control character in {said!r}"
    assert status in {0, 1, 2, 3}, said
    assert "Traceback" not in said
    if status in {2, 3}:
        assert "error: " in said
        assert str(study) in said


def test_every_reader_reads_the_whole_study(whole: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for words in READERS:
        status, said = call(words, whole, capfd)
        assert 0 == status, said
        assert "not used" not in said


@pytest.mark.parametrize("seed", SEEDS)
def test_damage_is_a_sentence(
    whole: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], seed: int
) -> None:
    study = tmp_path / "study"
    shutil.copytree(whole, study)
    done = damage(study, seed)
    # Each damage is shown to one reader in turn: together they see all kinds of it.
    words = READERS[seed % len(READERS)]
    try:
        require_harmless(words, *call(words, study, capfd), study)
    except AssertionError as error:
        raise AssertionError(f"{done}: {error}") from error


def test_a_directory_whose_name_is_no_text_is_read(
    whole: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    study = tmp_path / os.fsdecode(b"st\xff\x1b[2J")
    shutil.copytree(whole, study)
    for words in READERS:
        status, said = call(words, study, capfd)
        assert 0 == status, said
        assert said == neutral(said)


def test_what_a_terminal_obeys_is_shown() -> None:
    assert "␛]0;pwned␇␛[2J\ufffd31m␍␈␡\ufffd\ufffd\ufffd" == neutral(OBEYED)
    assert "Zeile\n\tä 你好 א" == neutral("Zeile\n\tä 你好 א")
