"""The driver (drivers/microbenchmark.c): what it is told for one test, and what its document says went wrong.

The document is read here for that alone, with what a visit has; its figures are made on the host
(`workloads/microbenchmark/output.py`).
"""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from bedplate.errors import BedplateError
from bedplate.model.levels import as_in_a_plan
from bedplate.model.reason import SCRATCH_DEVICE_FULL, Reason, because
from bedplate.units import MIB, format_size

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from bedplate.model.levels import Levels, Scalar

Remedy: TypeAlias = Callable[[str], tuple[str, str] | None]
# File systems refuse to give out their last few megabytes.
_FULL_BELOW_BYTES = 16 * MIB


@dataclass(frozen=True)
class BenchCall:
    """One test, as the driver is asked for it.

    `entries` and `value_bytes` are the dataset's, `levels` the run's; `settings` are all that the engine has of a test
    (`BenchEngine.opened`), `engine` what a person calls it. `fresh` makes a new database, else the one that is there is read or overwritten.
    """

    test: str
    fresh: bool
    writes: bool
    entries: int
    value_bytes: int
    levels: Levels
    settings: Levels
    engine: str
    seed: int

    def argv(self, driver: str, directory: Path) -> tuple[str, ...]:
        """The argument list."""
        return (
            driver,
            f"--directory={directory}",
            f"--tests={self.test}",
            f"--entries={self.entries}",
            f"--value-bytes={self.value_bytes}",
            f"--batch={self.levels.integer('batch') or 1}",
            f"--threads={self.levels.integer('processes') or self.levels.integer('threads') or 1}",
            *(
                (f"--duration-s={duration_s:.0f}",)
                if (duration_s := self.levels.number("duration_s"))
                else ()
            ),
            *(f"--set={name}={as_in_a_plan(level)}" for name, level in self.settings.items()),
            *(() if self.fresh else ("--existing",)),
            # What a test leaves unwritten is part of its price, and no part of the next test's.
            *(("--flush-after",) if self.writes else ()),
            f"--seed={self.seed}",
        )

    def expected_options(self) -> Mapping[str, Scalar]:
        """What the document must say that the driver was told."""
        return {
            "entries": self.entries,
            "value_bytes": self.value_bytes,
            "existing": not self.fresh,
        }


@dataclass(frozen=True)
class BenchDone:
    """One test that was done: its time, how many operations, and the version of the library that did them.

    `commits` are its transactions, 0 of a test that reads.
    """

    seconds: float
    operations: int
    library: str
    commits: int


def read_done(path: Path, call: BenchCall, remedy: Remedy, *, status: int, said: str) -> BenchDone:
    """The one test of a document; BedplateError says why it was not done, in the library's own words.

    `remedy` is that of the engine (`BenchEngine.remedy`), `status` is how the driver ended, `said` its words on standard error where it left no document.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["failure"] is not None:
            raise BedplateError(*_failure_reasons(document["failure"], call.test, remedy))
        if document["interrupted"] is not None:
            raise BedplateError(f"{call.test}: the driver was ended by {document['interrupted']}")
        (test,) = document["tests"]
        _verify({**document["options"], **test["settings"]}, call)
        timed = test["latency"] or {"of": None}
        done = BenchDone(
            test["elapsed_ns"] / 1e9,
            test["operations"],
            str(document["library"]["version"]),
            int(timed["count"]) if timed["of"] == "transaction" else 0,
        )
    except OSError as error:
        raise BedplateError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        if status != 0:
            raise BedplateError(f"{call.test}: the driver {_how(status)}{said and f': {said}'}") from error
        raise BedplateError(f"{call.test}: the driver left no whole document ({path.name})") from error
    if status != 0:
        raise BedplateError(f"{call.test}: the driver {_how(status)} after its document")
    return done


def _how(status: int) -> str:
    if status >= 0:
        return f"ended with status {status}"
    number = -status
    hint = "; the kernel's log tells whether memory ran out" if number == signal.SIGKILL else ""
    return f"was killed by {signal.Signals(number).name}{hint}"


def _failure_reasons(failure: Mapping[str, Any], test: str, remedy: Remedy) -> list[Reason]:
    words = f"{test}: {failure['error']} ({failure['step']}, after {failure['operations']} operations)"
    code, way_out = remedy(failure["error"]) or ("test-failed", "")
    reasons = [because(code, f"{words}; {way_out}" if way_out else words, test=test)]
    free_bytes = failure["free_bytes"]
    if free_bytes is not None and free_bytes < _FULL_BELOW_BYTES and not way_out:
        words = (
            f"the scratch device is full: no space left but {format_size(free_bytes)}; fewer entries or a larger "
            "image_size give it room"
        )
        reasons.append(because(SCRATCH_DEVICE_FULL, words))
    return reasons


def _verify(found: Mapping[str, Any], call: BenchCall) -> None:
    """What the driver took, and what its engine answered when it was asked for its settings."""
    wrong = [
        f"{call.test}: {name} = {asked!r} was asked for, and {call.engine} took {found[name]!r}"
        for name, asked in {**call.expected_options(), **call.settings}.items()
        if found[name] != asked
    ]
    if wrong:
        raise BedplateError(*wrong)
