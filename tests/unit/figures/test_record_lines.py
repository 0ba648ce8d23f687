"""A file of records that is damaged throughout is told of in a few sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.cuts.points import read_record_lines

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Pair:
    """A record with two fields."""

    number: int
    name: str


def read(tmp_path: Path, *lines: str) -> tuple[tuple[Pair, ...], tuple[str, ...]]:
    path = tmp_path / "pairs.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    return read_record_lines(Pair, path, missing="a pair")


def test_what_can_be_read_is_kept_and_the_rest_named_by_its_line(tmp_path: Path) -> None:
    records, damage = read(tmp_path, '{"number": 1, "name": "a"}', "{", '{"number": 2}')
    assert (Pair(1, "a"),) == records
    assert 2 == len(damage)
    assert "line 2 is not JSON" in damage[0]
    assert "line 3" in damage[1]
    assert all(each.endswith(": a pair is missing") for each in damage)


def test_damage_throughout_is_counted_and_the_file_named(tmp_path: Path) -> None:
    records, damage = read(tmp_path, '{"number": 1, "name": "a"}', *(["{"] * 100_000))
    assert (Pair(1, "a"),) == records
    assert 6 == len(damage)
    assert (
        f"9,995 more lines of {tmp_path / 'pairs.jsonl'} cannot be read either, and the rest was not tried; it has 100,001 lines"
        == (damage[-1])
    )


def test_a_line_that_is_wrong_in_much_says_how_much(tmp_path: Path) -> None:
    _, damage = read(tmp_path, '{"a": 1, "b": 2, "c": 3}')
    assert 1 == len(damage)
    assert "more of this line): a pair is missing" in damage[0]


def test_a_line_without_end_of_its_brackets_is_damage_too(tmp_path: Path) -> None:
    _, damage = read(tmp_path, "[" * 200_000)
    assert 1 == len(damage)


def test_a_missing_file_has_no_records(tmp_path: Path) -> None:
    records, damage = read_record_lines(Pair, tmp_path / "none.jsonl", missing="a pair")
    assert () == records
    assert 1 == len(damage)


def test_lines_without_end_are_counted_and_not_read(tmp_path: Path) -> None:
    records, damage = read(tmp_path, *([""] * 300_001))
    assert () == records
    assert (
        f"{tmp_path / 'pairs.jsonl'} is not read: it has 300,000 lines, and at most 250,000 are",
    ) == damage
