"""What the preloaded library counted, read back; a library that no server had is no count of zero."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from bedplate.host.command import Commands
from bedplate.host.native_driver import COMPILER, ensure_driver
from bedplate.visit.declaration import UNTORN_SHIM, UntornWrites

SOURCES = Path(__file__).resolve().parents[3]
# Two whole pages; then half of one, one between two, one and a half, and nothing.
WRITER = """
import mmap, os, sys
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT | (os.O_DIRECT if sys.argv[2] == "direct" else 0), 0o600)
room = memoryview(mmap.mmap(-1, 65536))
for bytes, at in ((8192, 0), (8192, 0), (4096, 0), (8192, 4096), (12288, 0), (0, 0)):
    assert bytes == os.pwrite(file, room[:bytes], at)
"""
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


@pytest.mark.skipif(shutil.which(COMPILER) is None, reason="needs a C compiler: package gcc")
@pytest.mark.parametrize(
    ("how", "counted"), [("direct", (0, 1, 1, 0, 3, 0)), ("buffered", (0, 0, 0, 0, 0, 4))]
)
def test_every_direct_write_that_is_no_whole_page_is_counted_also_a_short_one(
    how: str, counted: tuple[int, ...], tmp_path: Path
) -> None:
    file = tmp_path / "file"
    try:
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_DIRECT))
    except OSError:
        pytest.skip("the file system of the tests has no direct I/O")
    library = ensure_driver(
        UNTORN_SHIM.name,
        source=SOURCES / "drivers/untorn_writes.c",
        cache_directory=tmp_path / "drivers",
        commands=Commands(),
        is_preloaded=True,
    )
    found = UntornWrites(library, shim(tmp_path, "count").counts, 8192, "count")
    subprocess.run(
        [sys.executable, "-c", WRITER, str(file), how],
        check=True,
        env={**os.environ, **found.environment},
    )
    counts = found.counted()
    assert (
        *(counts.atomic, counts.plain, counts.extensions),
        *(counts.split_calls, counts.no_pages, counts.buffered),
    ) == counted
