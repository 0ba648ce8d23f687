"""Where MariaDB's programs are, and what they need in their environment: unpacked packages are on no search path."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import BedplateError
from bedplate.host.apt.package_tree import PackageTree

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.model.visit import EngineBuild

SERVER = "sbin/mariadbd"
CLIENT = "bin/mariadb"
INSTALL = "bin/mariadb-install-db"
CHECK_PAGES = "bin/innochecksum"


class Programs:
    """Those of one unpacked tree; BedplateError where no build is named."""

    def __init__(self, build: EngineBuild | None) -> None:
        if build is None:
            raise BedplateError("a MariaDB needs its packages, and the request or the job names none")
        self.version = build.version
        self.prefix = build.prefix
        self.root = Path(build.prefix).parent
        libraries = PackageTree(self.root, {}, {}).library_path
        self.environment: Mapping[str, str] = (
            {"LD_LIBRARY_PATH": ":".join(map(str, libraries))} if libraries else {}
        )

    def path(self, program: str) -> str:
        """The path of one of the programs above."""
        return str(Path(self.prefix, program))
