"""No damage of a study is more than a sentence that names a file, and none of its characters is obeyed."""

from __future__ import annotations

import os
import resource
import shutil
from pathlib import Path

import pytest
from tests.support.studies.damaged_study import OBEYED, damage
from tests.support.studies.study_readers import READERS, require_harmless, said_by_reader, sealed_study

from bedplate.campaign.planning import kept_plan
from bedplate.campaign.terminal_edge import neutral
from bedplate.errors import StudyError

# The torture has thousands.
SEEDS = range(72)
_MEMORY_BYTES_MAX = 4 << 30


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


@pytest.mark.parametrize("name", ["points.jsonl", "plan.toml"])
def test_a_file_without_end_is_not_read(whole: Path, tmp_path: Path, name: str) -> None:
    study = tmp_path / "study"
    shutil.copytree(whole, study)
    for path in study.rglob(name):
        path.unlink()
        path.symlink_to("/dev/zero")
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES_MAX, limits[1]))
    try:
        for words in (("power-cut", "points", "{study}"), ("status", "{study}")):
            require_harmless(words, study)
        if name == "plan.toml":
            with pytest.raises(StudyError, match="is a link"):
                kept_plan(study)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
