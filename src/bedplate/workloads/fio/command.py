"""fio as packaged: the argument list of one job, and what decides its result written out.

Options come from the allow-list of `options`. What else the command line holds is ours: where
the files lie, how results are printed, and defaults of fio that a figure depends on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.workloads.fio.options import fio_misfits, fio_words

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from bedplate.model.levels import Levels

PROGRAM = "fio"
# The percentiles that bedplate has for every latency.
PERCENTILES = (50.0, 95.0, 99.0, 99.9)
# A job's name begins its files' names, so it is a single harmless word.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}", re.ASCII)
# Written out, because another version of fio may think otherwise, and the record shows what was asked.
_DEFAULTS: Mapping[str, str] = {
    "ioengine": "psync",
    "iodepth": "1",
    "numjobs": "1",
    "direct": "0",
    # The file's pages leave the cache before the job begins, as far as the file system obeys.
    "invalidate": "1",
    # Each run lays out files of its own; what an earlier one left would change what is measured.
    "unlink": "1",
    # The same offsets in every repetition, so that only the system differs.
    "randrepeat": "1",
}


def fio_path(path: Path | str) -> str:
    r"""As fio's `directory` and `filename` take it: a colon ends one path and begins the next, `\:` is one."""
    return str(path).replace(":", r"\:")


@dataclass(frozen=True)
class FioJob:
    """One fio job: a name, and options in fio's spelling as a plan's table gives them.

    `size` is each of `numjobs` processes' own, as fio has it. A `runtime` is the time that the job
    runs, over and over its files; `time_based = false` ends it earlier, when its size is done.
    ValueError holds every reason at once.
    """

    name: str
    options: Levels

    def __post_init__(self) -> None:
        words, reasons = fio_words(self.options)
        if not _NAME.fullmatch(self.name):
            reasons.append(
                f"fio job {self.name!r}: its name begins the names of its files; use letters, digits, - and _"
            )
        # Rules between options speak of values that were understood.
        if not reasons:
            reasons.extend(fio_misfits(words))
        if reasons:
            raise ValueError("; ".join(reasons))

    @property
    def words(self) -> dict[str, str]:
        """Every option of the job as fio takes it, those that the plan left open too."""
        asked, _ = fio_words(self.options)
        implied = {"time_based": "1"} if "runtime" in asked else {}
        return {**_DEFAULTS, **implied, **asked}

    @property
    def total_size_bytes(self) -> int:
        """The bytes of all its files together: what must fit on the scratch device."""
        words = self.words
        return int(words["size"]) * int(words["numjobs"])

    def argv(self, directory: Path, *, log_prefix: Path | None = None, program: str = PROGRAM) -> list[str]:
        """The argument list; standard output is then fio's JSON, with its remarks before it.

        The files lie in `directory`, which must exist. With `log_prefix`, an absolute path outside of
        it, fio writes bandwidth, operations and latency per second to `<log_prefix>_bw.log`,
        `_iops.log`, `_lat.log`, `_slat.log` and `_clat.log`, each second averaged to one line.
        """
        if not directory.is_absolute():
            raise ValueError(f"fio's directory {directory} must be an absolute path")
        logs = []
        if log_prefix is not None:
            if not log_prefix.is_absolute() or log_prefix.is_relative_to(directory):
                raise ValueError(f"fio's logs {log_prefix} must be an absolute path outside of {directory}")
            logs = [f"--write_{kind}_log={log_prefix}" for kind in ("bw", "iops", "lat")]
            # One file for all processes, one line for a second.
            logs += ["--log_avg_msec=1000", "--per_job_logs=0"]
        return [
            program,
            "--output-format=json",
            "--eta=never",
            f"--name={self.name}",
            f"--directory={fio_path(directory)}",
            *(f"--{name}={word}" for name, word in self.words.items()),
            "--group_reporting=1",
            "--clat_percentiles=1",
            "--lat_percentiles=1",
            f"--percentile_list={':'.join(f'{percentile:g}' for percentile in PERCENTILES)}",
            *logs,
        ]
