"""What `bedplate-microbenchmark` printed: its document, read strictly, and the figures that follow from it.

The format stands at the head of `drivers/microbenchmark.c`. A key too many or too few, a wrong type, counts
that contradict each other: all of it is `OutputNotUnderstood`, with the place. A document after a failure,
or after a signal, is a whole one: it holds the tests that ended before, and says what happened.
"""

from __future__ import annotations

import json
from itertools import accumulate, pairwise
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, model_validator
from pydantic import dataclasses as pydantic_dataclasses

from bedplate.errors import OutputNotUnderstood
from bedplate.figures.latency import nearest_rank
from bedplate.units import MIB

_TOOL = "the driver of the microbenchmark"
_STRICT = ConfigDict(strict=True, extra="forbid")

Count = Annotated[int, Field(ge=0)]
Settings = dict[str, str | int | bool]
Bucket = tuple[Count, Annotated[int, Field(ge=1)]]


@pydantic_dataclasses.dataclass(frozen=True, kw_only=True, config=_STRICT)
class BenchLatency:
    """Latencies in nanoseconds, of every `every`-th operation; `of` says what one is.

    A "transaction" of a batch test is the whole batch. `buckets` are (bucket, count), ascending, no zero
    counts; up to 2 x `sub_buckets` a bucket is one nanosecond, from there on each octave has `sub_buckets`
    of them. `min_ns` and `max_ns` are None where nothing was timed.
    """

    of: Literal["transaction", "read"]
    every: Annotated[int, Field(ge=1)]
    count: Count
    sum_ns: Count
    min_ns: Count | None
    max_ns: Count | None
    sub_buckets: Annotated[int, Field(ge=1)]
    buckets: tuple[Bucket, ...]

    @model_validator(mode="after")
    def _verify(self) -> BenchLatency:
        if any(first[0] >= second[0] for first, second in pairwise(self.buckets)):
            raise ValueError("the buckets do not ascend")
        if sum(count for _, count in self.buckets) != self.count:
            raise ValueError(f"the buckets do not add up to the count of {self.count}")
        if self.min_ns is None or self.max_ns is None:
            if self.count or self.min_ns != self.max_ns:
                raise ValueError("min_ns or max_ns is missing")
            return self
        if not self.count or not self.count * self.min_ns <= self.sum_ns <= self.count * self.max_ns:
            raise ValueError("the sum does not lie between the least and the greatest")
        for bucket, value in ((self.buckets[0][0], self.min_ns), (self.buckets[-1][0], self.max_ns)):
            lower, after = bucket_bounds_ns(bucket, self.sub_buckets)
            # The driver's last bucket takes everything above its range, which no disk has reached.
            if not lower <= value < after:
                raise ValueError(f"{value} ns does not lie in bucket {bucket}")
        return self

    @property
    def mean_ns(self) -> float | None:
        """The exact mean; None where nothing was timed."""
        return self.sum_ns / self.count if self.count else None

    def percentile_ns(self, quantile: float) -> float | None:
        """The nearest-rank percentile for a quantile of (0, 1]; None where nothing was timed.

        It is the middle of a bucket, within least and greatest: at most 0.4 % off with 128 sub-buckets.
        """
        if not 0 < quantile <= 1:
            raise ValueError(f"a quantile lies in (0, 1], found {quantile}")
        if self.min_ns is None or self.max_ns is None:
            return None
        rank = nearest_rank(quantile, self.count)
        running = accumulate(count for _, count in self.buckets)
        at = next(at for at, total in enumerate(running) if total >= rank)
        lower, after = bucket_bounds_ns(self.buckets[at][0], self.sub_buckets)
        return min(max((lower + after - 1) / 2, self.min_ns), self.max_ns)


@pydantic_dataclasses.dataclass(frozen=True, kw_only=True, config=_STRICT)
class BenchSide:
    """One loop: a whole test, one reader or the writer of readwhilewriting, one process of tpcb.

    `bytes` are those of keys and values. `found` counts random reads that met an entry, None for other
    tests; `busy` counts attempts that met a lock, None for tests that cannot. CPU times are the process's for a whole test, else the thread's.
    """

    operations: Count
    found: Count | None
    elapsed_ns: Count
    bytes: Count
    cpu_user_us: Count
    cpu_system_us: Count
    latency: BenchLatency | None
    busy: Count | None = None

    @model_validator(mode="after")
    def _verify_counts(self) -> BenchSide:
        if self.found is not None and self.found > self.operations:
            raise ValueError(f"found {self.found} in {self.operations} reads")
        if self.latency is not None and self.latency.count > self.operations:
            raise ValueError(f"{self.latency.count} latencies of {self.operations} operations")
        return self

    @property
    def operations_per_s(self) -> float | None:
        """None where no time passed, or nothing was done."""
        return self.operations * 1e9 / self.elapsed_ns if self.operations and self.elapsed_ns else None

    @property
    def us_per_operation(self) -> float | None:
        """Microseconds from one operation to the next; None without any."""
        return self.elapsed_ns / 1e3 / self.operations if self.operations else None

    @property
    def cpu_us_per_operation(self) -> float | None:
        """CPU time, user and system, of one operation in microseconds; None without any."""
        return (self.cpu_user_us + self.cpu_system_us) / self.operations if self.operations else None

    @property
    def busy_share(self) -> float | None:
        """Attempts that met a lock, of all; None where none was made, or none could meet one."""
        if self.busy is None or not self.busy + self.operations:
            return None
        return self.busy / (self.busy + self.operations)

    @property
    def mib_per_s(self) -> float | None:
        """Keys and values in 2^20 bytes per second; None where no time passed, or nothing was moved."""
        return self.bytes / MIB * 1e9 / self.elapsed_ns if self.bytes and self.elapsed_ns else None


@pydantic_dataclasses.dataclass(frozen=True, kw_only=True, config=_STRICT)
class BenchTest(BenchSide):
    """One test; the side that it also is holds its whole.

    `settings` are what the engine answered at its end. `prepare_ns` (making, opening and preallocating the
    database) is None for tests that take no fresh one, `flush_ns` where no flush was asked for; the sizes are
    None with the engine that does nothing. In readwhilewriting the operations are the readers', and
    `threads` and `writer` tell them apart; in tpcb `threads` are its processes; else both are None. One that is not `complete` was cut off.
    """

    test: str
    settings: Settings
    fresh: bool
    complete: bool
    prepare_ns: Count | None
    flush_ns: Count | None
    minor_faults: Count
    major_faults: Count
    data_size_bytes: Count | None
    data_allocated_bytes: Count | None
    threads: tuple[BenchSide, ...] | None
    writer: BenchSide | None

    @model_validator(mode="after")
    def _verify_threads(self) -> BenchTest:
        # Processes that meet at locks have no writer beside them.
        if self.busy is None and (self.threads is None) != (self.writer is None):
            raise ValueError("threads and writer belong together")
        if self.threads is not None and sum(side.operations for side in self.threads) != self.operations:
            raise ValueError(f"the threads' operations do not add up to {self.operations}")
        return self


@pydantic_dataclasses.dataclass(frozen=True, kw_only=True, config=_STRICT)
class BenchLibrary:
    """The library that ran, and the header that the driver was compiled with."""

    version: str
    text: str
    header: str


@pydantic_dataclasses.dataclass(frozen=True, kw_only=True, config=_STRICT)
class BenchOptions:
    """What the driver was asked for, defaults filled in; None is "no such limit"."""

    entries: Count
    sync_entries: Count
    reads: Count
    key_bytes: Count
    value_bytes: Count
    batch: Count
    keys: Literal["random", "shuffled"]
    touch: Literal["none", "first", "pages"]
    threads: Count
    duration_s: Count | None
    write_rate: Count | None
    flush_after: bool
    existing: bool
    seed: Count
    tests: tuple[str, ...]


@pydantic_dataclasses.dataclass(frozen=True, kw_only=True, config=_STRICT)
class BenchFailure:
    """Why it failed: `error` is the library's or the system's own text.

    `code` is the library's, an errno, or minus a signal's number. `operations` of `test` were done;
    `free_bytes` were left on the file system then. The library calls a write that a full disk cut short an
    "Input/output error".
    """

    error: str
    code: int
    test: str | None
    step: str
    operations: Count
    free_bytes: Count | None


@pydantic_dataclasses.dataclass(frozen=True, kw_only=True, config=_STRICT)
class BenchDocument:
    """All that one start of the driver said; `interrupted` names the signal that ended it."""

    format_version: Literal[2]
    program: Literal["bedplate-microbenchmark"]
    engine: str
    library: BenchLibrary
    clock_read_ns: Count
    options: BenchOptions
    tests: tuple[BenchTest, ...]
    failure: BenchFailure | None
    interrupted: str | None

    @model_validator(mode="after")
    def _verify_order(self) -> BenchDocument:
        ran, asked = tuple(test.test for test in self.tests), self.options.tests
        if ran != asked[: len(ran)]:
            raise ValueError(f"the tests {', '.join(ran)} are not the first of those asked for")
        if self.failure is None and self.interrupted is None:
            if len(ran) != len(asked):
                raise ValueError(f"{len(ran)} of {len(asked)} tests, without a reason")
            if not all(test.complete for test in self.tests):
                raise ValueError("a test was cut off, without a reason")
        return self


# What a document of version 1, which knew LMDB alone, says beside the options of every engine.
_LMDB_OPTIONS = ("writemap", "readahead", "preallocation", "map_bytes")
_DOCUMENT = TypeAdapter(BenchDocument)


def bucket_bounds_ns(bucket: int, sub_buckets: int) -> tuple[int, int]:
    """The first value of a bucket, and the first value after it, in ns."""
    exact = 2 * sub_buckets
    if bucket < exact:
        return bucket, bucket + 1
    octave, place = divmod(bucket - exact, sub_buckets)
    return (sub_buckets + place) << (octave + 1), (sub_buckets + place + 1) << (octave + 1)


def parse_document(text: str) -> BenchDocument:
    """The driver's standard output; OutputNotUnderstood where it is not one whole, sound document."""
    try:
        if '"format_version": 1,' in text:
            text = json.dumps(_of_version_1(json.loads(text)))
        return _DOCUMENT.validate_json(text)
    except ValidationError as error:
        raise _not_understood(error, text) from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise OutputNotUnderstood(_TOOL, expected="a document of format version 1", found=text) from error


def _of_version_1(found: dict[str, Any]) -> dict[str, Any]:
    """The same in version 2: settings stand with each test, and the program has no engine's name."""
    options = dict(found["options"])
    settings = {name: options.pop(name) for name in _LMDB_OPTIONS}
    del options["sync"]
    tests = []
    for test in found["tests"]:
        rest = {name: value for name, value in test.items() if name != "sync"}
        mode = {} if test["sync"] is None else {"sync": test["sync"]}
        tests.append({**rest, "settings": {**settings, **mode}})
    program = found["program"].replace("lmdb-bench", "microbenchmark")
    return {**found, "format_version": 2, "program": program, "options": options, "tests": tests}


def _not_understood(error: ValidationError, text: str) -> OutputNotUnderstood:
    first = error.errors(include_url=False, include_context=False)[0]
    place = ".".join(str(part) for part in first["loc"]) or "the whole"
    expected = f"a document of format version 2 ({place}: {first['msg']})"
    return OutputNotUnderstood(_TOOL, expected=expected, found=text or "(it printed nothing)")
