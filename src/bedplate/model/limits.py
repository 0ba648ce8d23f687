"""The most that a file of each kind may hold, whoever wrote it: a reader that takes whatever is there ends with the memory.

Each limit is far above what the largest study has that a plan may ask for, or a hundred times what real ones have, so that no honest
file meets it. Who writes such a file is held to the same limit (`codec.write`): what was written can be read.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from bedplate.errors import StudyError
from bedplate.units import GIB, KIB, MIB

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

# Device and inode, by the absolute path with its links and without; a relative one means another directory after chdir(2).
_LOOKED_AT: dict[str, tuple[int, int]] = {}


def remember(directory: Path, descriptor: int) -> None:
    """From now on nothing below this directory is reached by a link; it was looked at by this descriptor."""
    status = os.fstat(descriptor)
    for name in (str(directory.absolute()), str(directory.resolve())):
        _LOOKED_AT[name] = (status.st_dev, status.st_ino)


def open_without_links(path: Path, flags: int) -> int:
    """open(2) of a path; below a directory that was looked at neither it nor anything on the way may be a link.

    OSError as of open(2). StudyError where a link or a file stands in the place of a folder, or another directory in that of the
    one that was looked at.
    """
    flags |= os.O_CLOEXEC
    text = str(path)
    try:
        absolute = top = str(path.absolute())
    except OSError:  # the directory that it starts from is gone
        return os.open(text, flags)
    while top not in _LOOKED_AT:
        if top == "/":
            return os.open(text, flags)
        top = top.rpartition("/")[0] or "/"
    names = absolute[len(top) :].strip("/").split("/")
    if top == absolute:
        names = ["."]
    folder = os.open(top, _FOLDER)
    try:
        status = os.fstat(folder)
        if (status.st_dev, status.st_ino) != _LOOKED_AT[top]:
            raise StudyError(
                f"{top} is another directory than when all of it was looked at; call bedplate again"
            )
        for place, name in enumerate(names[:-1]):
            above = folder
            try:
                folder = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=above)
            except OSError as error:
                if error.errno not in {errno.ENOTDIR, errno.ELOOP}:
                    raise
                where = "/".join((top, *names[: place + 1]))
                raise StudyError(f"{where} is a link, or no folder: nothing is read through it") from error
            os.close(above)
        return os.open(names[-1], flags | os.O_NOFOLLOW, dir_fd=folder)
    except OSError as error:
        error.filename = text
        raise
    finally:
        os.close(folder)


def is_there(path: Path) -> bool:
    """Whether anything has this name; a link is something, wherever it leads."""
    return _mode(path) is not None


def is_file(path: Path) -> bool:
    """Whether a plain file stands there; a link is none."""
    return stat.S_ISREG(_mode(path) or 0)


def _mode(path: Path) -> int | None:
    try:
        descriptor = open_without_links(path, os.O_PATH | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        return os.fstat(descriptor).st_mode
    finally:
        os.close(descriptor)


def entries_below(directory: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """All that is below a folder, each with its path from there; a folder comes before what is in it, and links are not followed.

    OSError where a folder cannot be listed. An entry is to be asked while it is at hand.
    """
    folders = [("", open_without_links(directory, _FOLDER | os.O_NOFOLLOW))]
    scans = [os.scandir(folders[0][1])]
    try:
        while folders:
            prefix, descriptor = folders[-1]
            if (entry := next(scans[-1], None)) is None:
                scans.pop().close()
                os.close(folders.pop()[1])
                continue
            yield prefix + entry.name, entry
            if entry.is_dir(follow_symlinks=False):
                below = os.open(entry.name, _FOLDER | os.O_NOFOLLOW, dir_fd=descriptor)
                folders.append((f"{prefix}{entry.name}/", below))
                scans.append(os.scandir(below))
    finally:
        for scan in scans:
            scan.close()
        for _, descriptor in folders:
            os.close(descriptor)


def names_in(directory: Path) -> dict[str, bool]:
    """The names in a folder, in order, and whether each is a folder too; none where there is no folder."""
    try:
        descriptor = open_without_links(directory, _FOLDER | os.O_NOFOLLOW)
    except FileNotFoundError:
        return {}
    except NotADirectoryError as error:
        if is_file(directory):
            return {}
        raise StudyError(f"{directory} is a link, or no folder: nothing is read through it") from error
    try:
        with os.scandir(descriptor) as entries:
            return dict(sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries))
    finally:
        os.close(descriptor)


def folders_below(directory: Path, *, levels: int = 1) -> Iterator[Path]:
    """The folders so many levels below one, by their paths in order."""
    for name, is_folder in names_in(directory).items():
        if is_folder and levels > 1:
            yield from folders_below(directory / name, levels=levels - 1)
        elif is_folder:
            yield directory / name


class FileLimit(NamedTuple):
    """The most bytes of a file, and what real ones have."""

    most_bytes: int
    real: str


# By the name of a file, else by its ending.
FILE_LIMITS: Mapping[str, FileLimit] = {
    "study.json": FileLimit(8 * MIB, "3 KB, and 100 bytes for each extension and each file of the plan"),
    "schedule.json": FileLimit(
        64 * MIB, "200 bytes a visit and 1 KB a cell; 40 MB at the most cells and visits of a plan"
    ),
    "search.json": FileLimit(32 * MIB, "100 bytes a candidate, and 60 for each cell of a block"),
    "paired.json": FileLimit(8 * MIB, "100 bytes a block"),
    "bisect.json": FileLimit(8 * MIB, "300 bytes a commit that was measured"),
    "machine.json": FileLimit(4 * MIB, "2 KB"),
    "plan.toml": FileLimit(4 * MIB, "1 KB; a plan has at most a million characters"),
    "checksums.json": FileLimit(32 * MIB, "170 bytes a file"),
    "visit.json": FileLimit(
        16 * MIB, "20 KB, with the plan's own configurations and scripts, of 1 MiB each at most"
    ),
    "record.json": FileLimit(16 * MIB, "10 KB, with the plan's own scripts"),
    "run.json": FileLimit(
        32 * MIB,
        "300 bytes a figure, 40 figures a run; thousands where each query of each stream has its own",
    ),
    "job.json": FileLimit(32 * MIB, "150 bytes a cut, of at most 100,000"),
    "recording.json": FileLimit(4 * MIB, "2 KB"),
    "points.jsonl": FileLimit(128 * MIB, "600 bytes a cut, of at most 100,000"),
    "blame.jsonl": FileLimit(64 * MIB, "5 KB a cut that was looked into"),
    "plans.json": FileLimit(32 * MIB, "5 KB a query"),
    "engine.toml": FileLimit(1 * MIB, "1 KB"),
    "course.parquet": FileLimit(256 * MIB, "200 bytes a second"),
    "latency.parquet": FileLimit(256 * MIB, "300 bytes a second"),
    "failure.txt": FileLimit(1 * MIB, "4,000 characters of what the process of a job said last"),
    "whole-seconds.txt": FileLimit(1 * KIB, "a number"),
    "request.json": FileLimit(32 * MIB, "20 KB, with the plan's own configurations and scripts"),
    ".json": FileLimit(
        64 * MIB, "some KB; the order of a job of a fleet holds the requests of all its visits"
    ),
    ".jsonl": FileLimit(128 * MIB, "some KB"),
    ".toml": FileLimit(4 * MIB, "1 KB"),
    ".xz": FileLimit(16 * GIB, "10 MB a recording"),
}

# Of a text that is none of these: a script, a configuration, a file of claims, a note.
TEXT_LIMIT = FileLimit(4 * MIB, "some KB")

# Of a log, which is compared with its checksum and not read as a whole.
LOG_LIMIT = FileLimit(4 * GIB, "1 MB")

# Of a kernel and of one of its modules, as they are when they are unpacked.
KERNEL_LIMIT = FileLimit(512 * MIB, "70 MB, some 300 MB with everything in it")

MODULE_LIMIT = FileLimit(256 * MIB, "5 MB, and some 100 MB with all its symbols")

# Below a visit: 100,000 cuts in recovery keep some ten thousand logs.
MOST_FILES = 100_000

# runs/NAME/logs/FILE is four.
MOST_LEVELS = 12

# Of a study. A visit begins at the fourth level; scripts of a plan may lie in folders of their own.
MOST_STUDY_LEVELS = 40

MOST_STUDY_FILES = 2_000_000

# A JSON document of so many values takes some 300 MiB of memory, whatever they are. A schedule of 100,000 visits has a million.
MOST_VALUES = 3_000_000

# Of a file that has a record on each line: points of 100,000 cuts, and of as many in recovery.
MOST_LINES = 250_000

# Of what tables repeat on every row: a title, the name of a run, a level of a cell. A hundred options of mkfs of 200 characters each,
# as a plan may have them, are the longest.
MOST_NAME_CHARACTERS = 25_000

# Of a cell, a dataset or a run. A table has a column for each; the longest list of a server's settings has some hundred.
MOST_NAMED_LEVELS = 1000


def most_bytes_of(name: str) -> int:
    """The limit of a file that is read as a whole, by its name."""
    return _limit(name, TEXT_LIMIT).most_bytes


def most_bytes_compared(name: str) -> int:
    """The limit of a file of a visit that is compared with its checksum, piece by piece."""
    return _limit(name, LOG_LIMIT).most_bytes


def read_at_most(path: Path, most_bytes: int) -> bytes:
    """What a file holds that somebody named; OSError where it is more than that, as of a file that cannot be read."""
    with os.fdopen(open_without_links(path, os.O_RDONLY), "rb") as file:
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise OSError(errno.EFBIG, f"it has more than {most_bytes:,} bytes", str(path))
    return data


def too_long(subject: str, *texts: str) -> Iterator[str]:
    """That one of these texts is longer than anything that tables repeat on each row may be."""
    longest = max(map(len, texts), default=0)
    if longest > MOST_NAME_CHARACTERS:
        yield f"{subject} has {longest:,} characters; allowed are {MOST_NAME_CHARACTERS:,}"


def _limit(name: str, otherwise: FileLimit) -> FileLimit:
    return FILE_LIMITS.get(name) or FILE_LIMITS.get(f".{name.rpartition('.')[2]}", otherwise)
