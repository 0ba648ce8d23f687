"""The checksums of a finished visit: taken before it gets its place, held against its files by every reader.

They find what was damaged or changed by mistake. Who changes a file and its checksum alike is not found.
"""

from __future__ import annotations

import hashlib
import stat
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from bedplate.errors import StudyError
from bedplate.model import codec, no_links
from bedplate.model.limits import MOST_FILES, MOST_LEVELS, most_bytes_compared
from bedplate.model.visit import FORMAT_VERSION, KNOWN_FORMATS
from bedplate.study.records import Checksums, FileChecksum, StudyFacts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from bedplate.study.layout import StudyLayout

Record = TypeVar("Record")
CHECKSUMS_FILE = "checksums.json"
# What figures, tables and pages are made from; a visit with another one of these is not used. The rest are logs.
_RECORD_SUFFIXES = (".json", ".jsonl", ".parquet")
# A folder that somebody filled has as many reasons as files: a reader learns nothing from the eleventh.
_MOST_TOLD = 10
_CHANGED = "was changed after its visit had ended: its checksum is another"


def write_checksums(directory: Path) -> None:
    """Take the checksums of all plain files of a visit, and write them beside them; readers name whatever else lies there."""
    files = {
        name: FileChecksum(size_bytes, _sha256_of(directory / name))
        for name, size_bytes in sorted(_sizes(directory).items())
        # Opening a pipe would wait for whoever writes to it.
        if name != CHECKSUMS_FILE and size_bytes >= 0
    }
    codec.write(directory / CHECKSUMS_FILE, Checksums(FORMAT_VERSION, files))


def top_checksums(files: Mapping[str, bytes]) -> dict[str, FileChecksum]:
    """Of the files at the top of a study, by their path below it."""
    return {
        name: FileChecksum(len(data), hashlib.sha256(data).hexdigest())
        for name, data in sorted(files.items())
    }


def changed_top_files(layout: StudyLayout, facts: StudyFacts) -> tuple[str, ...]:
    """Which files of a study itself are not what they were when it was made or extended; none of earlier versions."""
    changed = tuple(_changed_top_files(layout.directory, facts.checksums))
    if not changed:
        return ()
    # Within an extension some are new already and some are not; one may have ended since `facts` was read.
    if no_links.is_there(layout.extension):
        return ()
    return tuple(_changed_top_files(layout.directory, codec.read(StudyFacts, layout.facts).checksums))


def _changed_top_files(directory: Path, checksums: Mapping[str, FileChecksum]) -> Iterator[str]:
    for name, expected in checksums.items():
        path, below = directory / name, Path(name)
        # The study's own path may have `..` in it.
        if below.is_absolute() or ".." in below.parts:
            yield f"study.json has a checksum of {name!r:.200}, which is no file of the study"
            continue
        try:
            found = hashlib.sha256(codec.read_bytes(path)).hexdigest()
        except StudyError as error:
            yield from error.reasons
            continue
        if found != expected.sha256:
            yield f"{path} was changed after the study was made or extended: its checksum is another"


class VisitFiles:
    """The files of a finished visit, held against its checksums; a visit of an earlier version has none.

    `damage` says why the visit must not be used, `remarks` what is to be named and changes no figure. Both come
    from names and sizes; the content of a file is compared when it is read, or by `verify`.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._sizes = _sizes(directory)
        self.damage: tuple[str, ...] = ()
        self.remarks: tuple[str, ...] = ()
        self._files: Mapping[str, FileChecksum] = {}
        self.has_checksums = CHECKSUMS_FILE in self._sizes
        if self.has_checksums:
            found = codec.read(Checksums, directory / CHECKSUMS_FILE)
            if found.format_version not in KNOWN_FORMATS:
                raise StudyError(f"{directory / CHECKSUMS_FILE} is of format {found.format_version}")
            self._files = found.files
            self._note(self._changed_sizes())

    @property
    def size_bytes(self) -> int:
        """Of all files that have a checksum."""
        return sum(file.size_bytes for file in self._files.values())

    @property
    def count(self) -> int:
        """How many files have a checksum."""
        return len(self._files)

    def has(self, name: str) -> bool:
        """Whether there is such a file."""
        return name in self._sizes

    def names(self, ending: str) -> list[str]:
        """The paths of all files of this name, in order."""
        return sorted(name for name in self._sizes if name.rpartition("/")[2] == ending)

    def record(self, kind: type[Record], name: str) -> Record:
        """The record in a file; StudyError if it does not fit, or is not what it was when the visit had ended."""
        return codec.loads(kind, self.text(name), source=str(self.directory / name))

    def text(self, name: str) -> str:
        """The text of a file; StudyError if it is not what it was when the visit had ended."""
        path = self.directory / name
        data = codec.read_bytes(path)
        expected = self._files.get(name)
        if expected is not None and hashlib.sha256(data).hexdigest() != expected.sha256:
            raise StudyError(f"{path} {_CHANGED}")
        return codec.decode(data, source=str(path))

    def verify(self) -> None:
        """Compare the content of every file; adds to `damage` and `remarks`."""
        self._note(self._changed_content())

    def _changed_content(self) -> Iterator[tuple[str, str]]:
        for name, expected in self._files.items():
            if self._sizes.get(name) != expected.size_bytes or expected.size_bytes < 0:
                continue  # said already
            if expected.size_bytes > (most_bytes := most_bytes_compared(name.rpartition("/")[2])):
                yield (
                    name,
                    f"is not compared: it has {expected.size_bytes:,} bytes, and at most {most_bytes:,} are",
                )
                continue
            try:
                found = _sha256_of(self.directory / name)
            except StudyError as error:
                yield name, f"is not compared: {'; '.join(error.reasons)}"
                continue
            if found != expected.sha256:
                yield name, _CHANGED

    def _changed_sizes(self) -> Iterator[tuple[str, str]]:
        for name, expected in self._files.items():
            size_bytes = self._sizes.get(name)
            if size_bytes is None:
                yield name, "is missing; it was there when its visit had ended"
            elif size_bytes < 0:
                yield name, "was changed after its visit had ended: it is no plain file any more"
            elif size_bytes != expected.size_bytes:
                sizes = f"{size_bytes} bytes, and {expected.size_bytes} before"
                yield name, f"was changed after its visit had ended: {sizes}"
        for name in self._sizes.keys() - self._files.keys() - {CHECKSUMS_FILE}:
            yield name, "was not there when its visit had ended"

    def _note(self, changes: Iterable[tuple[str, str]]) -> None:
        """The first changes in words, each of a record as damage; of the rest how many there are."""
        damage: list[str] = []
        remarks: list[str] = []
        for name, what in changes:
            (damage if name.endswith(_RECORD_SUFFIXES) else remarks).append(f"{self.directory / name} {what}")
        self.damage = (*self.damage, *_first(damage, f"records of {self.directory}"))
        self.remarks = (*self.remarks, *_first(remarks, f"files of {self.directory}"))


def _first(words: list[str], what: str) -> Iterator[str]:
    yield from words[:_MOST_TOLD]
    if len(words) > _MOST_TOLD:
        yield f"and so are {len(words) - _MOST_TOLD:,} more {what}"


def _sizes(directory: Path) -> dict[str, int]:
    """The size of every file by its path below `directory`; StudyError where that cannot be looked at, or is more than a visit has.

    What is no plain file (a link, a pipe) has none: -1. A name that is no UTF-8 is nobody's here, and left out.
    """
    found: dict[str, int] = {}
    count = 0
    try:
        for name, entry in no_links.entries_below(directory):
            count += 1
            if name.count("/") >= MOST_LEVELS:
                raise StudyError(
                    f"{directory} is not read: {name:.200} lies deeper than {MOST_LEVELS} folders, where a visit has nothing"
                )
            if count > MOST_FILES:
                raise StudyError(
                    f"{directory} is not read: it has more than {MOST_FILES:,} files and folders, and no visit has as many"
                )
            if not entry.is_dir(follow_symlinks=False) and (name.isascii() or _is_text(name)):
                status = entry.stat(follow_symlinks=False)
                found[name] = status.st_size if stat.S_ISREG(status.st_mode) else -1
    except OSError as error:
        raise StudyError(f"{directory / (error.filename or '')} cannot be read: {error.strerror}") from error
    return found


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _sha256_of(path: Path) -> str:
    with codec.opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
