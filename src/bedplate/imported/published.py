"""What an adapter finds in a source: runs that somebody published, in the words of a study."""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Protocol

from bedplate.errors import BedplateError, PlanError
from bedplate.model.cell import (
    BuildLevels,
    Cell,
    ClusterLevels,
    DeviceLevels,
    FilesystemLevels,
    KernelLevels,
    RunSpec,
)
from bedplate.model.levels import Levels, Scalar
from bedplate.model.machine import NOT_SAID
from bedplate.model.reason import Reason, because, reasons_of
from bedplate.text_encoding import decode_text
from bedplate.units import GIB, MIB

if TYPE_CHECKING:
    from bedplate.model.figure import Figure

# What stands for a level that a source does not say. It is a level of its own: it equals no known one.
UNKNOWN = NOT_SAID


@dataclass(frozen=True)
class PublishedMachine:
    """Where runs were made, as far as a source says it; `name` tells machines of one source apart."""

    name: str
    cpu_count: int | None = None
    memory_bytes: int | None = None
    disk: str | None = None


@dataclass(frozen=True)
class PublishedRun:
    """One run of a source.

    `series` is what of the source it belongs to where runs of one scale differ. A run with `failure` has no figures; `doubts` make it
    suspect. `file` is where it was found, `text` what stands there. `surroundings` are keys of a visit's provenance.
    """

    machine: PublishedMachine
    cell: Cell
    series: str
    scale: int | None
    spec: RunSpec
    repetition: int
    file: str
    text: str
    figures: tuple[Figure, ...] = ()
    duration_s: float | None = None
    started_wall_s: float | None = None
    failure: Reason | None = None
    doubts: tuple[Reason, ...] = ()
    surroundings: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Publication:
    """All that an adapter made of a source; a problem is what was left out, and why."""

    runs: tuple[PublishedRun, ...]
    problems: tuple[Reason, ...] = ()


class Adapter(Protocol):
    """A form of publication."""

    @property
    def name(self) -> str:
        """For the command line."""

    @property
    def words(self) -> str:
        """For people."""

    def recognises(self, source: PublishedSource) -> bool:
        """Whether a source looks like this form, by the names of its files and the heads of a few."""

    def read(self, source: PublishedSource) -> Publication:
        """Its runs. What is damaged is a problem each; nothing is raised for a source."""


def published_cell(
    engine: str,
    filesystem: str = UNKNOWN,
    *,
    features: Mapping[str, Scalar] | None = None,
    barrier: bool | None = None,
    kernel: str | None = None,
    version: str = UNKNOWN,
) -> Cell:
    """A cell of an engine; `features` is what the source varied besides, by its own names."""
    return Cell(
        DeviceLevels(),
        KernelLevels(kernel),
        FilesystemLevels(filesystem, barrier=barrier, features=Levels(features or {})),
        BuildLevels(engine, version=version),
        ClusterLevels(),
    )


# The largest corpus known has 27,805 files, and what a tool prints of a run is a kilobyte.
MOST_FILES = 200_000

MOST_LEVELS = 12
MOST_BYTES = int(64 * MIB)

# Of a text that is kept beside its run.
MOST_TEXT_BYTES = int(1 * MIB)

_LONGEST_WORDS = 200


class SourceUnreadable(BedplateError):
    """A file of a source cannot be read, or is not what its name says; the rest of the source is used."""

    code = "source-unreadable"


class PublishedSource:
    """What `bedplate import` is given. Paths of its files are relative to `root`, a folder, or the folder of a single file."""

    def __init__(self, path: Path) -> None:
        """PlanError where nothing is there that can be read."""
        try:
            # What is named by hand may be a link; what is found in it may not.
            self.path = path.resolve(strict=True)
            mode = self.path.stat().st_mode
        except (OSError, RuntimeError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "it has no end"
            raise PlanError(f"{shown(path)} cannot be read: {why}") from error
        if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
            raise PlanError(f"{shown(path)} is neither a folder nor a plain file")
        self.is_file = stat.S_ISREG(mode)
        self.root = self.path.parent if self.is_file else self.path
        self._problems: dict[str, Reason] = {}
        self._unreadable: dict[str, Reason] = {}

    @property
    def name(self) -> str:
        """What a person calls it."""
        return shown(self.path.name)

    @property
    def problems(self) -> tuple[Reason, ...]:
        """One for each entry that is left out, as far as it was looked at."""
        return tuple(self._problems.values())

    @property
    def unreadable(self) -> tuple[Reason, ...]:
        """One for each file that was looked into, and is not what its name says."""
        return tuple(self._unreadable.values())

    @cached_property
    def files(self) -> tuple[PurePosixPath, ...]:
        """Its plain files in the order of their names; links, pipes and what lies too deep are problems."""
        if self.is_file:
            return (PurePosixPath(self.path.name),)
        return tuple(sorted(self._walk(PurePosixPath(), MOST_LEVELS)))

    def above(self, file: PurePosixPath, count: int) -> tuple[str, ...]:
        """The names of the folders of a file, the outermost first: `count` of them, beyond the source's own where it has fewer."""
        return (*self.root.parts[1:], *file.parts[:-1])[-count:]

    def has(self, file: PurePosixPath) -> bool:
        """Whether it has a plain file of that name."""
        return file in self._known

    def read_bytes(self, file: PurePosixPath, most: int = MOST_BYTES) -> bytes:
        """What a file holds. SourceUnreadable for more than `most` bytes, a link, or anything but a plain file."""
        path = self.root / file
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as stream:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise self.refusal(file, "is no plain file")
                data = stream.read(most + 1)
        except OSError as error:
            raise self.refusal(file, f"cannot be read: {error.strerror}") from error
        if len(data) > most:
            raise self.refusal(file, f"has more than {most} bytes")
        return data

    def read_text(self, file: PurePosixPath, most: int = MOST_BYTES) -> str:
        """The same as text, its lines ended as on Linux. SourceUnreadable where it is no UTF-8 either."""
        data = self.read_bytes(file, most)
        try:
            return decode_text(data).replace("\r\n", "\n")
        except ValueError as error:
            raise self.refusal(file, f"cannot be read: {error}") from error

    def refusal(self, file: PurePosixPath, why: str) -> SourceUnreadable:
        """The error of a file that is not what its name says; it is remembered, as no form may know the source without that file."""
        error = SourceUnreadable(f"{shown(file)} {why}")
        self._unreadable[str(file)] = because(error.code, str(error))
        return error

    @cached_property
    def _known(self) -> frozenset[PurePosixPath]:
        return frozenset(self.files)

    def _walk(self, folder: PurePosixPath, levels: int) -> Iterator[PurePosixPath]:
        count = 0
        pending = [(folder, levels)]
        while pending:
            folder, levels = pending.pop()
            try:
                with os.scandir(self.root / folder) as entries:
                    for entry in entries:
                        place = folder / entry.name
                        if entry.is_symlink():
                            self._leave_out(place, "is a link, and links are not followed")
                        elif entry.is_dir(follow_symlinks=False):
                            if levels > 1:
                                pending.append((place, levels - 1))
                            else:
                                self._leave_out(place, f"lies more than {MOST_LEVELS} levels deep")
                        elif entry.is_file(follow_symlinks=False):
                            count += 1
                            if count > MOST_FILES:
                                raise PlanError(
                                    f"{shown(self.path)} has more than {MOST_FILES} files; name a folder in it"
                                )
                            yield place
                        else:
                            self._leave_out(place, "is no plain file")
            except OSError as error:
                self._leave_out(folder, f"cannot be read: {error.strerror}")

    def _leave_out(self, place: PurePosixPath, why: str) -> None:
        self._problems[str(place)] = because("source-entry-left-out", f"{shown(place)} {why}")


def shown(path: Path | PurePosixPath | str) -> str:
    """A path as a record and a terminal can hold it: a name may be any bytes."""
    text = str(path)
    # Half of a character, which JSON can hold, is no byte of a name.
    with suppress(UnicodeEncodeError):
        text = os.fsencode(text).decode("utf-8", "replace")
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


@contextmanager
def as_problems(file: str, problems: list[Reason]) -> Iterator[None]:
    """Whatever a file brings about is a problem of that file, and the rest of the source is used.

    Numbers and names have bounds where they are read. This holds for what those forget.
    """
    try:
        yield
    except SourceUnreadable as error:
        problems += reasons_of(error)
    except (ValueError, ArithmeticError, RecursionError) as error:
        words = shown(str(error))[:_LONGEST_WORDS]
        problems.append(because(SourceUnreadable.code, f"{file} cannot be read: {words}"))


# No figure of a machine comes near; beyond it nothing can be drawn (`study/checksums.py`).
_LARGEST = 1e15

_LONGEST = 40


def number(told: Any) -> float | None:
    """A number that is not negative; None for anything else."""
    if isinstance(told, bool) or not isinstance(told, (str, int, float)) or len(str(told)) > _LONGEST:
        return None
    # Python takes `1_000`, which nobody prints.
    if isinstance(told, str) and "_" in told:
        return None
    try:
        found = float(told)
    except ValueError:
        return None
    return found if math.isfinite(found) and 0 <= found <= _LARGEST else None


def whole(told: Any) -> int | None:
    """The same of a whole number."""
    found = number(told)
    return int(found) if found is not None and found == int(found) else None


def gibibytes(told: Any) -> int | None:
    """A size in GiB, as bytes."""
    found = number(told)
    size = None if found is None else number(found * GIB)
    return None if size is None else int(size)


def moment(told: Any) -> float | None:
    """A date, or a date with its time, as Unix time; one without a zone is taken for UTC."""
    try:
        found = datetime.fromisoformat(str(told or "")[:_LONGEST])
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
