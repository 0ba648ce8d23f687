"""What the preloaded library counted, read back; a library that no server had is no count of zero."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from bedplate.visit.untorn_writes import UntornWrites

if TYPE_CHECKING:
    from pathlib import Path

NUMBERS = (
    "atomic",
    "plain",
    "extensions",
    "split calls",
    "no pages",
    "buffered",
    "EINVAL",
    "EOPNOTSUPP",
    "ENOSPC",
)


def shim(path: Path, mode: str, **counted: int) -> UntornWrites:
    counts = path / "counts"
    counts.write_bytes(struct.pack("=9Q", *(counted.get(name, 0) for name in NUMBERS)))
    return UntornWrites(path / "library", counts, 8192, mode)


@pytest.mark.parametrize(
    ("mode", "counted", "code"),
    [
        ("on", {}, "pages-not-counted"),
        ("count", {}, "pages-not-counted"),
        ("on", {"atomic": 9, "ENOSPC": 1}, "pages-refused"),
        ("count", {"plain": 9}, None),
        ("on", {"buffered": 1}, None),
    ],
)
def test_what_the_library_counted_may_refuse_the_visit(
    mode: str, counted: dict[str, int], code: str | None, tmp_path: Path
) -> None:
    refusal = shim(tmp_path, mode, **counted).refusal()
    assert (refusal and refusal.code) == code
