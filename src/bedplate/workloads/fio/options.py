"""The options that a plan may give to a fio job, each with the values that it takes.

An allow-list, because fio can do far more than measure: run programs (`exec_prerun`, the engine
`exec`), load libraries (`external:`), write to any path or device (`filename`, `write_iolog`, the engine
`sg`), listen on a network (`net`) or change its user and control group. What is not listed is refused,
before the first command. An option keeps fio's own spelling; sizes and times are written as everywhere
in a plan, and reach fio as bytes and milliseconds (`thinktime` alone is fio's whole microseconds).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.plan.words import at_most
from bedplate.units import parse_duration_s, parse_size

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from bedplate.model.levels import Scalar

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


def _whole(least: int, most: int) -> FioOption:
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
    "rwmixread": _whole(1, 99),
    "percentage_random": _whole(0, 100),
    "random_distribution": _words(
        r"random|(zipf|pareto|normal):\d{1,2}(\.\d{1,6})?", '"random", or "zipf:1.2" and the like'
    ),
    "random_generator": _one_of("tausworthe", "tausworthe64", "lfsr"),
    "randseed": _whole(0, _COUNT_MAX),
    "randrepeat": _flag(),
    "norandommap": _flag(),
    "number_ios": _whole(1, _COUNT_MAX),
    # How.
    "ioengine": _one_of(*ASYNCHRONOUS_ENGINES, *SYNCHRONOUS_ENGINES),
    "iodepth": _whole(1, 65536),
    "iodepth_batch": _whole(1, 65536),
    "iodepth_batch_complete_min": _whole(0, 65536),
    "iodepth_batch_complete_max": _whole(1, 65536),
    "io_submit_mode": _one_of("inline", "offload"),
    "numjobs": _whole(1, 1024),
    "thread": _flag(),
    "direct": _flag(),
    "sync": _one_of("none", "sync", "dsync"),
    "fsync": _whole(1, _COUNT_MAX),
    "fdatasync": _whole(1, _COUNT_MAX),
    "end_fsync": _flag(),
    "fsync_on_close": _flag(),
    "sync_file_range": _words(
        r"(wait_before|write|wait_after)(,(wait_before|write|wait_after)){0,2}:\d{1,9}",
        '"write:32" and the like',
    ),
    "invalidate": _flag(),
    "fadvise_hint": _flag(),
    # On which files: always the job's own, in the directory of the run.
    "nrfiles": _whole(1, 100_000),
    "file_service_type": _one_of("random", "roundrobin", "sequential"),
    "fallocate": _one_of("none", "native", "posix", "keep", "truncate"),
    "overwrite": _flag(),
    "file_append": _flag(),
    "unlink": _flag(),
    # With which bytes: they matter where a file system compresses or deduplicates.
    "refill_buffers": _flag(),
    "zero_buffers": _flag(),
    "scramble_buffers": _flag(),
    "buffer_compress_percentage": _whole(0, 100),
    "buffer_compress_chunk": _size(),
    "dedupe_percentage": _whole(0, 100),
    # How long, and how fast at most.
    "runtime": _duration(),
    "time_based": _flag(),
    "ramp_time": _duration(),
    "loops": _whole(1, _COUNT_MAX),
    "rate": _size(),
    "rate_iops": _whole(1, _COUNT_MAX),
    "rate_process": _one_of("linear", "poisson"),
    "thinktime": FioOption("a whole number of microseconds, at least 1", _whole(1, _COUNT_MAX).read),
    "thinktime_blocks": _whole(1, _COUNT_MAX),
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
