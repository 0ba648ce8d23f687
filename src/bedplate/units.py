"""Sizes, times and rates: how a person writes them in a plan, and how they are shown.

Sizes are powers of 1024 whatever the spelling (`kB`, `KB`, `KiB`), as PostgreSQL and every
file system tool count them; a `GB` of memory is what PostgreSQL calls a GB.
"""

from __future__ import annotations

import re
from math import isfinite

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB
TIB = 1024 * GIB

# A kernel counter of "sectors" is in units of 512 bytes whatever the device's block size
# (Documentation/block/stat.rst).
KERNEL_SECTOR_BYTES = 512

# Plain patterns without flags: a JSON schema hands them to editors.
SIZE_PATTERN = r"\s*(\d+(?:\.\d+)?)\s*(?:([kmgtKMGT])[iI]?)?([bB])?\s*"
DURATION_PATTERN = r"\s*(\d+(?:\.\d+)?)\s*(us|ms|s|min|m|h|d)?\s*"
_SIZE = re.compile(SIZE_PATTERN)
_SIZE_FACTORS = {"": 1, "k": KIB, "m": MIB, "g": GIB, "t": TIB}
_DURATION = re.compile(DURATION_PATTERN)
_DURATION_FACTORS = {
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86400.0,
}


def parse_size(text: str | int) -> int:
    """Bytes from `8192`, `"8 kB"`, `"1.5 GiB"`; ValueError says what is allowed."""
    if isinstance(text, bool):
        raise ValueError(f"{text!r:.80} is not a size")
    if isinstance(text, int):
        if text < 0:
            raise ValueError(f"a size cannot be negative: {text}")
        return text
    found = _SIZE.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r:.80} is not a size; write bytes, or a number with kB, MB, GB or TB")
    size = float(found[1]) * _SIZE_FACTORS[(found[2] or "").lower()]
    if not isfinite(size) or size != int(size):
        raise ValueError(f"{text!r:.80} is not a whole number of bytes")
    return int(size)


def parse_duration_s(text: str | float) -> float:
    """Seconds from `90`, `"90 s"`, `"4min"`, `"1.5 h"`; ValueError says what is allowed."""
    if isinstance(text, bool):
        raise ValueError(f"{text!r:.80} is not a duration")
    if isinstance(text, (int, float)):
        if not 0 <= text < float("inf"):
            raise ValueError(f"a duration cannot be negative or endless: {text}")
        return float(text)
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueError(
            f"{text!r:.80} is not a duration; write seconds, or a number with ms, s, min, h or d"
        )
    seconds = float(found[1]) * _DURATION_FACTORS[found[2] or ""]
    if not isfinite(seconds):
        raise ValueError(f"a duration cannot be endless: {text!r:.80}")
    return seconds


def size_in_kb(size_bytes: int) -> str:
    """As file systems call their blocks: `4 kB`, `512 B`."""
    return f"{size_bytes // KIB} kB" if size_bytes >= KIB else f"{size_bytes} B"


def format_size(size_bytes: float) -> str:
    """`8 KiB`, `1.5 GiB`, `1007 GiB`: three significant digits and every whole one, the unit of the person who reads."""
    for factor, name in ((TIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if abs(size_bytes) >= factor:
            # From 999.5 on three digits would be written with an exponent.
            size = size_bytes / factor
            return f"{size:.0f} {name}" if abs(size) >= 999.5 else f"{size:.3g} {name}"
    return f"{size_bytes:.0f} B"


def format_duration(seconds: float) -> str:
    """`0.4 s`, `45 s`, `4 min 05 s`, `2 h 10 min`."""
    if 0 < seconds < 0.95:
        return f"{seconds:.1g} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def format_milliseconds(milliseconds: float) -> str:
    """`86.6 ms`, `1.44 s`: three significant digits."""
    return f"{milliseconds / 1000:.3g} s" if milliseconds >= 999.5 else f"{milliseconds:.3g} ms"


def format_count(number: int, one: str, several: str | None = None) -> str:
    """`1 visit`, `1,200 visits`; `several` is the plural where it is not `one` with an s."""
    return f"{number:,} {one if number == 1 else several or f'{one}s'}"


def percent(share: float, *, digits: int = 0) -> str:
    """A share of one in per cent, with so many digits behind the point: 0.05 as `5 %`."""
    return f"{100 * share:.{digits}f} %"


def asked_percent(share: float) -> str:
    """A share that somebody asked for, with the digits that he gave it: 0.025 as `2.5 %`."""
    return f"{100 * share:g} %"


def one_line(text: str) -> str:
    """The text in one line that prints as it is; what does not, as a line feed in a file's name, becomes a question mark."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def cut_line(text: str, most: int) -> str:
    """What somebody typed or wrote, in one line of at most so many characters."""
    words = one_line(" ".join(text.split()))
    return words if len(words) <= most else f"{words[: most - 1]}…"
