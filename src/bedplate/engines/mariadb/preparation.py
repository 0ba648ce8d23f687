"""What must be there before a MariaDB is started: the distribution's packages, unpacked in the cache and never configured.

Nothing of a MariaDB that the machine has is touched: not its data, its option files, its users or its service.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from bedplate.engines.mariadb.unpacked import CHECK_PAGES, CLIENT, INSTALL, SERVER
from bedplate.errors import RequirementMissing
from bedplate.host.apt.package_tree import ensure_package_tree, find_package_tree
from bedplate.host.build_progress import BuildProgress
from bedplate.host.cache import cache_directory
from bedplate.host.command import Commands
from bedplate.host.requirement import Need, look
from bedplate.model.visit import EngineBuild

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from bedplate.campaign.dataset_inputs import Unused
    from bedplate.campaign.engine_preparation import EnginePreparation
    from bedplate.host.apt.package_tree import PackageTree
    from bedplate.host.requirement import Requirement
    from bedplate.model.cell import BuildLevels
    from bedplate.model.source_commit import PlanSources

SERVER_PACKAGE = "mariadb-server-core"
PACKAGES = (SERVER_PACKAGE, "mariadb-client-core", "mariadb-client")
# The first with the counters that are read (Innodb_checkpoint_age, Innodb_lsn_current).
OLDEST = (10, 6)
_TOOLS = (
    Need("apt-get", "apt", "fetches MariaDB's packages, which stay in the cache of bedplate"),
    Need("dpkg-deb", "dpkg", "unpacks MariaDB's packages"),
)
_VERSION = re.compile(r"(?:\d+:)?((\d+)\.(\d+)[^-+]*)")

# Some 120 MiB from the distribution's mirror, of which most is the network's time.
_UNPACKED_S = 60.0


class MariadbPreparation:
    """One tree of packages for every cell."""

    def words(self, levels: BuildLevels) -> str:  # noqa: ARG002 -- there is one
        """`MariaDB`."""
        return "MariaDB"

    def is_there(self, levels: BuildLevels) -> bool:  # noqa: ARG002 -- there is one
        """As an unpacked tree."""
        return find_package_tree(PACKAGES, cache_directory=cache_directory()) is not None

    def seconds(self, levels: BuildLevels) -> float:  # noqa: ARG002 -- there is one
        """Fetched and unpacked."""
        return _UNPACKED_S

    def requirements(self, levels: Iterable[BuildLevels]) -> tuple[Requirement, ...]:  # noqa: ARG002 -- there is one
        """The distribution's own package tools."""
        return look(_TOOLS)

    def ensure(
        self,
        levels: BuildLevels,  # noqa: ARG002 -- there is one
        progress: Callable[[BuildProgress], None],
        *,
        tarball: Path | None,  # noqa: ARG002 -- of engines with a source
        sources: PlanSources | None = None,  # noqa: ARG002 -- likewise
    ) -> EngineBuild:
        """Fetched and unpacked, some 120 MiB; RequirementMissing with apt's words, and for a version that is too old."""
        tree = ensure_package_tree(
            PACKAGES,
            cache_directory=cache_directory(),
            commands=Commands(),
            progress=lambda words: progress(BuildProgress(words)),
        )
        return build_of(tree)

    def unused(self, cache: Path, commands: Commands) -> Iterator[Unused]:  # noqa: ARG002 -- there is one
        """None: a study keeps its packages."""
        return iter(())


def build_of(tree: PackageTree) -> EngineBuild:
    """The tree as a visit needs it; its digest covers every package."""
    found = _VERSION.match(tree.packages.get(SERVER_PACKAGE, ""))
    if found is None or (int(found[2]), int(found[3])) < OLDEST:
        version = "an unknown version" if found is None else found[1]
        oldest = ".".join(map(str, OLDEST))
        raise RequirementMissing(
            f"this distribution's {SERVER_PACKAGE} is {version}; bedplate reads counters that came with {oldest}: "
            "use a distribution that has it"
        )
    prefix = tree.root / "usr"
    lacking = [name for name in (SERVER, CLIENT, INSTALL, CHECK_PAGES) if not (prefix / name).is_file()]
    if lacking:
        raise RequirementMissing(
            f"the packages {', '.join(PACKAGES)} were unpacked and lack {', '.join(lacking)}"
        )
    content = "\n".join(f"{name} {tree.checksums[name]}" for name in sorted(tree.packages))
    digest = hashlib.sha256(content.encode()).hexdigest()
    packages = ", ".join(f"{name} {tree.packages[name]}" for name in PACKAGES if name in tree.packages)
    return EngineBuild(
        prefix=str(prefix),
        version=found[1],
        block_size_bytes=0,
        wal_block_size_bytes=0,
        source_sha256=digest,
        source_origin=f"the distribution's packages {packages}",
        compiler="the distribution's",
        configure_options=(),
        digest=digest[:16],
    )


PREPARATION: EnginePreparation = MariadbPreparation()
