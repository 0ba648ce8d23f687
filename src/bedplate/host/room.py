"""Whether there is room left where bedplate itself writes: the study's disk, the state directory."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from bedplate.units import MIB, format_size

if TYPE_CHECKING:
    from pathlib import Path

# What no record fits in any more. An error without a name of a file (of write(2)) says no more than "full".
_FULL_BYTES = MIB
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})


def full_places(*places: Path) -> tuple[str, ...]:
    """A sentence for each of these folders that is there and whose file system has no room left."""
    found = []
    for place in places:
        try:
            room = os.statvfs(place)
        except OSError:
            continue
        free_bytes = room.f_bavail * room.f_frsize
        if free_bytes < _FULL_BYTES:
            found.append(
                f"{place}: {os.strerror(errno.ENOSPC)} ({format_size(free_bytes)} free); free some room there"
            )
        elif room.f_files and not room.f_favail:
            found.append(f"{place}: {os.strerror(errno.ENOSPC)} (no inode is free); remove some files there")
    return tuple(dict.fromkeys(found))


def places_without_room(said: str, *places: Path) -> tuple[str, ...]:
    """The same after a program failed; it may have removed what it wrote, so what it said of a full disk counts too."""
    full = full_places(*places)
    if full or os.strerror(errno.ENOSPC) not in said:
        return full
    named = " or ".join(dict.fromkeys(map(str, places)))
    return (f"{named}: {os.strerror(errno.ENOSPC)}, as a program said that wrote there; free some room",)
