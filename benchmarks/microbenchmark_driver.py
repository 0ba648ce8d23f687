"""The microbenchmark's driver beside py-lmdb on every test, and beside its own loop around an engine that does nothing.

CPU per operation is compared, on tmpfs, in interleaved rounds. py-lmdb does the same work: numbers are drawn
and keys formatted in the loop, one transaction per put or read where the driver has one, no `putmulti`.
It brings its own LMDB, whose version is printed beside the driver's.

With `--engine sqlite` SQLite stands in LMDB's place, beside its own loop alone.

    benchmarks/run microbenchmark_driver [--engine lmdb] [--entries 200000] [--rounds 7] [--tests LIST] [--folder /dev/shm]
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import lmdb

from bedplate.campaign.preparation import prepare_drivers
from bedplate.workloads.microbenchmark.figures import BenchDocument, parse_document
from machine import print_machine

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

FILLS = ("fillrandsync", "fillrandom", "fillrandbatch", "fillseqsync", "fillseq", "fillseqbatch")
READS = ("readrandom", "readseq", "readreverse", "readwhilewriting")
LARGE = ("fillrand100K", "readrand100K", "fillseq100K", "readseq100K")
TESTS = (*FILLS, "overwrite", *READS, *LARGE)
# The most that a test of the driver may cost, as a share of py-lmdb's CPU time for it.
AIMS = {"readseq": 0.1, "readrandom": 0.6}
# The most that the loop itself may cost, as a share of the driver's CPU time for a test.
OWN_AIMS = {"fillseqbatch": 0.02}
THREADS = 2
BATCH = 1000
VALUE_BYTES = 100
LARGE_VALUE_BYTES = 100_000
WRITES_PER_S = 1000


@dataclass(frozen=True)
class Scale:
    """How much each test does."""

    tests: tuple[str, ...]
    entries: int
    sync_entries: int
    map_bytes: int | None

    def count(self, test: str) -> int:
        """The operations of one test, or of one of its readers."""
        if test.endswith("sync"):
            return self.sync_entries
        return self.entries // 1000 if test.endswith("100K") else self.entries


def seeded(seed: int) -> Random:
    """Numbers that are the same each time; nothing secret is drawn with them."""
    return Random(seed)  # noqa: S311


class Python:
    """py-lmdb's side: the same tests, each on the database that the last one left or a new one."""

    def __init__(self, folder: Path, scale: Scale) -> None:
        self._folder, self._scale = folder, scale
        self._environment: lmdb.Environment | None = None
        self._random = seeded(1)
        source = seeded(1).randbytes(2**19)
        self._text = b"".join(source[at : at + 50] * 2 for at in range(0, len(source), 50)) * 2

    def run(self, test: str) -> float:
        """CPU µs of one operation."""
        count = self._scale.count(test)
        if test.startswith("fill"):
            self._renew(sync=test.endswith("sync"))
        body = self._body(test, count)
        before = resource.getrusage(resource.RUSAGE_SELF)
        operations = body()
        after = resource.getrusage(resource.RUSAGE_SELF)
        spent_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return spent_s * 1e6 / operations

    def close(self) -> None:
        """Close what the last test left open."""
        if self._environment is not None:
            self._environment.close()

    def _body(self, test: str, count: int) -> Callable[[], int]:
        value_bytes = LARGE_VALUE_BYTES if test.endswith("100K") else VALUE_BYTES
        if test.startswith("fill") or test == "overwrite":
            batch = BATCH if test.endswith("batch") else 1
            return lambda: self._write(count, batch, value_bytes, in_sequence=test.startswith("fillseq"))
        if test.startswith("readrand"):
            return lambda: self._read_random(count, seeded(2))
        if test == "readwhilewriting":
            return lambda: self._read_while_writing(count)
        return lambda: self._walk(forward=test != "readreverse")

    def _renew(self, *, sync: bool) -> None:
        self.close()
        for path in self._folder.iterdir():
            path.unlink()
        if self._scale.map_bytes is None:
            raise RuntimeError("py-lmdb needs the size of its map")
        self._environment = lmdb.open(
            str(self._folder), map_size=self._scale.map_bytes, sync=sync, max_spare_txns=THREADS + 1
        )

    def _write(self, count: int, batch: int, value_bytes: int, *, in_sequence: bool) -> int:
        environment, text, draw = self._opened, self._text, self._random.random
        at = 0
        for first in range(0, count, batch):
            with environment.begin(write=True) as transaction:
                for number in range(first, min(first + batch, count)):
                    key = b"%016d" % (number if in_sequence else int(draw() * count))
                    transaction.put(key, text[at : at + value_bytes], append=in_sequence)
                    at = (at + value_bytes) % 2**20
        return count

    def _read_random(self, count: int, random: Random) -> int:
        environment, draw = self._opened, random.random
        for _ in range(count):
            with environment.begin() as transaction:
                transaction.get(b"%016d" % int(draw() * count))
        return count

    def _walk(self, *, forward: bool) -> int:
        entries = 0
        with self._opened.begin() as transaction, transaction.cursor() as cursor:
            for _ in cursor.iternext() if forward else cursor.iterprev():
                entries += 1
        return entries

    def _read_while_writing(self, count: int) -> int:
        ended = threading.Event()

        def write() -> None:
            draw = seeded(3).random
            while not ended.wait(1 / WRITES_PER_S):
                with self._opened.begin(write=True) as transaction:
                    transaction.put(b"%016d" % int(draw() * count), self._text[:VALUE_BYTES])

        readers = [
            threading.Thread(target=self._read_random, args=(count, seeded(seed))) for seed in range(THREADS)
        ]
        writer = threading.Thread(target=write)
        for thread in (*readers, writer):
            thread.start()
        for thread in readers:
            thread.join()
        ended.set()
        writer.join()
        return count * THREADS

    @property
    def _opened(self) -> lmdb.Environment:
        if self._environment is None:
            raise RuntimeError("a fill comes first")
        return self._environment


def run_driver(driver: Path, folder: Path, scale: Scale, *, null: bool = False) -> BenchDocument:
    argv = [
        *(
            str(driver),
            *(("--null",) if null else ()),
            "--directory",
            str(folder),
            "--tests",
            ",".join(scale.tests),
        ),
        *("--entries", str(scale.entries), "--sync-entries", str(scale.sync_entries)),
        *(*(("--set", f"map_bytes={scale.map_bytes}") if scale.map_bytes else ()), "--threads", str(THREADS)),
        *("--write-rate", str(WRITES_PER_S)),
    ]
    done = subprocess.run(argv, check=False, capture_output=True, text=True)
    document = parse_document(done.stdout)
    if document.failure is not None:
        raise SystemExit(f"{document.failure.test}: {document.failure.error}")
    return document


def cpu_of(document: BenchDocument) -> dict[str, float]:
    """CPU µs of one operation by test."""
    return {test.test: test.cpu_us_per_operation or 0.0 for test in document.tests}


def fresh_folders(base: Path) -> Generator[Path]:
    """A new, empty folder each time; the one before is gone then."""
    while True:
        with tempfile.TemporaryDirectory(prefix="bedplate-bench-", dir=base) as folder:
            yield Path(folder)


def measure(
    driver: Path, base: Path, scale: Scale, rounds: int, sides: tuple[str, ...]
) -> dict[str, list[dict[str, float]]]:
    """CPU µs per operation: side -> round -> test. The sides take turns in going first."""
    found: dict[str, list[dict[str, float]]] = {side: [] for side in sides}
    folders = fresh_folders(base)
    for number in range(rounds):
        for side in sorted(found, reverse=bool(number % 2)):
            folder = next(folders)
            if side == "py-lmdb":
                python = Python(folder, scale)
                found[side].append({test: python.run(test) for test in scale.tests})
                python.close()
            else:
                found[side].append(cpu_of(run_driver(driver, folder, scale, null=side == "null")))
    folders.close()
    return found


def spread(values: list[float], digits: int) -> str:
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def report_own(found: dict[str, list[dict[str, float]]]) -> None:
    """Of an engine without a counterpart in Python."""
    print(f"{'CPU per operation':18}{'driver, µs':>28}{'own share':>28}")
    for test in found["driver"][0]:
        ours, null = ([one[test] for one in found[side]] for side in ("driver", "null"))
        shares = [a / b for a, b in zip(null, ours, strict=True)]
        aim = OWN_AIMS.get(test)
        met = "" if aim is None else f"  aim {aim}: {'met' if statistics.median(shares) <= aim else 'missed'}"
        print(f"{test:18}{spread(ours, 3):>28}{spread(shares, 4):>28}{met}")


def report(found: dict[str, list[dict[str, float]]]) -> None:
    head = ("driver, µs", "py-lmdb, µs", "driver / py-lmdb", "own share")
    print(f"{'CPU per operation':18}" + "".join(f"{word:>28}" for word in head))
    for test in found["driver"][0]:
        ours, theirs, null = ([one[test] for one in found[side]] for side in ("driver", "py-lmdb", "null"))
        ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
        shares = [a / b for a, b in zip(null, ours, strict=True)]
        cells = (spread(ours, 3), spread(theirs, 3), spread(ratios, 3), spread(shares, 3))
        aim = AIMS.get(test)
        judged = (
            "" if aim is None else f"  aim {aim}: {'met' if statistics.median(ratios) <= aim else 'missed'}"
        )
        print(f"{test:18}" + "".join(f"{cell:>28}" for cell in cells) + judged)


def main() -> None:
    """Build the driver, measure all sides, print medians with their ranges."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--entries", type=int, default=200_000)
    parser.add_argument("--engine", choices=("lmdb", "sqlite"), default="lmdb")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--folder", type=Path, default=Path("/dev/shm"), help="on tmpfs")
    parser.add_argument("--tests", default=",".join(TESTS), help="names with commas between them, in order")
    asked = parser.parse_args()
    scale = Scale(
        tests=tuple(asked.tests.split(",")),
        entries=asked.entries,
        sync_entries=max(asked.entries // 10, 10),
        map_bytes=(asked.entries * 400 // 2**20 + 256) * 2**20 if asked.engine == "lmdb" else None,
    )
    sides = ("driver", "null", *(("py-lmdb",) if asked.engine == "lmdb" else ()))
    driver = Path(prepare_drivers(["microbenchmark"], [asked.engine])[f"microbenchmark_{asked.engine}"])
    print_machine()
    started = time.monotonic()
    found = measure(driver, asked.folder, scale, asked.rounds, sides)
    with tempfile.TemporaryDirectory(prefix="bedplate-bench-", dir=asked.folder) as folder:
        ran = run_driver(driver, Path(folder), Scale(("fillseq",), 1000, 10, None))
    theirs = ".".join(str(number) for number in lmdb.version())
    beside = f"; py-lmdb {lmdb.__version__} with LMDB {theirs}" if asked.engine == "lmdb" else ""
    print(
        f"{asked.entries} entries, {asked.rounds} rounds in {time.monotonic() - started:.0f} s, medians "
        f"(least to greatest); {ran.engine} {ran.library.version}, a clock read {ran.clock_read_ns} ns{beside}; "
        f"load {os.getloadavg()[0]:.1f} at the end"
    )
    (report if "py-lmdb" in sides else report_own)(found)


if __name__ == "__main__":
    main()
