"""Where bedplate keeps what must not outlive a reboot: ledgers, locks, mount points, sockets."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from bedplate.errors import RequirementMissing


def state_directory() -> Path:
    """$BEDPLATE_STATE, else /run/bedplate for root, else the user's runtime directory."""
    given = os.environ.get("BEDPLATE_STATE")
    if given:
        return Path(given)
    if os.geteuid() == 0:
        return Path("/run/bedplate")
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime:
        return Path(runtime) / "bedplate"
    # In a folder of everybody's a stranger may have been first: what he owns he can move away with all in it.
    return own_directory(Path(f"/tmp/bedplate-{os.getuid()}")) / "bedplate"  # noqa: S108 -- looked at first


def own_directory(path: Path) -> Path:
    """The directory, made if need be; RequirementMissing if it is a link, another's, or open to others."""
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise RequirementMissing(
            f"{path} is not a directory of this user's alone (owner {status.st_uid}, mode "
            f"{stat.S_IMODE(status.st_mode):04o}); remove it, or set BEDPLATE_STATE or XDG_RUNTIME_DIR"
        )
    return path
