"""What lies where a write went: the file on an image, and what the engine calls that part of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatch
from typing import TYPE_CHECKING, NamedTuple

from bedplate import registry
from bedplate.filesystem.metadata_blocks import GRID_BYTES
from bedplate.model.power_cut_blame import WrittenPlace
from bedplate.workloads.power_cut.run.bench import DATA_DIRECTORY
from bedplate.workloads.power_cut.run.log import DISCARD

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bedplate.filesystem.blocks.owners import BlockOwners, Owner
    from bedplate.visit.cut_engine import Subject
    from bedplate.visit.fault_engine import FaultEngine
    from bedplate.visit.page_names import PageNames
    from bedplate.workloads.power_cut.run.log import Log
    from bedplate.workloads.power_cut.run.window import Piece


class Named(NamedTuple):
    """Whose it is, and its name."""

    place: WrittenPlace
    words: str


@dataclass(frozen=True)
class ImageNames:
    """Names by images in turn: the next one is asked where the one before knows no file's name.

    `called` are the engine's own names of files, `log_files` patterns of its log's; whose they are says the `subject`, without which
    parts of files have no names.
    """

    owners: Sequence[BlockOwners]
    pages: PageNames | None
    called: Mapping[str, str] = field(default_factory=dict)
    log_files: tuple[str, ...] = ()
    subject: Subject | None = None

    def of(self, log: Log, piece: Piece) -> Iterator[Named]:
        """Of a part of a write; a discard brings nothing that has a name."""
        if log.flags[piece.entry] & DISCARD:
            yield Named(WrittenPlace.UNKNOWN, "a discard")
            return
        device, offset = log.devices[piece.entry], log.offsets[piece.entry] + piece.start
        with log.data(piece.entry, piece.start, piece.length) as data:
            found: tuple[Owner, ...] = ()
            for owners in self.owners:
                found = owners.of(device, offset, data)
                if found[0].place is not WrittenPlace.UNKNOWN:
                    break
            else:
                found = self._by_whole_blocks(log, piece) or found
            for owner in found:
                yield self._named(owner, bytes(data[owner.start : owner.start + owner.length]))

    def _by_whole_blocks(self, log: Log, piece: Piece) -> tuple[Owner, ...]:
        """The file system's own blocks that a part is of: only its beginning says what a block is, and that may have been kept."""
        begin = log.offsets[piece.entry]
        first, end = begin + piece.start, begin + piece.start + piece.length
        start = max(0, first - first % GRID_BYTES - begin)
        stop = min(log.lengths[piece.entry], end + -end % GRID_BYTES - begin)
        with log.data(piece.entry, start, stop - start) as blocks:
            for owners in self.owners:
                found = owners.of(log.devices[piece.entry], begin + start, blocks)
                if found[0].place is WrittenPlace.METADATA:
                    return found
        return ()

    def _named(self, owner: Owner, data: bytes) -> Named:
        if owner.path is None:
            return Named(owner.place, owner.words)
        inside = owner.path.removeprefix(f"{DATA_DIRECTORY}/")
        if inside == owner.path:
            return Named(WrittenPlace.OTHER_FILE, owner.words)
        page = None
        if self.pages is not None and self.subject is not None:
            page = self.pages.name(inside, owner.offset, data, self.called, self.subject)
        words = owner.words.removeprefix(f"{DATA_DIRECTORY}/")
        is_log = any(fnmatch(inside, pattern) for pattern in self.log_files)
        place = WrittenPlace.ENGINE_LOG if is_log else WrittenPlace.ENGINE
        return Named(place, words if page is None else f"{words}: {page}")


def page_names(engine: str) -> PageNames | None:
    """The engine's own words for parts of its files; None of one that has none."""
    found: PageNames | None = registry.engine_part_or_none(engine, "page_names")
    return found


def log_files(engine: str) -> tuple[str, ...]:
    """Patterns of its log's files, below its data directory; none of an engine that has no log, or none that is known."""
    found: FaultEngine | None = registry.engine_part_or_none(engine, "faulty_disk")
    return () if found is None else found.log_files
