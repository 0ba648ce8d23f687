"""The library that writes pages untorn, preloaded into a small writer, on real file systems; and where its pages lie."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.tools.filesystem_site import site_on
from tests.support.tools.scratch_disk import looped

from bedplate.cuts.records import PageCounts
from bedplate.filesystem.registry import filesystem_for
from bedplate.host.command import Account, Commands
from bedplate.host.native_driver import ensure_driver
from bedplate.host.pages import TAKEN, extents_of, page_layout, probe_untorn_write, untorn_unit
from bedplate.model.cell import (
    BuildLevels,
    Cell,
    ClusterLevels,
    DeviceLevels,
    FilesystemLevels,
    KernelLevels,
)
from bedplate.model.filesystem import COW_HINTS, contradictions
from bedplate.model.levels import Levels
from bedplate.visit.declaration import UNTORN_SHIM, UntornWrites, untorn_writes

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.host

SOURCES = Path(__file__).resolve().parents[2]
MKFS = {
    "xfs": ("mkfs.xfs", "-q"),
    "xfs of 16 kB": ("mkfs.xfs", "-q", "-b", "size=16k"),
    "xfs without reflink": ("mkfs.xfs", "-q", "-m", "reflink=0"),
    "ext4": ("mkfs.ext4", "-q"),
    "btrfs": ("mkfs.btrfs", "-q"),
}
PAGE = 8192
# Twice over the same 16 pages, so many at a call.
WRITER = """
import mmap, os, sys
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT | (os.O_DIRECT if sys.argv[3] == "direct" else 0), 0o600)
at_once = int(sys.argv[2])
pages = mmap.mmap(-1, 8192 * at_once)
for _ in range(2):
    for first in range(0, 16, at_once):
        if os.pwrite(file, pages, 8192 * first) != len(pages):
            sys.exit("a short write")
if len(sys.argv) > 4:
    os.pwrite(file, memoryview(pages)[:8192], 4096)
    os.pwrite(file, memoryview(pages)[:4096], 4096)
"""


@contextmanager
def mounted(tmp_path: Path, kind: str) -> Iterator[Path]:
    target = tmp_path / "mounted"
    target.mkdir()
    with looped(tmp_path, size_bytes=512 << 20) as node:
        subprocess.run([*MKFS[kind], node], check=True)
        subprocess.run(["mount", node, str(target)], check=True)
        try:
            yield target
        finally:
            subprocess.run(["umount", str(target)], check=True)


def preloaded(tmp_path: Path, mode: str) -> UntornWrites:
    library = ensure_driver(
        UNTORN_SHIM.name,
        source=SOURCES / "drivers/untorn_writes.c",
        cache_directory=tmp_path / "drivers",
        commands=Commands(),
        is_preloaded=True,
    )
    cell = Cell(
        DeviceLevels(),
        KernelLevels(),
        FilesystemLevels("xfs"),
        BuildLevels(),
        ClusterLevels(untorn_writes=mode),
    )
    found = untorn_writes(
        cell, {UNTORN_SHIM.name: str(library)}, tmp_path / "counts", Account("root", os.getuid(), os.getgid())
    )
    assert found is not None
    return found


def written(untorn: UntornWrites, file: Path, *words: str) -> PageCounts:
    argv = [sys.executable, "-c", WRITER, str(file), *words]
    subprocess.run(argv, check=True, env={**os.environ, **untorn.environment})
    return untorn.counted()


@pytest.mark.parametrize("at_once", [1, 2])
def test_xfs_takes_each_page_as_an_untorn_write(tmp_path: Path, at_once: int) -> None:
    untorn = preloaded(tmp_path, "on")
    with mounted(tmp_path, "xfs") as target:
        if probe_untorn_write(target / "probe", PAGE) != TAKEN:
            pytest.skip("this kernel's XFS takes no untorn write without a device's help (before 6.16)")
        assert [] == list(target.iterdir())
        unit = untorn_unit(target)
        found = written(untorn, target / "file", str(at_once), "direct")
        assert unit is None or unit.min_bytes <= PAGE <= untorn_unit(target / "file").max_bytes  # type: ignore[union-attr]
        split = 0 if at_once == 1 else 16
        assert (
            PageCounts(atomic=16, plain=0, extensions=16, split_calls=split, no_pages=0, buffered=0) == found
        )
        layout = page_layout([(16 * PAGE, extents_of(target / "file"))], PAGE)
        assert (1, 16, 0) == (layout.files, layout.pages, layout.unmapped)


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("xfs of 16 kB", "EINVAL"),
        ("xfs without reflink", "EOPNOTSUPP"),
        ("ext4", "EOPNOTSUPP"),
        ("btrfs", "EOPNOTSUPP"),
    ],
)
def test_what_is_refused_is_written_all_the_same_and_counted(tmp_path: Path, kind: str, error: str) -> None:
    untorn = preloaded(tmp_path, "on")
    with mounted(tmp_path, kind) as target:
        found = written(untorn, target / "file", "1", "direct")
        assert (0, {error: 16}, 16) == (found.atomic, found.refused, found.refusals)
        assert (target / "file").stat().st_size == 16 * PAGE
        assert error == probe_untorn_write(target / "probe", PAGE)


def test_counting_alone_asks_for_nothing(tmp_path: Path) -> None:
    untorn = preloaded(tmp_path, "count")
    with mounted(tmp_path, "ext4") as target:
        found = written(untorn, target / "file", "1", "direct")
        assert (0, 16, 16, 0) == (found.atomic, found.plain, found.extensions, found.refusals)


def test_writes_through_the_cache_and_between_two_pages_are_told_apart(tmp_path: Path) -> None:
    untorn = preloaded(tmp_path, "on")
    with mounted(tmp_path, "ext4") as target:
        assert written(untorn, target / "file", "1", "buffered").buffered == 32
        found = written(untorn, target / "file", "2", "direct", "and one between two, and half of one")
        assert (2, 0, 32) == (found.no_pages, found.extensions, found.refusals)


def test_a_program_that_cannot_count_does_not_run(tmp_path: Path) -> None:
    untorn = preloaded(tmp_path, "on")
    for missing in ("BEDPLATE_UNTORN_COUNTS", "BEDPLATE_UNTORN_PAGE_BYTES", "BEDPLATE_UNTORN_WRITES"):
        names = {name: value for name, value in untorn.environment.items() if name != missing}
        done = subprocess.run(
            ["true"], check=False, env={**os.environ, **names}, capture_output=True, text=True
        )
        assert done.returncode != 0
        assert missing in done.stderr
    untorn.counts.unlink()
    done = subprocess.run(
        ["true"], check=False, env={**os.environ, **untorn.environment}, capture_output=True, text=True
    )
    assert done.returncode != 0


def test_xfs_copies_in_pieces_as_small_as_it_is_told(tmp_path: Path) -> None:
    filesystem = filesystem_for("xfs")
    for size, block_bytes in (("8k", None), ("64k", 8192)):
        levels = FilesystemLevels("xfs", block_bytes, features=Levels(cowextsize=size))
        with looped(tmp_path, size_bytes=512 << 20) as node:
            site = site_on(levels, node, Commands(), target=tmp_path / f"of-{size}")
            site.target.mkdir()
            filesystem.mkfs(site)
            try:
                filesystem.mount(site)
                (found,) = (
                    each for each in filesystem.read_back(site) if each.name == "filesystem.cowextsize"
                )
                assert (COW_HINTS[size], True) == (found.effective, found.matches)
            finally:
                filesystem.unmount(site)
    assert contradictions(FilesystemLevels("xfs", 16384, features=Levels(cowextsize="8k")))
