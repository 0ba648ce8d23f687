"""How a server's pages came to a file system while it was recorded: what was asked of the kernel, and where they lie."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterable

ENOSPC = "ENOSPC"
# Facts of a recording, of a server that counts them while clients write.
WAL_BYTES, WAL_PAGE_IMAGES = "wal_bytes", "wal_page_images"


@dataclass(frozen=True)
class PageCounts:
    """What the preloaded library counted of writes with direct I/O, from the server's start to the end of its clients."""

    atomic: int
    """pages that the kernel took as untorn writes"""
    plain: int
    """pages written over old ones without asking for that"""
    extensions: int
    """pages behind a file's end, where nothing old can be torn"""
    split_calls: int
    """calls with several pages, which were written one by one"""
    no_pages: int
    """calls with direct I/O that were no whole pages, shorter ones too, and written as they were"""
    buffered: int
    """calls of a page or more through the page cache: WAL, and all else that is not opened with O_DIRECT"""
    refused: Mapping[str, int] = field(default_factory=dict)
    """pages that the kernel would not write untorn, by its error; each was written plainly and may be torn"""

    @classmethod
    def together(cls, every: Iterable[PageCounts]) -> Self:
        """Several servers' as one."""
        counts = tuple(every)
        refused: Counter[str] = Counter()
        for each in counts:
            refused.update(each.refused)
        named = (each.name for each in fields(cls) if each.name != "refused")
        return cls(
            **{name: sum(getattr(each, name) for each in counts) for name in named}, refused=dict(refused)
        )

    @property
    def is_empty(self) -> bool:
        """Whether nothing was counted at all: a server writes WAL, if nothing else."""
        return not (
            self.atomic or self.plain or self.extensions or self.no_pages or self.buffered or self.refusals
        )

    @property
    def refusals(self) -> int:
        """All of them."""
        return sum(self.refused.values())

    @property
    def refusal(self) -> str | None:
        """What is to be said of the pages that were refused, and the way out; None where there is none."""
        asked = self.atomic + self.refusals
        if self.refused.get(ENOSPC):
            return (
                f"XFS found no free space in one piece for {self.refused[ENOSPC]:,} of {asked:,} pages (ENOSPC), which were written "
                'plainly and may be torn; a cowextsize of one page ("8k" of PostgreSQL) lets XFS take smaller pieces'
            )
        if not self.refusals:
            return None
        named = ", ".join(f"{number:,} {name}" for name, number in self.refused.items())
        return (
            f"the kernel refused an untorn write for {self.refusals:,} of {asked:,} pages ({named}), which were written plainly and "
            "may be torn"
        )


@dataclass(frozen=True)
class PageLayout:
    """Where the pages of the files lie that the server wrote with direct I/O, as the file system maps them (FIEMAP)."""

    files: int
    """files with a page or more"""
    pages: int
    """whole pages in them"""
    extents: int
    """pieces that the files are in"""
    unaligned: int
    """pages that do not begin at a multiple of their size on the device"""
    divided: int
    """pages in two or more places"""
    unmapped: int
    """pages without a place: holes, or not yet written back"""

    @property
    def misplaced(self) -> int:
        """Pages that no device's promise for aligned writes covers, at the most."""
        return self.unaligned + self.divided + self.unmapped


@dataclass(frozen=True)
class PageFacts:
    """What a recording knows of its server's pages."""

    page_bytes: int
    """size of a page"""
    unit_min_bytes: int | None
    """the smallest untorn write that the file system takes (statx), 0 for none; null where the kernel does not say"""
    unit_max_bytes: int | None
    """the largest"""
    unit_max_optimised_bytes: int | None
    """the largest that needs no copy on write, 0 where each does"""
    probe: str
    """what a single untorn write of a page into the data directory came to: `taken`, or the error's name"""
    direct_files: int
    """files below the data directory that the server's processes had open with O_DIRECT, without those of its log; in older records
    with them, also in what follows"""
    before: PageLayout
    """of these files before the clients began"""
    after: PageLayout
    """and when they had ended"""
    counts: PageCounts | None = None
    """what the preloaded library counted; null without it"""
    writes: int | None = None
    """writes of the clients' time with a part of these files, as they lay in the end, without those of zeros; null where the device has no
    unit, and in older records"""
    uncovered_writes: int | None = None
    """those of them that the unit does not cover, or that are shorter than a page"""


@dataclass(frozen=True)
class RecoveredPages:
    """What the recording of a recovery knows of its server's pages, from its start to its end."""

    direct_files: int
    """files below the data directory that the server's processes had open with O_DIRECT, without those of its log; in older records
    with them, also in what follows"""
    after: PageLayout
    """of these files, when all was written back"""
    counts: PageCounts | None = None
    """what the preloaded library counted; null without it"""
    writes: int | None = None
    """writes of the recovery with a part of these files, as they lay in the end, without those of zeros; null where the device has no unit,
    and in older records"""
    uncovered_writes: int | None = None
    """those of them that the unit does not cover, or that are shorter than a page"""
