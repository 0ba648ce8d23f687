"""Where a journal really is: the device that a file system names against the one that was given to it."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.filesystem.comparison import compared, fact

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bedplate.host.devices.device import AttachedDevice
    from bedplate.model.cell import FilesystemLevels
    from bedplate.model.visit import ReadBack

# Stands for the device in every comparison: its number is another one in the next visit.
GIVEN = "the given device"
# Words of a mount that name the device.
_WORDS = ("logdev=", "jdev=", "journal_dev=", "journal_path=")


def journal_comparisons(
    levels: FilesystemLevels, kind: str, found: str | None, journal: AttachedDevice | None, source: str
) -> tuple[ReadBack, ...]:
    """The journal's kind (`internal`, `external`, `none`), and whether it is on the given device.

    `found` is what the file system names: a device's path or its `major:minor`; None if it names none.
    """
    kinds = (compared("filesystem.journal", levels.journal, kind, source),)
    if journal is None:
        return kinds
    there = found is not None and device_number(found) == device_number(journal.path)
    return (
        *kinds,
        compared("filesystem.journal_device", GIVEN, GIVEN if there else found, source),
        fact("filesystem.journal_device_bytes", journal.size_bytes, "the block device"),
    )


def device_number(text: str) -> str | None:
    """`major:minor` of a path or of what is one already; None if there is no such block device."""
    if not text.startswith("/"):
        return text
    try:
        status = Path(text).stat()
    except OSError:
        return None
    if not stat.S_ISBLK(status.st_mode):
        return None
    return f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"


def decoded_number(code: int) -> str:
    """`major:minor` of a number as superblocks keep it (include/linux/kdev_t.h, new_decode_dev)."""
    return f"{(code & 0xFFF00) >> 8}:{(code & 0xFF) | ((code >> 12) & 0xFFF00)}"


def without_device(shown: Iterable[str]) -> tuple[str, ...]:
    """The shown words, sorted, without those that name the journal's device."""
    return tuple(sorted(word for word in shown if not word.startswith(_WORDS)))
