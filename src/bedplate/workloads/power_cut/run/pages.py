"""How a recorded server's pages come to the file system: what it takes untorn, where they lie, and what was counted.

Asked of a server whose pages are to be written untorn, or whose device is said to write a unit whole. Files are known as the server's data
by being open with O_DIRECT, so they are looked for while the clients work, or while the server recovers and is asked.
"""

from __future__ import annotations

import contextlib
import errno
import stat
import threading
from bisect import bisect_left
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from bedplate.errors import BedplateError
from bedplate.host.files import folders_below
from bedplate.host.pages.extents import FileExtent, extents_of, page_layout
from bedplate.host.pages.open_files import direct_files
from bedplate.host.pages.untorn_unit import TAKEN, probe_untorn_write, untorn_unit
from bedplate.model.cell import UNTORN_ON
from bedplate.model.filesystem import TRAITS
from bedplate.model.page_writes import ENOSPC, PageFacts, RecoveredPages
from bedplate.units import format_size
from bedplate.workloads.power_cut.run.log import DISK
from bedplate.workloads.power_cut.run.window import is_torn

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from collections.abc import Set as AbstractSet

    from bedplate.model.cell import Cell
    from bedplate.model.power_cut import Profile
    from bedplate.visit.untorn_writes import UntornWrites
    from bedplate.workloads.power_cut.run.log import Log

_LOOK_EVERY_S = 0.2
# A server that recovers may be asked all questions, and be gone, within half a second.
_LOOK_AT_RECOVERY_EVERY_S = 0.02
_END_LIMIT_S = 60.0
# Of each file its size and its extents.
_Mapped = dict[Path, tuple[int, tuple[FileExtent, ...]]]


@dataclass(frozen=True)
class PagePlaces:
    """Where pages lie, by bytes of the device, those that touch as one."""

    page_bytes: int
    parts: tuple[tuple[int, int], ...]

    def writes(self, log: Log, entries: range, unit: Profile) -> tuple[int, int]:
        """How many writes had a part of them; and how many of those the unit does not cover, or are shorter than a page.

        By the log, as the kernel joins requests that a server made one by one. Zeros are left out: they are written where nothing was.
        """
        own = [index for index in entries if self._is_met(log, index)]
        uncovered = sum(is_torn(log, unit, index) or log.lengths[index] < self.page_bytes for index in own)
        return len(own), uncovered

    def _is_met(self, log: Log, index: int) -> bool:
        if not log.is_write(index) or log.devices[index] != DISK:
            return False
        start, length = log.offsets[index], log.lengths[index]
        following = bisect_left(self.parts, (start + length,))
        if not following or self.parts[following - 1][1] <= start:
            return False
        with log.data(index) as data:
            return data != bytes(length)


class DirectFiles:
    """Looks again and again for the files below a directory that a server has open with O_DIRECT, but those of its log.

    The directory is named as /proc names it, without a link.
    """

    def __init__(self, below: Path, *, logs: Sequence[str], every_s: float) -> None:
        self._below = below
        self._logs = tuple(logs)
        self._every_s = every_s
        self._found: set[Path] = set()
        self._ended = threading.Event()
        self._looking = threading.Thread(target=self._look, name="page watch", daemon=True)

    def begin(self) -> None:
        """From now on."""
        self._looking.start()

    def end(self) -> AbstractSet[Path] | None:
        """Look once more; those that were ever found, None where the looking has failed."""
        if not self._looking.is_alive():
            return None
        self._ended.set()
        self._looking.join(_END_LIMIT_S)
        return {path for path in self._found if not self._is_of_log(path)}

    def _is_of_log(self, path: Path) -> bool:
        return any(path.relative_to(self._below).match(pattern) for pattern in self._logs)

    def _look(self) -> None:
        has_ended = False
        while not has_ended:
            has_ended = self._ended.wait(self._every_s)
            # Once more behind the last transaction: a short recording is over between two looks.
            self._found |= direct_files(self._below)


class PageWatch:
    """Looks from `with` to its end at the files of a server that runs; `facts` afterwards, None where there is no page to look at.

    `logs` are patterns of the files that are the engine's log, below its data directory.
    BedplateError at its beginning where pages are to be written untorn and the file system refuses the first.
    """

    def __init__(
        self,
        data_directory: Path,
        cell: Cell,
        untorn: UntornWrites | None,
        *,
        wanted: bool,
        logs: Sequence[str] = (),
    ) -> None:
        self.facts: PageFacts | None = None
        self._data_directory = data_directory = data_directory.resolve()
        self._page_bytes = cell.database_block_bytes if wanted or untorn is not None else None
        self._untorn = untorn
        self._has_own_addresses = TRAITS[cell.filesystem.type].has_own_addresses
        self._direct = DirectFiles(data_directory, logs=logs, every_s=_LOOK_EVERY_S)
        self._before: _Mapped = {}
        self._probe = ""
        # Where they lay in the end.
        self._places: PagePlaces | None = None

    def __enter__(self) -> Self:
        if self._page_bytes is not None:
            self._probe = probe_untorn_write(
                self._data_directory.parent / "untorn-write.probe", self._page_bytes
            )
            # For want of room is a finding, and the server meets it too: its pages are counted.
            if (
                self._untorn is not None
                and self._untorn.mode == UNTORN_ON
                and self._probe not in (TAKEN, ENOSPC)
            ):
                raise BedplateError(
                    f"untorn_writes = on: an untorn write of a page of {format_size(self._page_bytes)} into the recorded file system "
                    f"came to {self._probe}; XFS with reflink and blocks no larger than the page takes one, others where the device does"
                )
            paths = (Path(each.path) for _, found in folders_below(self._data_directory) for each in found)
            self._before = _mapped(paths, self._page_bytes, has_own_addresses=self._has_own_addresses)
            self._direct.begin()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._page_bytes is None:
            return
        direct = self._direct.end()
        if kind is None and direct is not None:
            self.facts = self._found(direct, self._page_bytes)

    def facts_of(self, log: Log, measured: range, unit: Profile | None) -> PageFacts | None:
        """With what reached the disk of the pages, where it is said to write a `unit` whole."""
        if self.facts is None or self._places is None or unit is None:
            return self.facts
        writes, uncovered = self._places.writes(log, measured, unit)
        return replace(self.facts, writes=writes, uncovered_writes=uncovered)

    def _found(self, direct: AbstractSet[Path], page_bytes: int) -> PageFacts:
        after = _mapped(direct, page_bytes, has_own_addresses=self._has_own_addresses)
        own = sorted(after)
        self._places = _places(after, page_bytes)
        unit = untorn_unit(own[0] if own else self._data_directory)
        before = [self._before[path] for path in own if path in self._before]
        return PageFacts(
            page_bytes=page_bytes,
            unit_min_bytes=unit.min_bytes if unit else None,
            unit_max_bytes=unit.max_bytes if unit else None,
            unit_max_optimised_bytes=unit.max_optimised_bytes if unit else None,
            probe=self._probe,
            direct_files=len(own),
            before=page_layout(before, page_bytes),
            after=page_layout(after.values(), page_bytes),
            counts=self._untorn.counted() if self._untorn else None,
        )


class RecoveryWatch:
    """Looks from `with` to its end at the files of a server that recovers, if its pages have a size by which to look."""

    def __init__(
        self,
        data_directory: Path,
        filesystem: str,
        page_bytes: int | None,
        untorn: UntornWrites | None,
        *,
        logs: Sequence[str] = (),
    ) -> None:
        self.places: PagePlaces | None = None
        self._page_bytes = page_bytes
        self.untorn = untorn
        self._has_own_addresses = TRAITS[filesystem].has_own_addresses
        self._direct = DirectFiles(data_directory, logs=logs, every_s=_LOOK_AT_RECOVERY_EVERY_S)
        self._found: AbstractSet[Path] | None = None

    def __enter__(self) -> Self:
        if self._page_bytes is not None:
            self._direct.begin()
        return self

    def __exit__(self, *_: object) -> None:
        if self._page_bytes is not None:
            self._found = self._direct.end()

    def facts(self) -> RecoveredPages | None:
        """Once all is written back, as `places`; None where nobody looked."""
        if self._page_bytes is None or self._found is None:
            return None
        after = _mapped(self._found, self._page_bytes, has_own_addresses=self._has_own_addresses)
        self.places = _places(after, self._page_bytes)
        counts = self.untorn.counted() if self.untorn else None
        return RecoveredPages(len(after), page_layout(after.values(), self._page_bytes), counts)


def _mapped(paths: Iterable[Path], page_bytes: int, *, has_own_addresses: bool) -> _Mapped:
    """Sizes and extents of those that are files of a page or more; the server may take one away meanwhile."""
    found: _Mapped = {}
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            status = path.lstat()
            if stat.S_ISREG(status.st_mode) and status.st_size >= page_bytes:
                extents = _extents(path)
                # Of such a file system nobody can tell where on the device a page lies.
                if has_own_addresses:
                    extents = tuple(replace(each, at=None) for each in extents)
                found[path] = (status.st_size, extents)
    return found


def _places(files: _Mapped, page_bytes: int) -> PagePlaces:
    """Of those with a place."""
    found: list[tuple[int, int]] = []
    extents = (each for _, extents in files.values() for each in extents)
    for start, length in sorted((each.at, each.length) for each in extents if each.at is not None):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], start + length))
        else:
            found.append((start, start + length))
    return PagePlaces(page_bytes, tuple(found))


def _extents(path: Path) -> tuple[FileExtent, ...]:
    """None where the file system has no map of its files: no page has a place then."""
    try:
        return extents_of(path)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.ENOTTY):
            raise
        return ()
