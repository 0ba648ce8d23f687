"""Single values of a plan, from TOML to the type that the model has.

Each function takes what TOML gave and returns the level; ValueError says what is allowed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from pydantic import ValidationInfo

from bedplate.model.cell import Throttle
from bedplate.model.devices import CONSTANT, MOST_PLACES, USUAL_PLACES, Disk, Latency, Law, Stall
from bedplate.model.limits import read_at_most
from bedplate.model.plan import COLD, WARM, DatasetScale
from bedplate.near_names import did_you_mean
from bedplate.plan import words
from bedplate.plan.words import in_quotes, joined
from bedplate.text_encoding import decode_text
from bedplate.units import (
    DURATION_PATTERN,
    GIB,
    KIB,
    MIB,
    SIZE_PATTERN,
    TIB,
    format_size,
    parse_duration_s,
    parse_size,
    size_in_kb,
)

_MEGABYTE = 1_000_000  # data sheets count in powers of ten

LATENCIES: Mapping[str, Latency] = {
    latency.name: latency
    for latency in (
        # Nothing is added: the way through user space alone, as what the others are compared with.
        Latency("path", "0ms", "0ms", "0ms", queue_depth=64),
        # An Amazon EBS gp3 volume as it comes: 3000 IOPS and 125 MiB/s, reads and writes together, "single-digit
        # millisecond latency" (Amazon EBS User Guide). The times are a convention of bedplate within that.
        Latency(
            "gp3",
            "lognormal 0.6ms 1.3",
            "lognormal 0.8ms 1.3",
            "lognormal 0.8ms 1.3",
            queue_depth=32,
            iops=3000,
            bytes_per_s=125 * MIB,
        ),
        # A 3.5-inch disk at 7200 rpm: 8.5 ms of seek and 4.16 ms of rotation are 12.7 ms on average; a flush waits for
        # half a turn to a whole one. Two at once are the 150 random I/Os a second that reordering ten makes (NCQ).
        Latency(
            "hdd-7200",
            "uniform 4.3ms 21ms",
            "uniform 4.3ms 21ms",
            "uniform 4.2ms 12.5ms",
            queue_depth=2,
            sequential="0.3ms",
            bytes_per_s=125 * _MEGABYTE,
        ),
        # A SATA SSD at work: a convention of bedplate. One at rest reads 4 KiB in 0.08 ms, which no device in user
        # space can do; IOPS and bandwidth are the lower ones of the data sheet of a Samsung 870 EVO.
        Latency(
            "sata-ssd",
            "lognormal 0.3ms 1.4",
            "lognormal 0.3ms 1.4",
            "lognormal 2ms 1.5",
            queue_depth=32,
            iops=88_000,
            bytes_per_s=530 * _MEGABYTE,
        ),
        # A desktop disk of 2011 (Barracuda 7200.12, Caviar Black): seeks of 8.5 and 9.5 ms, 0.8 from track to track, 32 MB of cache.
        Latency.of_disk("hdd-7200-2011", Disk()),
        # A server's (Cheetah 15K.7): seeks of 3.4 and 3.9 ms, 204 to 122 MB/s, 16 MB of cache.
        Latency.of_disk(
            "hdd-15k",
            Disk(
                rpm=15000,
                seek_track_ms=0.2,
                seek_average_ms=3.4,
                seek_full_ms=6.6,
                write_settle_ms=0.5,
                overhead_ms=0.05,
                outer_bytes_per_s=204 * _MEGABYTE,
                inner_bytes_per_s=122 * _MEGABYTE,
                cache_bytes=16 * MIB,
            ),
        ),
    )
}

THROTTLES: Mapping[str, Throttle] = {
    throttle.name: throttle
    for throttle in (
        # A 3.5-inch disk at 7200 rpm: 4.16 ms of rotation and 8.5 ms of seek are 79 random I/Os a
        # second one at a time, about 150 when the drive reorders ten of them (NCQ); data sheets of
        # 2009 to 2013 (Barracuda 7200.12 to 7200.14) give 125 to 156 MB/s.
        Throttle("hdd-7200", 150, 150, 125 * _MEGABYTE, 125 * _MEGABYTE),
        # The data sheet of a Samsung 870 EVO: 98 000 and 88 000 IOPS at queue depth 32, 560 and
        # 530 MB/s. Within its cache; sustained writes of a full drive are slower.
        Throttle("sata-ssd", 98_000, 88_000, 560 * _MEGABYTE, 530 * _MEGABYTE),
        # An Amazon EBS gp3 volume as it comes: 3000 IOPS and 125 MiB/s. The volume counts reads and
        # writes together, the kernel's limits apart: a mixed load gets up to twice as much here.
        Throttle("cloud-volume", 3000, 3000, 125 * MIB, 125 * MIB),
    )
}

EXECUTORS = ("local", "qemu", "slurm", "auto")
VERSIONS = ("15", "16", "17", "18")
UNTIL_STEADY = "until steady"
UNLIMITED = "unlimited"
MOST_PASSES = 20
MAX_FILE_BYTES = MIB
SMALLEST_IMAGE_BYTES = 512 * MIB  # below it mkfs.xfs (300 MB) or PostgreSQL's WAL lacks room
SMALLEST_MEMORY_BYTES = 256 * MIB
SMALLEST_CUT_IMAGE_BYTES = 128 * MIB  # what mkfs.btrfs asks for; XFS says itself that it wants 300 MB
SMALLEST_JOURNAL_BYTES = 64 * MIB  # mkfs.xfs may ask for 64 MB of log, ReiserFS for 33
JOURNAL_BYTES = 256 * MIB
LONGEST_S = 30 * 86400.0

# In the order of the record's fields, each with its abbreviation in a made-up throttle's name.
THROTTLE_KEYS = {
    "read_iops": "r",
    "write_iops": "w",
    "read_bandwidth": "rb",
    "write_bandwidth": "wb",
}

_TIMES = ("read", "write", "flush")

LATENCY_KEYS = (*_TIMES, "queue_depth", "sequential", "iops", "bandwidth", "stall")

_DISK, _SPEED, _QUEUE_DEPTH = "disk", "speed", "queue_depth"

# A disk's keys in a plan, each with its field.
_DISK_TIMES = {
    "seek_track": "seek_track_ms",
    "seek_average": "seek_average_ms",
    "seek_full": "seek_full_ms",
    "write_settle": "write_settle_ms",
    "overhead": "overhead_ms",
}
_DISK_RATES = {"outer": "outer_bytes_per_s", "inner": "inner_bytes_per_s"}
_DISK_SIZES = {"cache": "cache_bytes", "read_ahead": "read_ahead_bytes", "capacity": "capacity_bytes"}

DISK_KEYS = ("rpm", *_DISK_TIMES, *_DISK_RATES, *_DISK_SIZES, _QUEUE_DEPTH)

_TIMES_MEMORY = re.compile(r"\s*(\d{1,4}(?:\.\d{1,3})?)\s*x\s+memory\s*", re.ASCII)
_VERSION = re.compile(r"(\d{2})(\.\d{1,2})?", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._=-]{0,59}")
_KERNEL = re.compile(r"\d{1,3}\.\d{1,3}[A-Za-z0-9.+~_-]{0,80}", re.ASCII)

# What a JSON schema says of a value: no more than its check refuses, as an editor must not call a right plan wrong.
Form: TypeAlias = dict[str, Any]

FORMS: dict[Callable[..., Any], Callable[..., Form]] = {}

Check = TypeVar("Check", bound=Callable[..., Any])


def takes(form: Form | Callable[..., Form]) -> Callable[[Check], Check]:
    """Notes the form of the values that a check takes, by the check's bounds where it has some."""

    def note(check: Check) -> Check:
        FORMS[check] = form if callable(form) else lambda: form
        return check

    return note


def either(*forms: Form) -> Form:
    """A value of one of several forms."""
    return {"anyOf": list(forms)}


def pattern(expression: str) -> Form:
    """A text that a pattern describes from its first character to its last."""
    return {"type": "string", "pattern": f"^(?:{expression})$"}


def table(keys: Mapping[str, Form], required: Sequence[str] = ()) -> Form:
    """A table with these keys and no others."""
    return {
        "type": "object",
        "properties": dict(keys),
        "required": list(required),
        "additionalProperties": False,
        "minProperties": 1,
    }


TEXT: Form = {"type": "string"}
SCALAR: Form = {"type": ["string", "number", "boolean"]}


@takes({"type": "string", "maxLength": 200})
def title(value: Any) -> str:
    """One line of text."""
    if isinstance(value, str) and value.strip() and len(value) <= 200 and value.isprintable():
        return value
    raise ValueError("allowed is one line of at most 200 printable characters")


@takes(lambda lowest, highest: {"type": "integer", "minimum": lowest, "maximum": highest})
def whole_number(lowest: int, highest: int, value: Any) -> int:
    """A whole number within bounds."""
    if isinstance(value, int) and not isinstance(value, bool) and lowest <= value <= highest:
        return value
    raise ValueError(f"allowed is a whole number from {lowest} to {highest}")


@takes({"type": "boolean"})
def flag(value: Any) -> bool:
    """True or false, and nothing that looks like it."""
    if isinstance(value, bool):
        return value
    raise ValueError("allowed are true and false")


@takes(lambda allowed: {"enum": list(allowed)})
def one_of(words: tuple[str, ...], value: Any) -> str:
    """One of some words."""
    if isinstance(value, str) and value in words:
        return value
    raise ValueError(f"allowed: {listed_for(value, words)}")


@takes(lambda allowed: {"enum": list(allowed)})
def feature(spellings: tuple[str | bool, ...], value: Any) -> str | bool:
    """One of the levels that some type of file system has; which one has it is a matter of pruning."""
    # 1 equals true, and is none of its spellings.
    if isinstance(value, (str, bool)) and value in spellings:
        return value
    shown_levels = (str(item).lower() if isinstance(item, bool) else item for item in spellings)
    raise ValueError(f"allowed: {listed_for(value, tuple(shown_levels))}")


def listed_for(value: Any, words: Iterable[str]) -> str:
    """`ext4, xfs; did you mean xfs?`: all words, and the one that a value is near to."""
    hint = did_you_mean(value, words) if isinstance(value, str) else ""
    return f"{', '.join(words)}{f'; {hint}' if hint else ''}"


@takes({"type": "string", "maxLength": 500})
def kernel(value: Any) -> str:
    """A version, a release, or the absolute path of a kernel of the user's own."""
    allowed = 'allowed is a version or a release as text ("6.12", "6.12.95+deb12-amd64"), or an absolute path'
    if isinstance(value, float):
        raise ValueError(f"put it in quotes, as 6.10 and 6.1 are one number and two kernels; {allowed}")
    if not isinstance(value, str):
        raise ValueError(allowed)
    if value.startswith("/"):
        # Commas and colons divide what QEMU and overlay mounts are told.
        if (
            not value.isprintable()
            or len(value) > 500
            or ".." in value.split("/")
            or set(value) & set(",:\\")
        ):
            raise ValueError("a kernel's path has no comma, colon, backslash or `..`")
        return value
    if _KERNEL.fullmatch(value) is None:
        raise ValueError(allowed)
    return value


@takes(
    lambda lowest, highest: either(
        {"type": "integer", "minimum": lowest, "maximum": highest}, pattern(SIZE_PATTERN)
    )
)
def size(lowest: int, highest: int, value: Any) -> int:
    """A size in bytes, or a text with a unit."""
    allowed = f'allowed is a size from {format_size(lowest)} to {format_size(highest)}, such as "2 GB"'
    try:
        found = parse_size(value) if isinstance(value, (str, int)) else None
    except (ValueError, OverflowError):
        found = None
    if found is None or not lowest <= found <= highest:
        raise ValueError(allowed)
    return found


@takes(lambda allowed: either({"enum": [*map(size_in_kb, allowed), *allowed]}, pattern(SIZE_PATTERN)))
def power_of_two(sizes: tuple[int, ...], value: Any) -> int:
    """One of some sizes."""
    try:
        found = parse_size(value) if isinstance(value, (str, int)) else None
    except (ValueError, OverflowError):
        found = None
    if found not in sizes:
        raise ValueError(f"allowed: {', '.join(size_in_kb(entry) for entry in sizes)}")
    return found


@takes(pattern(SIZE_PATTERN))
def read_ahead_kb(value: Any) -> int:
    """Read-ahead in kB from a text with a unit."""
    if isinstance(value, int) and not isinstance(value, bool):
        raise ValueError(
            f'a bare number may mean sectors, kB or bytes; write a unit (8192 sectors are "4096 kB", '
            f'{value} kB is "{value} kB")'
            if abs(value) < 10**9
            else 'write a size with its unit, "4096 kB"'
        )
    found = size(0, GIB, value)
    if found % KIB:
        raise ValueError("allowed is a whole number of kB")
    return found // KIB


@takes(
    lambda lowest: either(
        {"type": "number", "minimum": lowest, "maximum": LONGEST_S}, pattern(DURATION_PATTERN)
    )
)
def duration(lowest: float, value: Any) -> float:
    """Whole seconds, as a client program counts them."""
    allowed = (
        f'allowed is a whole number of seconds from {lowest:.0f}, or a text such as "90 s", "4 min", "2 h"'
    )
    try:
        found = parse_duration_s(value) if isinstance(value, (str, int, float)) else None
    except ValueError:
        found = None
    if found is None or not lowest <= found <= LONGEST_S or found != int(found):
        raise ValueError(allowed)
    return found


@takes(
    either(
        {"enum": [UNTIL_STEADY]},
        {"type": "number", "minimum": 0, "maximum": LONGEST_S},
        pattern(DURATION_PATTERN),
    )
)
def warmup(value: Any) -> float | str:
    """A time, or until the run is steady."""
    if value == UNTIL_STEADY:
        return UNTIL_STEADY
    try:
        return duration(0, value)
    except ValueError as error:
        raise ValueError(f'{error}, or "{UNTIL_STEADY}"') from None


@takes(either({"enum": [UNLIMITED]}, {"type": "number", "exclusiveMinimum": 0, "maximum": 1e9}))
def rate(value: Any) -> float | None:
    """Transactions a second that are offered; None for as fast as they go."""
    if value == UNLIMITED:
        return None
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= 1e9:
        return float(value)
    raise ValueError(f'allowed is a number of transactions a second, or "{UNLIMITED}"')


@takes(either({"type": "integer", "minimum": 1, "maximum": 1_000_000}, pattern(_TIMES_MEMORY.pattern)))
def scale(value: Any) -> DatasetScale:
    """A scale in units of a workload, or a multiple of the memory."""
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 1_000_000:
        return DatasetScale(units=value)
    found = _TIMES_MEMORY.fullmatch(value) if isinstance(value, str) else None
    if found is None or not 0 < float(found[1]) <= 1000:
        raise ValueError('allowed is a whole number from 1 to 1000000, or a multiple such as "4x memory"')
    return DatasetScale(times_memory=float(found[1]))


@takes({"type": "number", "minimum": 0.01, "maximum": 10_000})
def scale_factor(value: Any) -> float:
    """TPC-H's scale factor: 1 is a gigabyte of data; with at most two digits behind the point."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0.01 <= value <= 10_000:
        number = round(float(value), 2)
        if number == value:
            return number
    raise ValueError("allowed is a number from 0.01 to 10000 with at most two digits behind the point")


@takes({"type": "array", "items": {"enum": [COLD, WARM]}, "maxItems": MOST_PASSES})
def passes(value: Any) -> tuple[str, ...]:
    """The passes over the queries, in order."""
    if isinstance(value, list) and len(value) <= MOST_PASSES and all(item in (COLD, WARM) for item in value):
        return tuple(value)
    raise ValueError(f'allowed is a list of at most {MOST_PASSES} passes, each "{COLD}" or "{WARM}"')


@takes(lambda allowed: {"type": "array", "items": {"enum": list(allowed)}, "minItems": 1})
def some_of(words: tuple[str, ...], value: Any) -> tuple[str, ...]:
    """A list of known words, each once; they come in the order of `words`."""
    if not isinstance(value, list) or not value:
        raise ValueError(f"allowed is a list of {', '.join(words)}")
    unknown = [item for item in value if item not in words]
    if unknown:
        raise ValueError(f"allowed is a list of {listed_for(unknown[0], words)}")
    return tuple(item for item in words if item in value)


@takes(
    either(
        {"type": "integer", "minimum": MIB, "maximum": 16 * TIB},
        pattern(SIZE_PATTERN),
        pattern(_TIMES_MEMORY.pattern),
    )
)
def file_size(value: Any) -> int | str:
    """The size of a file in whole MiB, or a multiple of the memory as text."""
    found = _TIMES_MEMORY.fullmatch(value) if isinstance(value, str) else None
    if found is not None:
        if not 0 < float(found[1]) <= 1000:
            raise ValueError('allowed is a size, or a multiple such as "2x memory"')
        return f"{float(found[1]):g}x memory"
    return size(MIB, 16 * TIB, value) // MIB * MIB


@takes(either({"type": "integer", "minimum": 0, "maximum": GIB}, pattern(SIZE_PATTERN)))
def per_character(value: Any) -> int:
    """The bytes of stages that go character by character, in whole MiB; 0 leaves them out."""
    return 0 if value in (0, "0") and not isinstance(value, bool) else size(MIB, GIB, value) // MIB * MIB


@takes({"type": "integer", "minimum": 0, "maximum": 29_000 * 1024, "multipleOf": 1024})
def file_count(value: Any) -> int:
    """How many files are created: a multiple of 1024, or none."""
    number = whole_number(0, 29_000 * 1024, value)
    if number % 1024:
        raise ValueError("allowed is a multiple of 1024, or 0 for none")
    return number


@takes(either({"enum": [*VERSIONS, *map(int, VERSIONS)]}, pattern(_VERSION.pattern)))
def version(value: Any) -> str:
    """A major version of PostgreSQL, or an exact one."""
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    found = _VERSION.fullmatch(text) if isinstance(text, str) else None
    if found is None or found[1] not in VERSIONS:
        raise ValueError(f'allowed: {", ".join(VERSIONS)}, or an exact version as text, such as "18.6"')
    return str(text)


@takes(pattern(_NAME.pattern))
def run_name(value: Any) -> str:
    """A name for a run that also names its folder."""
    if isinstance(value, str) and _NAME.fullmatch(value):
        return value
    raise ValueError("allowed are 1 to 60 letters, digits, blanks and . _ = -, a letter or digit first")


@takes({"type": "array", "items": {"type": "string"}, "maxItems": 100})
def mount_options(value: Any) -> tuple[str, ...]:
    """A list of mount options; the list is one level."""
    reasons: list[str] = []
    for word in _texts(value):
        try:
            words.mount_option(word)
        except ValueError as error:
            reasons.append(str(error))
    if reasons:
        raise ValueError(joined(reasons))
    return tuple(value)


@takes({"type": "array", "items": {"type": "string"}, "maxItems": 100})
def mkfs_options(value: Any) -> tuple[str, ...]:
    """A list of argument words for mkfs; the list is one level."""
    return words.mkfs_options(_texts(value))


@takes(
    either({"enum": list(THROTTLES)}, table({key: {"type": ["integer", "string"]} for key in THROTTLE_KEYS}))
)
def throttle(value: Any) -> Throttle:
    """A named slower device, or a table of limits; a made-up one is named by its limits."""
    if isinstance(value, str) and value in THROTTLES:
        return THROTTLES[value]
    if not isinstance(value, dict) or not value:
        raise ValueError(f"allowed: {', '.join(THROTTLES)}, or a table with {', '.join(THROTTLE_KEYS)}")
    reasons: list[str] = []
    limits: dict[str, int] = {}
    for key, limit in value.items():
        try:
            limits[key] = _limit(key, limit)
        except ValueError as error:
            reasons.append(f"{in_quotes(key)} = {in_quotes(limit)}: {error}")
    if reasons:
        raise ValueError(joined(reasons))
    name = "-".join(
        ["custom", *(f"{word}{limits[key]}" for key, word in THROTTLE_KEYS.items() if key in limits)]
    )
    return Throttle(name, *(limits.get(key) for key in THROTTLE_KEYS))


def _limit(key: str, value: Any) -> int:
    if key not in THROTTLE_KEYS:
        raise ValueError(f"unknown key; allowed: {', '.join(THROTTLE_KEYS)}")
    return whole_number(1, 10**8, value) if key.endswith("_iops") else size(64 * KIB, TIB, value)


@takes(pattern("/dev/.+"))
def device(value: Any) -> str:
    """The stable name of a device."""
    if not isinstance(value, str):
        raise ValueError("allowed is a path such as /dev/disk/by-id/…")
    return words.stable_device(value)


def file_beside_the_plan(name: str, info: ValidationInfo) -> str:
    """The text of a file by its path beside the plan; ValueError where it is none, or lies elsewhere."""
    # A plan from elsewhere must not copy this machine's files into a study that is then shared.
    context = info.context or {}
    directory = Path(context["directory"]).resolve()
    if not name.isprintable() or not 0 < len(name) <= 500 or Path(name).is_absolute():
        raise ValueError("allowed is a path relative to the plan")
    try:
        path = (directory / name).resolve()
        if ".." in Path(name).parts or not path.is_relative_to(directory):
            raise ValueError("the file lies outside of the plan's directory; copy it beside the plan")
        if not path.is_file():
            raise ValueError(f"there is no such file in {directory}")
        if path.stat().st_size > MAX_FILE_BYTES:
            raise ValueError(f"the file is larger than {format_size(MAX_FILE_BYTES)}")
        # By its name, as a study's plan is read: where that may have become a link, none is followed.
        text = decode_text(read_at_most(Path(context["directory"]) / name, MAX_FILE_BYTES))
    except (OSError, RuntimeError) as error:
        raise ValueError(f"the file cannot be read: {error}") from None
    context["files"][str(Path(name))] = text
    return text


def _texts(value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise ValueError('allowed is a list of texts, such as ["noatime"]; vary takes a list of such lists')
    if len(value) > 100:
        raise ValueError("allowed are at most 100 words")
    return value


# A page is copied through user space twice; what that comes to is some GB/s, and a limit near to it would be none.
_MOST_BYTES_PER_S = 10**9

MOST_SPEED = 64
_LONGEST_DISK_NS = 10**9
_MOST_OF = {"cache": GIB, "read_ahead": 64 * MIB, "capacity": 16 * TIB}


@takes(
    either(
        {"enum": list(LATENCIES)},
        table(
            {
                **dict.fromkeys(LATENCY_KEYS, TEXT),
                "queue_depth": {"type": "integer", "minimum": 1},
                "iops": {"type": "integer", "minimum": 1},
                "bandwidth": either({"type": "integer"}, pattern(SIZE_PATTERN)),
            },
            required=_TIMES,
        ),
        table(
            {
                _DISK: either(
                    {"enum": [name for name, named in LATENCIES.items() if named.disk is not None]},
                    table(
                        {
                            "rpm": {"type": "integer", "minimum": 1000, "maximum": 100_000},
                            **dict.fromkeys(_DISK_TIMES, TEXT),
                            **dict.fromkeys(
                                (*_DISK_RATES, *_DISK_SIZES),
                                either({"type": "integer"}, pattern(SIZE_PATTERN)),
                            ),
                            _QUEUE_DEPTH: {"type": "integer", "minimum": 1},
                        }
                    ),
                ),
                _SPEED: {"type": "integer", "minimum": 1, "maximum": MOST_SPEED},
            },
            required=(_DISK,),
        ),
    )
)
def latency(value: Any) -> Latency:
    """A named device, or a table of what it takes; a made-up one is named by its keys."""
    if isinstance(value, str) and value in LATENCIES:
        return LATENCIES[value]
    if isinstance(value, dict) and _DISK in value:
        return _at_speed(value)
    if not isinstance(value, dict) or not value:
        raise ValueError(
            f"allowed: {', '.join(LATENCIES)}, or a table with {', '.join(LATENCY_KEYS)}, or with disk and speed"
        )
    reasons = [f"{name}: missing; say what one takes" for name in _TIMES if name not in value]
    found: dict[str, Any] = {}
    for key, given in value.items():
        try:
            found[key] = _value(key, given)
        except ValueError as error:
            reasons.append(f"{in_quotes(key)} = {in_quotes(given)}: {error}")
    if reasons:
        raise ValueError(joined(reasons))
    # Of every key, so that two levels never have one name.
    name = "custom " + ", ".join(f"{key} {found[key]}" for key in LATENCY_KEYS if key in found)
    bandwidth = found.pop("bandwidth", None)
    depth = found.pop("queue_depth", USUAL_PLACES)
    return Latency(name, queue_depth=depth, bytes_per_s=bandwidth, **found)


def _at_speed(value: Mapping[str, Any]) -> Latency:
    if unknown := [in_quotes(key) for key in value if key not in (_DISK, _SPEED)]:
        raise ValueError(f"{', '.join(unknown)}: beside disk only speed is allowed")
    modelled = _modelled(value[_DISK])
    if _SPEED not in value:
        return modelled
    try:
        speed = whole_number(1, MOST_SPEED, value[_SPEED])
    except ValueError as error:
        raise ValueError(f"speed = {in_quotes(value[_SPEED])}: {error}") from None
    return faster(modelled, speed)


def faster(modelled: Latency, speed: int) -> Latency:
    """A modelled disk with every time divided by `speed`; the name says so."""
    if modelled.disk is None:
        raise ValueError(f"{modelled.name} is no modelled disk; speed divides the times of one")
    if speed == 1:
        return modelled
    disk = replace(modelled.disk, speed=speed * modelled.disk.speed)
    return replace(modelled, name=f"{modelled.name} at {disk.speed} times its speed", disk=disk)


def _modelled(value: Any) -> Latency:
    named = [name for name, latency in LATENCIES.items() if latency.disk is not None]
    if isinstance(value, str) and value in named:
        return LATENCIES[value]
    if not isinstance(value, dict) or not value:
        raise ValueError(f"disk: allowed: {', '.join(named)}, or a table with {', '.join(DISK_KEYS)}")
    reasons, levels, shown = [], dict[str, Any](), []
    for key, given in value.items():
        try:
            field, level = _disk_level(key, given)
        except ValueError as error:
            reasons.append(f"{in_quotes(key)} = {in_quotes(given)}: {error}")
            continue
        levels[field] = level
        words = f"{level:g}ms" if key in _DISK_TIMES else f"{level}"
        shown.append((DISK_KEYS.index(key), f"{key} {words}"))
    if reasons:
        raise ValueError(joined(reasons))
    depth = levels.pop(_QUEUE_DEPTH, USUAL_PLACES)
    disk = Disk(**levels)
    if disk.reason is not None:
        raise ValueError(f"disk: {disk.reason}")
    # Of every key, so that two levels never have one name.
    return Latency.of_disk(f"custom disk {', '.join(words for _, words in sorted(shown))}", disk, depth)


def _disk_level(key: str, value: Any) -> tuple[str, float | int]:
    if key == "rpm":
        return key, whole_number(1000, 100_000, value)
    if key in _DISK_TIMES:
        law = Law.parse(_text(value))
        if law.shape != CONSTANT or not 0 < law.first_ns <= _LONGEST_DISK_NS:
            raise ValueError('allowed is one time up to 1s, such as "8.5ms"')
        return _DISK_TIMES[key], law.first_ns / 1e6
    if key in _DISK_RATES:
        return _DISK_RATES[key], size(MIB, _MOST_BYTES_PER_S, value)
    if key in _DISK_SIZES:
        return _DISK_SIZES[key], size(GIB if key == "capacity" else 0, _MOST_OF[key], value)
    if key == _QUEUE_DEPTH:
        return key, whole_number(1, MOST_PLACES, value)
    raise ValueError(f"unknown key; allowed: {', '.join(DISK_KEYS)}")


def _value(key: str, value: Any) -> str | int:
    if key in (*_TIMES, "sequential"):
        return Law.parse(_text(value)).words
    if key == "stall":
        return Stall.parse(_text(value)).words
    if key == "queue_depth":
        return whole_number(1, MOST_PLACES, value)
    if key == "iops":
        return whole_number(1, 10**6, value)
    if key == "bandwidth":
        return size(64 * KIB, _MOST_BYTES_PER_S, value)
    raise ValueError(f"unknown key; allowed: {', '.join(LATENCY_KEYS)}")


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise ValueError('write a text with a unit, such as "2ms"')
