"""Gets the source of PostgreSQL: given, kept, from the distribution, or from the project's site.

Every way that fails leaves a reason; when none leads anywhere all reasons are told at once.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.engines.postgresql.builds import source_store
from bedplate.engines.postgresql.builds.distribution_source import fetch_source_package
from bedplate.engines.postgresql.builds.official_site import fetch_official_tarball
from bedplate.engines.postgresql.builds.origin import Fetched, SourceUnavailable
from bedplate.engines.postgresql.builds.source_store import Origin, Source
from bedplate.engines.postgresql.builds.version import AskedVersion, parse_version
from bedplate.errors import PlanError, RequirementMissing
from bedplate.host.apt.private_root import read_apt_system
from bedplate.host.file_lock import file_lock
from bedplate.host.files import sha256_of
from bedplate.host.tarball import first_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from bedplate.host.command import Commands


_FETCH = ".fetch-"
_TOP_FOLDER = re.compile(r"(?:\./)?postgresql-(\d+\.\d+)(?:/|$)")


def ensure_source(
    version: str,
    *,
    cache_directory: Path,
    commands: Commands,
    tarball: Path | None = None,
    progress: Callable[[str], None],
) -> Source:
    """The source of `version` ("18" or "18.6"), in the cache afterwards.

    Tried in this order: `tarball`, the cache, the distribution's source package, the official
    tarball. "18" is content with whatever 18 the cache has, so that a study begun stays on its
    release; ask for an exact release to change it. `RequirementMissing` lists every way tried.
    """
    asked = parse_version(version)
    folder = source_store.sources_directory(cache_directory)
    with file_lock(folder / ".lock", on_wait=lambda: progress("waits for another start of bedplate")):
        if tarball is not None:
            return source_store.keep(given_source(tarball, asked), cache_directory)
        kept = source_store.find(asked, cache_directory)
        if kept is not None:
            return kept
        for left in folder.glob(f"{_FETCH}*"):
            # Whoever made it was killed: the lock is ours.
            shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix=_FETCH, dir=folder) as temporary:
            fetched = _fetch(asked, directory=Path(temporary), commands=commands, progress=progress)
            return source_store.keep(fetched, cache_directory)


def _fetch(
    asked: AskedVersion, *, directory: Path, commands: Commands, progress: Callable[[str], None]
) -> Source:
    def from_distribution() -> Fetched:
        try:
            system = read_apt_system(commands)
        except RequirementMissing as error:
            raise SourceUnavailable(error.reasons[0]) from error
        return fetch_source_package(
            asked, system=system, directory=directory, commands=commands, progress=progress
        )

    def from_official_site() -> Fetched:
        return fetch_official_tarball(asked, directory=directory, progress=progress)

    ways: tuple[tuple[Origin, Callable[[], Fetched]], ...] = (
        ("distribution", from_distribution),
        ("official", from_official_site),
    )
    reasons = [f"no source of PostgreSQL {asked} was given, and the cache has none"]
    for origin, way in ways:
        try:
            return _verified(way(), origin)
        except SourceUnavailable as error:
            reasons.append(f"{_NAMES[origin]}: {error}")
    raise RequirementMissing(
        *reasons,
        f"give a tarball: fetch postgresql-{asked if asked.minor is not None else f'{asked}.x'}.tar.bz2 from "
        f"www.postgresql.org/ftp/source on a machine with a network and name the file (--tarball FILE)",
    )


_NAMES: dict[Origin, str] = {
    "distribution": "the distribution's source package",
    "official": "the official tarball",
}


def _verified(fetched: Fetched, origin: Origin) -> Source:
    found = sha256_of(fetched.tarball)
    if fetched.promised_sha256 not in (None, found):
        raise SourceUnavailable(
            f"{fetched.detail} has the checksum {found}, its origin promises {fetched.promised_sha256}"
        )
    source = Source(fetched.version, fetched.tarball, found, origin, fetched.detail)
    if source.refusal is not None:
        raise SourceUnavailable(source.refusal)
    return source


def given_source(tarball: Path, asked: AskedVersion) -> Source:
    """A tarball from the call: what release it holds is read from its first folder, not its name."""
    try:
        first = first_name(tarball)
    except (OSError, ValueError) as error:
        raise PlanError(f"{tarball} cannot be read as a tarball of PostgreSQL: {error}") from error
    found = _TOP_FOLDER.match(first) if first is not None else None
    if found is None:
        inside = "nothing" if first is None else first
        raise PlanError(
            f"{tarball} is no release of PostgreSQL: it begins with {inside}, not postgresql-X.Y/"
        )
    if not asked.accepts(found[1]):
        raise PlanError(f"{tarball} holds PostgreSQL {found[1]}, but {asked} was asked for")
    source = Source(found[1], tarball, sha256_of(tarball), "given tarball", str(tarball.absolute()))
    if source.refusal is not None:
        raise PlanError(
            source.refusal,
            f"fetch postgresql-{source.version}.tar.bz2 again from www.postgresql.org/ftp/source; a source of your own is named in the plan: "
            "source = { tree = …, commit = … }, or patches = […], in [postgresql]",
        )
    return source
