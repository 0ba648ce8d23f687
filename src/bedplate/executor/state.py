"""Where bedplate keeps what must not outlive a reboot: ledgers, locks, mount points, sockets."""

from __future__ import annotations

import os
from pathlib import Path


def state_directory() -> Path:
    """$BEDPLATE_STATE, else /run/bedplate for root, else the user's runtime directory."""
    given = os.environ.get("BEDPLATE_STATE")
    if given:
        return Path(given)
    if os.geteuid() == 0:
        return Path("/run/bedplate")
    return Path(os.environ.get("XDG_RUNTIME_DIR", f"/tmp/bedplate-{os.getuid()}")) / "bedplate"  # noqa: S108
