"""A file that is no record is refused by name, whatever it is."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from bedplate.errors import StudyError
from bedplate.model import codec
from bedplate.model.levels import LevelMismatch, Levels
from bedplate.model.visit import Durability


@dataclass(frozen=True)
class Counted:
    """A record of one number that may be missing."""

    count: int | None = None
    speed: float | None = None
    levels: Levels | None = None


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\xff{}", "is no UTF-8: byte 0 is 0xff"),
        (b"[" * 100_000, "is nested too deeply"),
        (b'{"count":' * 100_000, "is nested too deeply"),
        (b'{"count": ' + b"9" * 5000 + b"}", "is not JSON"),
        (b'{"count": ' + b"9" * 400 + b"}", "at most 63 bits"),
        (b'{"speed": ' + b"9" * 400 + b"}", "expected a number"),
        (b'{"speed": 1e999}', "expected a finite number"),
        (b'{"speed": NaN}', "NaN is no number"),
        (b'{"levels": {"a": Infinity}}', "Infinity is no number"),
        (b'{"levels": {"a": 1e999}}', "expected a finite number"),
        (b'{"levels": {"a": [1]}}', "expected str, found [1]"),
        (b'{"levels": {"a": "\\ud800"}}', "half of a character"),
        (b"", "is not JSON"),
    ],
)
def test_no_content_is_more_than_a_sentence_with_the_name(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "record.json"
    path.write_bytes(data)
    with pytest.raises(StudyError, match=r"record\.json") as caught:
        codec.read(Counted, path)
    assert words in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_a_record_within_a_record_within_a_record_ends_somewhere() -> None:
    inner = '{"volatile_cache": "", "protected_cache": "", "basis": "", "without_waiting": '
    with pytest.raises(StudyError, match="nested too deeply"):
        codec.loads(Durability, inner * 3000 + "null" + "}" * 3000, source="visit.json")


@pytest.mark.parametrize("kind", ["pipe", "directory", "device", "missing", "link to nowhere"])
def test_what_is_no_plain_file_is_not_waited_for(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "record.json"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "link to nowhere":
        path.symlink_to(tmp_path / "nowhere")
    with pytest.raises(StudyError, match=r"record\.json cannot be read"):
        codec.read(Counted, path)


def test_half_of_a_character_that_has_its_other_half_is_text() -> None:
    assert {"a": "😀"} == codec.parse('{"a": "\\ud83d\\ude00"}', source="x")


def test_a_level_of_another_kind_is_a_damaged_study_and_a_wrong_call() -> None:
    with pytest.raises(StudyError):
        Levels(kind=5).text("kind")
    assert issubclass(LevelMismatch, TypeError)
