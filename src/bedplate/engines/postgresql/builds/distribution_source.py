"""Fetches PostgreSQL's tarball as the distribution's source package, beside the machine's own apt.

apt checks the signature of the index and the checksum of the tarball against it; the checksum is
handed on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.engines.postgresql.builds.origin import Fetched, SourceUnavailable
from bedplate.engines.postgresql.builds.version import release_key
from bedplate.errors import CommandFailed
from bedplate.host.apt.archives import own_archives, suites_to_try
from bedplate.host.apt.private_root import PrivateRoot, apt_reason, is_unreachable, source_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bedplate.engines.postgresql.builds.version import AskedVersion
    from bedplate.host.apt.private_root import AptSystem
    from bedplate.host.command import Commands


def fetch_source_package(
    asked: AskedVersion,
    *,
    system: AptSystem,
    directory: Path,
    commands: Commands,
    progress: Callable[[str], None],
) -> Fetched:
    """Download the tarball of the source package `postgresql-<major>` into `directory`.

    Suites are added one at a time, as each costs the download of its index (about 10 MB).
    `SourceUnavailable` says what every suite had instead.
    """
    reasons: list[str] = []
    name = f"postgresql-{asked.major}"
    archives = own_archives(system.archives, system.os_release)
    if not archives:
        raise SourceUnavailable("apt's sources name no archive of this distribution's own suite")
    for number, archive in enumerate(archives):
        root = PrivateRoot(directory / f"root{number}", commands)
        for suite in suites_to_try(system.os_release, distro_info=system.distro_info):
            progress(f"looks for {name} in the distribution's {suite}")
            try:
                root.add(source_line(archive, suite, system, kind="deb-src"))
                packages = root.source_packages(name)
                fitting = [item for item in packages if asked.accepts(item.upstream)]
                if not fitting:
                    has = ", ".join(item.version for item in packages) or "nothing of that name"
                    reasons.append(f"{suite} has {has}")
                    continue
                best = max(fitting, key=lambda item: release_key(item.upstream) or (0, 0))
                progress(f"fetches {name} {best.version} from the distribution's {suite}")
                tarball = root.download_source(name, best, directory)
            except CommandFailed as error:
                reasons.append(f"{suite}: {apt_reason(error)}")
                if is_unreachable(error):
                    # Its other suites are no nearer, and each would be waited for.
                    break
                continue
            return Fetched(tarball, best.upstream, f"{name} {best.version} ({suite})", best.tarball_sha256)
    raise SourceUnavailable("; ".join(dict.fromkeys(reasons)))
