"""Where bedplate keeps what is dear to make and can always be made again: sources and builds."""

from __future__ import annotations

import os
from pathlib import Path

# Root's, which everybody may read.
SYSTEM_CACHE = Path("/var/cache/bedplate")


def cache_directory() -> Path:
    """`$BEDPLATE_CACHE`; else /var/cache/bedplate for root, else the XDG cache of the user.

    Nothing is created here. A server runs from the cache as an unprivileged account, which is
    why root's default is not root's home.
    """
    asked = os.environ.get("BEDPLATE_CACHE")
    if asked:
        return Path(asked).absolute()
    if os.geteuid() == 0:
        return SYSTEM_CACHE
    # The XDG base directory specification: a relative path is invalid and to be ignored.
    xdg = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(xdg) if xdg.startswith("/") else Path.home() / ".cache"
    return base / "bedplate"
