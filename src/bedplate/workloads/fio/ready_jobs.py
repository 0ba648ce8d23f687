"""Ready fio jobs: what databases do to files, option by option, each with its reason.

Sizes and times are the plan's to choose, so a ready job has none: `size`, and a `runtime` where it has
one. Whatever a plan gives beside `job = "…"` stands above the ready job's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bedplate.model.levels import Levels, Scalar


@dataclass(frozen=True)
class ReadyJob:
    """A named job: what it stands for, its options in fio's spelling, and why each has its value."""

    stands_for: str
    options: Levels
    reasons: Mapping[str, str]


def _job(stands_for: str, **options: tuple[Scalar, str]) -> ReadyJob:
    return ReadyJob(
        stands_for,
        Levels({name: value for name, (value, _) in options.items()}),
        {name: reason for name, (_, reason) in options.items()},
    )


_PSYNC = ("psync", "a backend calls pread and pwrite, and waits for each")
_BUFFERED = (False, "PostgreSQL reads and writes through the page cache, unless debug_io_direct is set")
_LOG_BLOCK = ("8 kB", "a commit writes at least one block of the log (wal_block_size)")
_COMMIT = (1, "each commit waits until its block is durable; fdatasync is the default on Linux")

READY_FIO_JOBS: Mapping[str, ReadyJob] = {
    "random-read-8k": _job(
        "index lookups in a table that does not fit in memory",
        rw=("randread", "which block comes next depends on the key"),
        bs=("8 kB", "the block of a table (block_size)"),
        ioengine=_PSYNC,
        direct=_BUFFERED,
        fadvise_hint=(
            False,
            "PostgreSQL does not tell the kernel that it reads at random: the read-ahead is part of it",
        ),
        norandommap=(
            False,
            "each block once before any again, so that in the first pass no read finds its block in the cache",
        ),
        time_based=(False, "a second pass would read from the cache; the size bounds the run"),
    ),
    "wal-append": _job(
        "commits to a log whose file grows: LevelDB's, or PostgreSQL's with wal_init_zero off",
        rw=("write", "a log is written in order"),
        bs=_LOG_BLOCK,
        ioengine=_PSYNC,
        direct=_BUFFERED,
        fdatasync=_COMMIT,
        fallocate=(
            "none",
            "fio would reserve the blocks first, and the file system allocate none at a commit",
        ),
        time_based=(False, "a second pass would overwrite what is there, and the file no longer grow"),
    ),
    "wal-overwrite": _job(
        "commits to a log in recycled segments: PostgreSQL's WAL as it comes",
        rw=("write", "a log is written in order"),
        bs=_LOG_BLOCK,
        ioengine=_PSYNC,
        direct=_BUFFERED,
        fdatasync=_COMMIT,
        overwrite=(
            True,
            "segments were filled or used before (wal_init_zero, wal_recycle), so fdatasync allocates nothing",
        ),
    ),
    "checkpoint": _job(
        "a checkpoint: dirty blocks all over the tables, and a sync at the end",
        rw=("randwrite", "dirty blocks are spread over the tables"),
        bs=("8 kB", "the block of a table (block_size)"),
        ioengine=_PSYNC,
        direct=_BUFFERED,
        overwrite=(True, "the tables' blocks exist; a checkpoint extends nothing"),
        sync_file_range=(
            "write:32",
            "checkpoint_flush_after is 256 kB on Linux: after so much the kernel begins writing",
        ),
        end_fsync=(True, "a checkpoint ends with an fsync of every file, and fio's time includes it"),
        time_based=(False, "a checkpoint ends when its blocks are written"),
    ),
    "sequential-scan": _job(
        "a scan of a whole table",
        rw=("read", "a scan reads a table from its first block to its last"),
        bs=("128 kB", "io_combine_limit: since version 17 a scan reads 16 blocks at once, before it 8 kB"),
        ioengine=_PSYNC,
        direct=_BUFFERED,
        fadvise_hint=(False, "PostgreSQL gives the kernel no hint; its read-ahead notices by itself"),
        time_based=(False, "a second pass would read from the cache; the size bounds the run"),
    ),
}
