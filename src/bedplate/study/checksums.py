"""The checksums of a finished visit: taken before it gets its place, held against its files by every reader.

They find what was damaged or changed by mistake. Who changes a file and its checksum alike is not found.
"""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from bedplate.errors import StudyError
from bedplate.model import codec
from bedplate.model.visit import FORMAT_VERSION, KNOWN_FORMATS
from bedplate.study.records import Checksums, FileChecksum, StudyFacts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bedplate.study.layout import StudyLayout

Record = TypeVar("Record")
CHECKSUMS_FILE = "checksums.json"
# What figures, tables and pages are made from; a visit with another one of these is not used. The rest are logs.
_RECORD_SUFFIXES = (".json", ".jsonl", ".parquet")
_CHANGED = "was changed after its visit had ended: its checksum is another"


def write_checksums(directory: Path) -> None:
    """Take the checksums of all files of a visit, and write them beside them."""
    files = {
        name: FileChecksum(size_bytes, _sha256_of(directory / name))
        for name, size_bytes in sorted(_sizes(directory).items())
        if name != CHECKSUMS_FILE
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
    if layout.extension.is_dir():
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
            self._compare()

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
        for name, expected in self._files.items():
            if self._sizes.get(name) != expected.size_bytes:
                continue  # said already
            try:
                found = _sha256_of(self.directory / name)
            except OSError as error:
                self._note(name, f"cannot be read: {error.strerror}")
                continue
            if found != expected.sha256:
                self._note(name, _CHANGED)

    def _compare(self) -> None:
        for name, expected in self._files.items():
            size_bytes = self._sizes.get(name)
            if size_bytes is None:
                self._note(name, "is missing; it was there when its visit had ended")
            elif size_bytes != expected.size_bytes:
                sizes = f"{size_bytes} bytes, and {expected.size_bytes} before"
                self._note(name, f"was changed after its visit had ended: {sizes}")
        for name in self._sizes.keys() - self._files.keys() - {CHECKSUMS_FILE}:
            self._note(name, "was not there when its visit had ended")

    def _note(self, name: str, what: str) -> None:
        words = f"{self.directory / name} {what}"
        if name.endswith(_RECORD_SUFFIXES):
            self.damage = (*self.damage, words)
        else:
            self.remarks = (*self.remarks, words)


def _sizes(directory: Path) -> dict[str, int]:
    """The size of every file by its path below `directory`; StudyError where that cannot be looked at.

    What is no plain file (a link, a pipe) has none: -1. A name that is no UTF-8 is nobody's here, and left out.
    """
    try:
        found = dict(_listed(os.fspath(directory), ""))
        return {name: size for name, size in found.items() if name.isascii() or _is_text(name)}
    except OSError as error:
        raise StudyError(f"{error.filename or directory} cannot be read: {error.strerror}") from error


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _listed(folder: str, prefix: str) -> Iterator[tuple[str, int]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            name = prefix + entry.name
            if entry.is_dir(follow_symlinks=False):
                yield from _listed(entry.path, f"{name}/")
            else:
                status = entry.stat(follow_symlinks=False)
                yield name, status.st_size if stat.S_ISREG(status.st_mode) else -1


def _sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
