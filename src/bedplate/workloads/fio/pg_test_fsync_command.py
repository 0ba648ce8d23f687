"""pg_test_fsync, from the build that is measured: its argument list.

It writes one file of 16 MiB (a WAL segment) and removes it; the file is the only thing that it may be
told besides the time. On Linux it makes sixteen measurements of the same length, one after another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = "pg_test_fsync"
_FILE = "pg_test_fsync.out"
# Two rounds of four methods (fsync_writethrough is none on Linux), five sizes, two orders of closing,
# and writes without a sync.
_MEASUREMENTS = 16


@dataclass(frozen=True)
class PgTestFsyncJob:
    """One run; ValueError where the time is not a whole number of seconds from 1 to 3600."""

    seconds_per_measurement: int = 5

    def __post_init__(self) -> None:
        if not 1 <= self.seconds_per_measurement <= 3600:
            raise ValueError(
                f"seconds_per_measurement = {self.seconds_per_measurement}: pg_test_fsync takes 1 to 3600"
            )

    @property
    def duration_s(self) -> int:
        """How long the run takes at most; methods that the file system lacks take no time."""
        return _MEASUREMENTS * self.seconds_per_measurement

    def argv(self, directory: Path, programs: Path) -> list[str]:
        """The argument list, with the program from `programs`, a PostgreSQL build's bin directory.

        pg_test_fsync follows its file's name whatever is there: `directory` must be the run's own.
        """
        return [
            str(programs / PROGRAM),
            *("-f", str(self.file_in(directory))),
            *("-s", str(self.seconds_per_measurement)),
        ]

    @staticmethod
    def file_in(directory: Path) -> Path:
        """The file that it writes and removes."""
        return directory / _FILE
