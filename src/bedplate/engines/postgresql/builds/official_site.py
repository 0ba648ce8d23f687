"""Fetches PostgreSQL's tarball from the project's own site, checked against its checksum file."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

from bedplate.engines.postgresql.builds.origin import Fetched, SourceUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bedplate.engines.postgresql.builds.version import AskedVersion

OFFICIAL_SITE = "https://ftp.postgresql.org/pub/source"
_TIMEOUT_S = 60.0
_RELEASE_FOLDER = re.compile(r"""href=["']?(?:[^"'>]*/)?v(\d+)\.(\d+)/""")
_SHA256 = re.compile(r"\b([0-9a-f]{64})\b")
_PIECE_BYTES = 1 << 20


def fetch_official_tarball(
    asked: AskedVersion, *, directory: Path, progress: Callable[[str], None], site: str = OFFICIAL_SITE
) -> Fetched:
    """Download `postgresql-X.Y.tar.bz2` into `directory`; `SourceUnavailable` says why not.

    For a major version the site's list of releases is read first and its newest minor taken.
    """
    try:
        version = str(asked)
        if asked.minor is None:
            progress(f"asks {site} for the newest {asked.major}")
            version = newest_release(_text(f"{site}/"), asked)
        url = f"{site}/v{version}/postgresql-{version}.tar.bz2"
        promised = _SHA256.search(_text(f"{url}.sha256"))
        if promised is None:
            raise SourceUnavailable(f"{url}.sha256 holds no checksum")
        progress(f"fetches {url}")
        tarball = directory / f"postgresql-{version}.tar.bz2"
        with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as answer, tarball.open("wb") as file:  # noqa: S310
            while piece := answer.read(_PIECE_BYTES):
                file.write(piece)
    except (OSError, ValueError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise SourceUnavailable(f"{site}: {reason}") from error
    return Fetched(tarball, version, url, promised[1])


def newest_release(listing: str, asked: AskedVersion) -> str:
    """The newest minor of `asked.major` in the site's directory listing (HTML)."""
    minors = [int(found[2]) for found in _RELEASE_FOLDER.finditer(listing) if int(found[1]) == asked.major]
    if not minors:
        raise SourceUnavailable(f"the list of releases has no {asked.major}")
    return f"{asked.major}.{max(minors)}"


def _text(url: str) -> str:
    with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as answer:  # noqa: S310 - a fixed https address
        body: bytes = answer.read()
    return body.decode("utf-8", "replace")
