"""Why a run's server is gone, or refuses: told by its log and by the room on the scratch device."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from bedplate.engine.postgresql.cluster import ServerFailed

if TYPE_CHECKING:
    from bedplate.workload.protocol import Rig

SCRATCH_DEVICE_FULL = (
    "the scratch device is full: no space left; a smaller scale, a smaller max_wal_size or a larger "
    "image_size gives it room"
)


def why_the_server_is_gone(rig: Rig) -> list[str]:
    """The server's last words, and the full file system behind many of them; empty if all is well."""
    found: list[str] = []
    if "No space left on device" in rig.cluster.last_words(lines=40):
        found.append(SCRATCH_DEVICE_FULL)
    try:
        rig.cluster.check_alive()
    except ServerFailed as error:
        found.extend(error.reasons)
    try:
        space = os.statvfs(rig.mount_point)
    except OSError as error:
        found.append(f"the file system at {rig.mount_point} does not answer: {error.strerror}")
        return list(dict.fromkeys(found))
    if space.f_bavail * space.f_frsize < 16 * 2**20:
        found.append(SCRATCH_DEVICE_FULL)
    return list(dict.fromkeys(found))
