"""What a restored dataset's visit reads into the page cache: the files that were written last, as much as there is memory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bedplate.visit.server import reading_what_was_written_last


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for order, (name, size) in enumerate((("log", 30), ("table", 100), ("index", 20), ("empty", 0))):
        path = tmp_path / name
        path.write_bytes(bytes(size))
        os.utime(path, ns=(0, order))
    return tmp_path


@pytest.mark.parametrize(
    ("most_bytes", "expected"),
    [
        (1000, (("cat", "log", "table", "index"),)),
        (150, (("cat", "log", "table", "index"),)),
        (149, (("tail", "--bytes=29", "log"), ("cat", "table", "index"))),
        (120, (("cat", "table", "index"),)),
        # A table that is larger than the memory, by its end; it was left out whole, and all that is older with it.
        (60, (("tail", "--bytes=40", "table"), ("cat", "index"))),
        (20, (("cat", "index"),)),
        (5, (("tail", "--bytes=5", "index"),)),
        (0, ()),
    ],
)
def test_the_newest_are_read_last_and_one_that_does_not_fit_by_its_end(
    data: Path, most_bytes: int, expected: tuple[tuple[str, ...], ...]
) -> None:
    found = reading_what_was_written_last(data, most_bytes)
    assert expected == tuple(
        tuple(Path(word).name if word.startswith("/") else word for word in argv) for argv in found
    )


def test_an_empty_folder_asks_for_nothing(tmp_path: Path) -> None:
    assert () == reading_what_was_written_last(tmp_path, 1000)
