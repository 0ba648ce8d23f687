"""The most that a file of each kind may hold, whoever wrote it: a reader that takes whatever is there ends with the memory.

Each limit is far above what the largest study has that a plan may ask for, or a hundred times what real ones have, so that no honest
file meets it. Who writes such a file is held to the same limit (`codec.write`): what was written can be read.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from bedplate.model import no_links
from bedplate.units import GIB, KIB, MIB


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
    with os.fdopen(no_links.open_without_links(path, os.O_RDONLY), "rb") as file:
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise OSError(errno.EFBIG, f"it has more than {most_bytes:,} bytes", str(path))
    return data


def too_long(what: str, *texts: str) -> Iterator[str]:
    """That one of these texts is longer than anything that tables repeat on each row may be."""
    longest = max(map(len, texts), default=0)
    if longest > MOST_NAME_CHARACTERS:
        yield f"{what} has {longest:,} characters; allowed are {MOST_NAME_CHARACTERS:,}"


def _limit(name: str, otherwise: FileLimit) -> FileLimit:
    return FILE_LIMITS.get(name) or FILE_LIMITS.get(f".{name.rpartition('.')[2]}", otherwise)
