"""Why a run's server is gone, or refuses: told by its log and by the room on the scratch device."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from bedplate.engines.postgresql.cluster import ServerFailed
from bedplate.model.reason import (
    FILE_SYSTEM_SILENT,
    SCRATCH_DEVICE_FULL,
    Reason,
    because,
    distinct,
    reasons_of,
)

if TYPE_CHECKING:
    from bedplate.visit.workload import VisitContext

_FULL = because(
    SCRATCH_DEVICE_FULL,
    "the scratch device is full: no space left; a smaller scale, a smaller max_wal_size or a larger "
    "image_size gives it room",
)


def why_the_server_is_gone(context: VisitContext) -> tuple[Reason, ...]:
    """The server's last words, and the full file system behind many of them; empty if all is well."""
    found: list[Reason] = []
    if "No space left on device" in context.cluster.last_words(lines=40):
        found.append(_FULL)
    try:
        context.cluster.check_alive()
    except ServerFailed as error:
        found.extend(reasons_of(error))
    try:
        space = os.statvfs(context.mount_point)
    except OSError as error:
        words = f"the file system at {context.mount_point} does not answer: {error.strerror}"
        found.append(because(FILE_SYSTEM_SILENT, words))
        return distinct(found)
    if space.f_bavail * space.f_frsize < 16 * 2**20:
        found.append(_FULL)
    return distinct(found)
