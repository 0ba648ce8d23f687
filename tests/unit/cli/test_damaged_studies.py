"""No damage of a study is more than a sentence that names a file, and none of its characters is obeyed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from tests.damaged_study import OBEYED, damage
from tests.study_readers import READERS, require_harmless, said_by_reader, sealed_study

from bedplate.executor.terminal import neutral

# The torture has thousands.
SEEDS = range(72)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Speeds and power cuts of four cells; every other visit has checksums, the rest are of an earlier version."""
    return sealed_study(tmp_path_factory.mktemp("whole") / "study")


def test_every_reader_reads_the_whole_study(whole: Path) -> None:
    for words in READERS:
        status, said = said_by_reader(words, whole)
        assert 0 == status, said
        assert "not used" not in said


@pytest.mark.parametrize("seed", SEEDS)
def test_damage_is_a_sentence(whole: Path, tmp_path: Path, seed: int) -> None:
    study = tmp_path / "study"
    shutil.copytree(whole, study)
    done = damage(study, seed)
    # Each damage is shown to one reader in turn: together they see all kinds of it.
    words = READERS[seed % len(READERS)]
    try:
        require_harmless(words, study)
    except AssertionError as error:
        raise AssertionError(f"{done}: {error}") from error


def test_a_directory_whose_name_is_no_text_is_read(whole: Path, tmp_path: Path) -> None:
    study = tmp_path / os.fsdecode(b"st\xff\x1b[2J")
    shutil.copytree(whole, study)
    for words in READERS:
        status, said = said_by_reader(words, study)
        assert 0 == status, said
        assert said == neutral(said)


def test_what_a_terminal_obeys_is_shown() -> None:
    assert "␛]0;pwned␇␛[2J\ufffd31m␍␈␡\ufffd\ufffd\ufffd" == neutral(OBEYED)
    assert "Zeile\n\tä 你好 א" == neutral("Zeile\n\tä 你好 א")
