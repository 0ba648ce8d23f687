"""Remembers what configure found out about the machine, where that cannot have changed.

Configure asks the compiler some 400 questions, one after the other, on one processor; none of the
answers depends on a block size. They are used again only by the same source, compiler and options,
under the same search path, in the same boot, with the very same state of installed packages. Where
that state cannot be told (no dpkg, no rpm) nothing is remembered.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.host.git.checkout import give
from bedplate.host.plain_file import bytes_below
from bedplate.units import MIB

if TYPE_CHECKING:
    from bedplate.engines.postgresql.builds.build_record import BuildIdentity
    from bedplate.host.command import Account

# The name within the build folder: relative, as it ends up in `pg_config --configure`.
CACHE_FILE = "config.cache"
_BYTES_MOST = 16 * MIB
_PACKAGE_STATES = (Path("/var/lib/dpkg/status"), Path("/var/lib/rpm/rpmdb.sqlite"))
_LOCAL_FOLDERS = (Path("/usr/local/include"), Path("/usr/local/lib"), Path("/usr/local/bin"))
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class ConfigureCache:
    """The remembered answers at `path`; None where nothing may be remembered."""

    path: Path | None

    def lend(self, work: Path, account: Account | None = None) -> None:
        """Put a copy into the build folder, for the account that builds; configure writes to its own copy only."""
        if self.path is not None and self.path.is_file():
            shutil.copyfile(self.path, work / CACHE_FILE)
            give(work / CACHE_FILE, account)

    def keep(self, work: Path) -> None:
        """Remember the answers of a configure that succeeded. OSError where they are no plain file."""
        if self.path is not None and not self.path.exists():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            partial = self.path.with_suffix(f".{os.getpid()}")
            partial.write_bytes(bytes_below(work, CACHE_FILE, _BYTES_MOST))
            partial.rename(self.path)


def configure_cache(
    identity: BuildIdentity,
    directory: Path,
    *,
    package_states: tuple[Path, ...] = _PACKAGE_STATES,
) -> ConfigureCache:
    """The cache for builds that differ from `identity` in their block sizes only."""
    states = [_state(path) for path in package_states if path.exists()]
    if not states:
        return ConfigureCache(None)
    options = [item for item in identity.configure_options if "blocksize=" not in item]
    known = {
        "source": identity.tarball_sha256,
        "compiler": identity.compiler,
        "machine": identity.machine,
        "options": options,
        "recipe": identity.recipe_version,
        "packages": states,
        "local": [_state(path) for path in _LOCAL_FOLDERS if path.exists()],
        "path": os.environ.get("PATH", ""),
        "boot": _BOOT_ID.read_text(encoding="ascii").strip(),
    }
    digest = hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()
    return ConfigureCache(directory / f"{digest[:16]}.cache")


def _state(path: Path) -> list[object]:
    seen = path.stat()
    return [str(path), seen.st_mtime_ns, seen.st_size]
