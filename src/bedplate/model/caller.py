"""Who called sudo: what root makes for a person belongs to that person, and what that person has root may go on with."""

from __future__ import annotations

import os


def sudo_caller() -> tuple[int, int] | None:
    """User and group of who called sudo; None without sudo, and where root called it."""
    if os.geteuid() != 0:
        return None
    try:
        uid, gid = int(os.environ["SUDO_UID"]), int(os.environ["SUDO_GID"])
    except (KeyError, ValueError):
        return None
    return (uid, gid) if uid > 0 and gid >= 0 else None
