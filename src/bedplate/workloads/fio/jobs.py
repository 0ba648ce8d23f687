"""The options that a plan may give to a fio job, each with the values that it takes.

An allow-list, because fio can do far more than measure: run programs (`exec_prerun`, the engine
`exec`), load libraries (`external:`), write to any path or device (`filename`, `write_iolog`, the engine
`sg`), listen on a network (`net`) or change its user and control group. What is not listed is refused,
before the first command. An option keeps fio's own spelling; sizes and times are written as everywhere
in a plan, and reach fio as bytes and milliseconds (`thinktime` alone is fio's whole microseconds).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from typing import Any

from bedplate.model.cell import RunSpec
from bedplate.model.levels import Levels, Scalar
from bedplate.plan.words import at_most, in_quotes, joined
from bedplate.units import parse_duration_s, parse_size
from bedplate.workloads.fio.model import PG_TEST_FSYNC, TEST_FSYNC_SECONDS, WORKLOAD

ASYNCHRONOUS_ENGINES = frozenset({"io_uring", "libaio", "posixaio"})
SYNCHRONOUS_ENGINES = frozenset({"sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"})
MIXED_RW = frozenset({"rw", "readwrite", "randrw"})
READING_RW = frozenset({"read", "randread"})
WRITING_RW = frozenset({"write", "randwrite"})

_SIZE_MAX = 2**62
_COUNT_MAX = 2**31 - 1
_UNKNOWN_SHOWN = 5


@dataclass(frozen=True)
class FioOption:
    """One option: how its value is read from a plan, as fio's command line takes it."""

    takes: str
    read: Callable[[Scalar], str | None]


def _one_of(*values: str) -> FioOption:
    allowed = frozenset(values)
    return FioOption(
        f"one of {', '.join(sorted(allowed))}",
        lambda value: value if isinstance(value, str) and value in allowed else None,
    )


def _whole_number(least: int, most: int) -> FioOption:
    def read(value: Scalar) -> str | None:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            return None
        return str(value)

    return FioOption(f"a whole number from {least} to {most}", read)


def _flag() -> FioOption:
    return FioOption("true or false", lambda value: str(int(value)) if isinstance(value, bool) else None)


def _size() -> FioOption:
    def read(value: Scalar) -> str | None:
        if not isinstance(value, (int, str)):
            return None
        try:
            size = parse_size(value)
        except ValueError:
            return None
        return str(size) if 0 < size <= _SIZE_MAX else None

    return FioOption('a size of more than zero, as 8192 or "8 kB"', read)


def _duration() -> FioOption:
    def read(value: Scalar) -> str | None:
        if isinstance(value, bool):
            return None
        try:
            milliseconds = round(parse_duration_s(value) * 1000)
        except (ValueError, OverflowError):
            return None
        return f"{milliseconds}ms" if 0 < milliseconds <= _COUNT_MAX else None

    return FioOption('a time of more than zero, as 60 or "5 min"', read)


def _whole_seconds(least: int) -> FioOption:
    duration = _duration()

    def read(value: Scalar) -> str | None:
        text = duration.read(value)
        milliseconds = int(text.removesuffix("ms")) if text else 0
        return text if milliseconds >= least * 1000 and milliseconds % 1000 == 0 else None

    return FioOption(f'whole seconds, {least} or more, as 60 or "5 min"', read)


def _words(pattern: str, takes: str) -> FioOption:
    compiled = re.compile(pattern, re.ASCII)
    return FioOption(
        takes, lambda value: value if isinstance(value, str) and compiled.fullmatch(value) else None
    )


FIO_OPTIONS: Mapping[str, FioOption] = {
    # What is done.
    "rw": _one_of(*READING_RW, *WRITING_RW, *MIXED_RW),
    "bs": _size(),
    "size": _size(),
    "io_size": _size(),
    "rwmixread": _whole_number(1, 99),
    "percentage_random": _whole_number(0, 100),
    "random_distribution": _words(
        r"random|(zipf|pareto|normal):\d{1,2}(\.\d{1,6})?", '"random", or "zipf:1.2" and the like'
    ),
    "random_generator": _one_of("tausworthe", "tausworthe64", "lfsr"),
    "randseed": _whole_number(0, _COUNT_MAX),
    "randrepeat": _flag(),
    "norandommap": _flag(),
    "number_ios": _whole_number(1, _COUNT_MAX),
    # How.
    "ioengine": _one_of(*ASYNCHRONOUS_ENGINES, *SYNCHRONOUS_ENGINES),
    "iodepth": _whole_number(1, 65536),
    "iodepth_batch": _whole_number(1, 65536),
    "iodepth_batch_complete_min": _whole_number(0, 65536),
    "iodepth_batch_complete_max": _whole_number(1, 65536),
    "io_submit_mode": _one_of("inline", "offload"),
    "numjobs": _whole_number(1, 1024),
    "thread": _flag(),
    "direct": _flag(),
    "sync": _one_of("none", "sync", "dsync"),
    "fsync": _whole_number(1, _COUNT_MAX),
    "fdatasync": _whole_number(1, _COUNT_MAX),
    "end_fsync": _flag(),
    "fsync_on_close": _flag(),
    "sync_file_range": _words(
        r"(wait_before|write|wait_after)(,(wait_before|write|wait_after)){0,2}:\d{1,9}",
        '"write:32" and the like',
    ),
    "invalidate": _flag(),
    "fadvise_hint": _flag(),
    # On which files: always the job's own, in the directory of the run.
    "nrfiles": _whole_number(1, 100_000),
    "file_service_type": _one_of("random", "roundrobin", "sequential"),
    "fallocate": _one_of("none", "native", "posix", "keep", "truncate"),
    "overwrite": _flag(),
    "file_append": _flag(),
    "unlink": _flag(),
    # With which bytes: they matter where a file system compresses or deduplicates.
    "refill_buffers": _flag(),
    "zero_buffers": _flag(),
    "scramble_buffers": _flag(),
    "buffer_compress_percentage": _whole_number(0, 100),
    "buffer_compress_chunk": _size(),
    "dedupe_percentage": _whole_number(0, 100),
    # How long, and how fast at most.
    "runtime": _duration(),
    "time_based": _flag(),
    "ramp_time": _duration(),
    "loops": _whole_number(1, _COUNT_MAX),
    "rate": _size(),
    "rate_iops": _whole_number(1, _COUNT_MAX),
    "rate_process": _one_of("linear", "poisson"),
    "thinktime": FioOption("a whole number of microseconds, at least 1", _whole_number(1, _COUNT_MAX).read),
    "thinktime_blocks": _whole_number(1, _COUNT_MAX),
    "steadystate": _words(
        r"(iops|iops_slope|bw|bw_slope):\d{1,3}(\.\d{1,6})?%", '"iops:5%", "bw_slope:0.1%" and the like'
    ),
    # fio judges once a second. From 3.36 on it refuses a shorter time, and cuts a part of a second off in silence.
    "steadystate_duration": _whole_seconds(2),
    "steadystate_ramp_time": _duration(),
}

# fio's own short forms, which would slip past the rules between options.
_ALIASES = {
    "readwrite": "rw",
    "blocksize": "bs",
    "ss": "steadystate",
    "ss_dur": "steadystate_duration",
    "ss_ramp": "steadystate_ramp_time",
}


def fio_words(options: Mapping[str, Scalar]) -> tuple[dict[str, str], list[str]]:
    """The options as fio takes them, and a reason for each that is not allowed or does not fit."""
    words: dict[str, str] = {}
    reasons = _unknown([name for name in options if name not in FIO_OPTIONS])
    for name, value in options.items():
        option = FIO_OPTIONS.get(name)
        if option is None:
            continue
        word = option.read(value)
        if word is None:
            reasons.append(f"fio option {name} = {value!r:.80}: it takes {option.takes}")
        else:
            words[name] = word
    return words, reasons


def _unknown(names: Sequence[str]) -> list[str]:
    """One reason for all of them, as what is allowed is long, and a plan may have hundreds."""
    if not names:
        return []
    told = [
        f"fio option {name!r:.80} is not one that a plan may give"
        + (f"; write {_ALIASES[name]}" if name in _ALIASES else "")
        for name in names
    ]
    return ["; ".join([*at_most(told, _UNKNOWN_SHOWN), f"allowed are {', '.join(sorted(FIO_OPTIONS))}"])]


def fio_misfits(words: Mapping[str, str]) -> list[str]:
    """What does not go together, and would be ignored or changed by fio without a word."""
    reasons = [f"a fio job needs {name}" for name in ("rw", "bs", "size") if name not in words]
    if reasons:
        return reasons
    return [*_engine_misfits(words), *_access_misfits(words), *_time_misfits(words)]


def _engine_misfits(words: Mapping[str, str]) -> list[str]:
    reasons = []
    engine = words.get("ioengine", "psync")
    if engine in SYNCHRONOUS_ENGINES and int(words.get("iodepth", "1")) > 1:
        reasons.append(
            f"iodepth = {words['iodepth']}: {engine} has one request under way at a time; use "
            f"{', '.join(sorted(ASYNCHRONOUS_ENGINES))}, or numjobs"
        )
    if engine == "mmap" and words.get("direct") == "1":
        reasons.append("direct: mmap goes through the page cache whatever the file was opened with")
    if words.get("direct") == "1" and int(words["bs"]) % 512:
        reasons.append(f"direct: bs = {words['bs']} is no multiple of 512")
    return reasons


def _access_misfits(words: Mapping[str, str]) -> list[str]:
    reasons = []
    rw = words["rw"]
    if "rwmixread" in words and rw not in MIXED_RW:
        reasons.append(f"rwmixread: rw = {rw} mixes nothing; use one of {', '.join(sorted(MIXED_RW))}")
    if rw in READING_RW:
        synced = ("fsync", "fdatasync", "end_fsync", "sync_file_range", "fsync_on_close", "file_append")
        reasons.extend(f"{name}: rw = {rw} writes nothing" for name in synced if words.get(name, "0") != "0")
    if words.get("overwrite") == "1" and words.get("file_append") == "1":
        reasons.append("overwrite and file_append: a file is written anew in place, or grows; choose one")
    if int(words["size"]) < int(words["bs"]):
        reasons.append(f"size = {words['size']} is less than one block of {words['bs']}")
    return reasons


def _time_misfits(words: Mapping[str, str]) -> list[str]:
    reasons = [
        f"{name} needs a runtime"
        for name in ("time_based", "ramp_time", "steadystate")
        if words.get(name, "0") != "0" and "runtime" not in words
    ]
    if "steadystate" in words and "steadystate_duration" not in words:
        reasons.append("steadystate needs a steadystate_duration: fio's own is zero, and judges nothing")
    reasons.extend(
        f"{name} needs steadystate"
        for name in ("steadystate_duration", "steadystate_ramp_time")
        if name in words and "steadystate" not in words
    )
    if "rate" in words and "rate_iops" in words:
        reasons.append("rate and rate_iops: fio takes one of them")
    return reasons


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

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,40}", re.ASCII)
_MOST_JOBS = 1000

# Sixteen measurements of this length. Its own 5 s would be 80 s in every cell.
_TEST_FSYNC_S = 2


def fio_jobs(value: object) -> tuple[RunSpec, ...]:
    """The runs of one `[[workload.job]]` table, several where an option varies; ValueError has every reason.

    `job` names a ready one, whose options hold unless the table gives its own; `name` names
    the run. Everything else is an option of fio's allow-list.
    """
    if not isinstance(value, Mapping):
        raise ValueError('allowed is a table such as { job = "wal-append", size = "1 GB", runtime = "30 s" }')
    table = dict(value)
    ready, name = table.pop("job", None), table.pop("name", None)
    if ready is not None and not isinstance(ready, str):
        raise ValueError(
            f"job is one name, and does not vary; found {in_quotes(ready)}: write a [[workload.job]] for each of them"
        )
    if ready is not None and ready not in READY_FIO_JOBS:
        raise ValueError(f"job {in_quotes(ready)} is not known; ready are {', '.join(READY_FIO_JOBS)}")
    base: Mapping[str, Scalar] = READY_FIO_JOBS[ready].options if ready is not None else {}
    title = name if name is not None else ready if ready is not None else table.get("rw")
    if not isinstance(title, str) or not _NAME.fullmatch(title):
        raise ValueError("a job needs a name of 1 to 41 letters, digits, - and _")
    factors = {option: _levels(option, level) for option, level in table.items()}
    combinations = list(_combinations(factors))
    runs = [
        RunSpec(_run_name(title, combination, factors), WORKLOAD, Levels({**base, **combination}))
        for combination in combinations
    ]
    reasons = [reason for run in runs for reason in _misfits(run.levels)]
    if reasons:
        raise ValueError(joined(dict.fromkeys(reasons)))
    return tuple(runs)


def fio_run_specs(jobs: Sequence[tuple[RunSpec, ...]], *, pg_test_fsync: bool = False) -> tuple[RunSpec, ...]:
    """The runs of all jobs in order, pg_test_fsync last; ValueError where two have one name."""
    specs = list(chain(*jobs))
    if pg_test_fsync:
        levels = Levels({"tool": PG_TEST_FSYNC, TEST_FSYNC_SECONDS: _TEST_FSYNC_S})
        specs.append(RunSpec(PG_TEST_FSYNC, WORKLOAD, levels))
    twice = sorted(name for name, count in Counter(spec.name for spec in specs).items() if count > 1)
    if twice:
        raise ValueError(f"two jobs are called {', '.join(twice)}; give each a name")
    return tuple(specs)


def _levels(option: str, value: object) -> tuple[Scalar, ...]:
    if isinstance(value, Mapping) and set(value) == {"vary"} and isinstance(value["vary"], list):
        levels = tuple(value["vary"])
        if not levels or len(set(map(repr, levels))) < len(levels):
            raise ValueError(f"fio option {in_quotes(option)}: vary takes a list of different levels")
    else:
        levels = (value,)
    wrong = [level for level in levels if not isinstance(level, (str, int, float, bool))]
    if wrong:
        raise ValueError(
            f"fio option {in_quotes(option)} takes one value, or {{ vary = [...] }}; found {in_quotes(wrong[0])}"
        )
    return levels


def _combinations(factors: Mapping[str, tuple[Scalar, ...]]) -> Iterator[dict[str, Scalar]]:
    count = 1
    for levels in factors.values():
        count *= len(levels)
    if count > _MOST_JOBS:
        raise ValueError(f"the table comes to {count} jobs; allowed are {_MOST_JOBS}")
    for levels in product(*factors.values()):
        yield dict(zip(factors, levels, strict=True))


def _run_name(title: str, combination: Mapping[str, Scalar], factors: Mapping[str, Any]) -> str:
    words = [
        f"{option}-{re.sub('[^A-Za-z0-9]+', '', str(level))}"
        for option, level in combination.items()
        if len(factors[option]) > 1
    ]
    return "-".join([title, *words])


def _misfits(levels: Levels) -> list[str]:
    words, reasons = fio_words(levels)
    return reasons or fio_misfits(words)
