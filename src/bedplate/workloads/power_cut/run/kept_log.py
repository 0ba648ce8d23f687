"""The log of a run, packed for the study.

A database writes the same pages again and again: a window of megabytes finds the one before, where deflate with its 32
KiB does not. A log of LMDB of 869 MB was packed to 12 MB in 17 s; deflate made 371 MB of it in 10 s.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from bedplate.errors import StudyError
from bedplate.units import MIB

if TYPE_CHECKING:
    from pathlib import Path

_WINDOW_BYTES = 16 * MIB
_PIECE_BYTES = 4 * MIB


def keep_log(log: Path, target: Path, *, limit_bytes: int | None = None) -> bool:
    """Pack a log (xz); a reader finds the whole of it or nothing. False where it would be larger than the limit."""
    # Some interpreters are built without it, and most runs need it not.
    import lzma  # noqa: PLC0415

    fastest = {
        "id": lzma.FILTER_LZMA2,
        "mode": lzma.MODE_FAST,
        "mf": lzma.MF_HC3,
        "nice_len": 64,
        "depth": 2,
        "dict_size": _WINDOW_BYTES,
    }
    part = target.with_name(f".{target.name}.part")
    with log.open("rb") as source, lzma.open(part, "wb", filters=[fastest]) as packed:
        while piece := source.read(_PIECE_BYTES):
            packed.write(piece)
            if limit_bytes is not None and part.stat().st_size > limit_bytes:
                break
    if limit_bytes is not None and part.stat().st_size > limit_bytes:
        part.unlink()
        return False
    part.replace(target)
    return True


def unpack_log(kept: Path, target: Path) -> None:
    """The log as it was; StudyError if the packed one is damaged."""
    import lzma  # noqa: PLC0415

    try:
        with lzma.open(kept) as packed, target.open("wb") as log:
            shutil.copyfileobj(packed, log, _PIECE_BYTES)
    except (lzma.LZMAError, EOFError) as error:
        raise StudyError(f"{kept} is damaged: {error}") from error
