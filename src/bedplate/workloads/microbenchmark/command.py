"""The LMDB driver (drivers/lmdb_bench.c): what it is told for one test, and what its document says went wrong.

The document is read here for that alone, with what a visit has; its figures are made on the host
(`workloads/microbenchmark/output.py`).
"""

from __future__ import annotations

import json
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bedplate.errors import BedplateError
from bedplate.model.lmdb import settings_in_force
from bedplate.model.reason import SCRATCH_DEVICE_FULL, Reason, because
from bedplate.units import MIB, format_size

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from bedplate.model.levels import Levels, Scalar

DRIVER = "lmdb_bench"
LIBRARY = "liblmdb"
# The files of an environment.
FILES = ("data.mdb", "lock.mdb")
# File systems refuse to give out their last few megabytes.
_FULL_BELOW_BYTES = 16 * MIB


@dataclass(frozen=True)
class LmdbCall:
    """One test, as the driver is asked for it.

    `entries`, `value_bytes` and `map_bytes` are the dataset's, `levels` the run's, `settings` the environment's.
    `fresh` makes a new database, else the one that is there is read or overwritten.
    """

    test: str
    fresh: bool
    writes: bool
    entries: int
    value_bytes: int
    levels: Levels
    settings: Levels
    seed: int
    map_bytes: int | None = None

    def argv(self, driver: str, directory: Path) -> tuple[str, ...]:
        """The argument list."""
        in_force = settings_in_force(self.settings)
        return (
            driver,
            f"--directory={directory}",
            f"--tests={self.test}",
            f"--entries={self.entries}",
            f"--value-bytes={self.value_bytes}",
            f"--batch={self.levels.integer('batch') or 1}",
            f"--threads={self.levels.integer('threads') or 1}",
            f"--sync={in_force['sync']}",
            *(("--writemap",) if in_force["writemap"] else ()),
            *(() if in_force["readahead"] else ("--no-readahead",)),
            *((f"--preallocation={in_force['preallocation']}",) if self.fresh else ("--existing",)),
            *(() if self.map_bytes is None else (f"--map-bytes={self.map_bytes}",)),
            # What a test leaves unwritten is part of its price, and no part of the next test's.
            *(("--flush-after",) if self.writes else ()),
            f"--seed={self.seed}",
        )

    def expected_options(self) -> Mapping[str, Scalar]:
        """What the document must say that the driver was told."""
        in_force = settings_in_force(self.settings)
        return {
            **in_force,
            "preallocation": in_force["preallocation"] if self.fresh else "none",
            "entries": self.entries,
            "value_bytes": self.value_bytes,
            "existing": not self.fresh,
        }


@dataclass(frozen=True)
class LmdbDone:
    """One test that was done: its time, how many operations, and the version of the library that did them."""

    seconds: float
    operations: int
    library: str


def read_done(path: Path, call: LmdbCall, *, status: int, said: str) -> LmdbDone:
    """The one test of a document; BedplateError says why it was not done, in the library's own words.

    `status` is how the driver ended, `said` its words on standard error where it left no document.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["failure"] is not None:
            raise BedplateError(*_failure_reasons(document["failure"], call.test))
        if document["interrupted"] is not None:
            raise BedplateError(f"{call.test}: the LMDB driver was ended by {document['interrupted']}")
        _verify_options(document["options"], call)
        (test,) = document["tests"]
        done = LmdbDone(test["elapsed_ns"] / 1e9, test["operations"], str(document["library"]["version"]))
    except OSError as error:
        raise BedplateError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        if status != 0:
            raise BedplateError(
                f"{call.test}: the LMDB driver {_how(status)}{said and f': {said}'}"
            ) from error
        raise BedplateError(f"{call.test}: the LMDB driver left no whole document ({path.name})") from error
    if status != 0:
        raise BedplateError(f"{call.test}: the LMDB driver {_how(status)} after its document")
    return done


def _how(status: int) -> str:
    if status >= 0:
        return f"ended with status {status}"
    number = -status
    hint = "; the kernel's log tells whether memory ran out" if number == signal.SIGKILL else ""
    return f"was killed by {signal.Signals(number).name}{hint}"


def _failure_reasons(failure: Mapping[str, Any], test: str) -> list[Reason]:
    words = f"{test}: {failure['error']} ({failure['step']}, after {failure['operations']} operations)"
    map_full = "MDB_MAP_FULL" in failure["error"]
    if map_full:
        words += "; a larger map_size, or fewer entries, give it room"
    reasons = [because("map-full" if map_full else "test-failed", words, test=test)]
    free_bytes = failure["free_bytes"]
    if free_bytes is not None and free_bytes < _FULL_BELOW_BYTES and not map_full:
        words = (
            f"the scratch device is full: no space left but {format_size(free_bytes)}; fewer entries or a larger "
            "image_size give it room"
        )
        reasons.append(because(SCRATCH_DEVICE_FULL, words))
    return reasons


def _verify_options(options: Mapping[str, Any], call: LmdbCall) -> None:
    wrong = [
        f"{call.test}: {name} = {asked!r} was asked for, and the LMDB driver took {options[name]!r}"
        for name, asked in call.expected_options().items()
        if options[name] != asked
    ]
    if wrong:
        raise BedplateError(*wrong)
