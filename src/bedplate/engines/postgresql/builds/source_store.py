"""Sources kept in the cache: one folder per tarball, named by version and checksum.

<cache>/sources/postgresql-18.6-555610c24d53/
    postgresql-18.6.tar.bz2
    source.json      written last: a folder without it is not a source
    tree/            unpacked on first use, shared by all builds (they are out of tree)

A release that bedplate names has a known checksum, and no other tarball is taken for it.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bedplate.engines.postgresql.builds.version import release_key
from bedplate.errors import BuildFailed, OutputNotUnderstood
from bedplate.host.files import sha256_of
from bedplate.host.reachable import open_to_all
from bedplate.host.tarball import unpack

if TYPE_CHECKING:
    from collections.abc import Callable

    from bedplate.engines.postgresql.builds.version import AskedVersion

Origin = Literal["given tarball", "cache", "distribution", "official"]

_RECORD = "source.json"
# Of postgresql-X.Y.tar.bz2, as www.postgresql.org publishes them beside the tarballs.
_KNOWN_SHA256 = {
    "15.18": "11df0df97fe3ea4ba9a791faaf39cee1d2fe571e78885b5b55d8517d27c323b4",
    "16.15": "c1575341fa7bd40f5274ea465b34390f4dc64cdd0770af327005caaeb9f6b7ed",
    "17.11": "dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979",
    "18.3": "d95663fbbf3a80f81a9d98d895266bdcb74ba274bcc04ef6d76630a72dee016f",
    "18.6": "555610c24d53e4316da5b7d3fc25c279d96856d5e0e23ee308c328c5fa881d9f",
}


@dataclass(frozen=True)
class Source:
    """One release's tarball in the cache.

    `version` is exact ("18.6"); `origin_detail` is a file, a package with its version, or a URL;
    of the origin "cache" it says where the tarball had come from.
    """

    version: str
    tarball: Path
    tarball_sha256: str
    origin: Origin
    origin_detail: str

    @property
    def first_origin(self) -> str:
        """Where the tarball came from before it was in the cache: `distribution: postgresql-18 18.6-3 …`."""
        return self.origin_detail if self.origin == "cache" else f"{self.origin}: {self.origin_detail}"

    @property
    def is_strangers(self) -> bool:
        """Whether nobody vouches for it: a person gave the tarball, and its checksum is not known."""
        return self.first_origin.startswith("given tarball") and self.version not in _KNOWN_SHA256

    @property
    def refusal(self) -> str | None:
        """Why it is not the release that it says it is; None for one whose checksum is right, or not known."""
        known = _KNOWN_SHA256.get(self.version)
        if known in (None, self.tarball_sha256):
            return None
        return (
            f"{self.tarball} is not PostgreSQL {self.version} as it was released: its SHA-256 is {self.tarball_sha256}, and that of "
            f"postgresql-{self.version}.tar.bz2 is {known}"
        )


def sources_directory(cache_directory: Path) -> Path:
    """Where the sources lie in a cache."""
    return cache_directory / "sources"


def keep(source: Source, cache_directory: Path) -> Source:
    """Copy the tarball into the cache, the record last; the answer names the copy.

    The caller has verified the checksum and holds the lock of the sources.
    """
    folder = sources_directory(cache_directory) / f"postgresql-{source.version}-{source.tarball_sha256[:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    suffix = "".join(part for part in source.tarball.suffixes if part in (".tar", ".bz2", ".gz", ".xz"))
    kept = replace(source, tarball=folder / f"postgresql-{source.version}{suffix}")
    if not (folder / _RECORD).exists():
        partial = folder / ".partial"
        shutil.copyfile(source.tarball, partial)
        partial.rename(kept.tarball)
        record = {**asdict(kept), "tarball": kept.tarball.name}
        partial.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        partial.rename(folder / _RECORD)
    return kept


def find(asked: AskedVersion, cache_directory: Path) -> Source | None:
    """The newest fitting source in the cache, origin "cache".

    Between tarballs of the same release one that a person gave stands last: it may be patched, and
    whoever gave it can give it again.
    """
    found = []
    for record in sorted(sources_directory(cache_directory).glob(f"postgresql-{asked.major}.*/{_RECORD}")):
        source = _read(record)
        if asked.accepts(source.version) and source.tarball.is_file() and source.refusal is None:
            found.append(source)
    if not found:
        return None
    best = max(found, key=lambda item: (release_key(item.version) or (0, 0), item.origin != "given tarball"))
    return replace(best, origin="cache", origin_detail=best.first_origin)


def _read(record: Path) -> Source:
    text = record.read_text(encoding="utf-8")
    try:
        fields = json.loads(text)
        return Source(**{**fields, "tarball": record.parent / fields["tarball"]})
    except (ValueError, TypeError, KeyError) as error:
        raise OutputNotUnderstood(
            str(record), expected="the record of a source (remove its folder to fetch it again)", found=text
        ) from error


def unpacked_tree(source: Source, *, progress: Callable[[str], None]) -> Path:
    """The folder of the unpacked source; unpacks it once, after checking the tarball again.

    The caller holds the lock of the sources. Builds never write here: PostgreSQL builds out of tree.
    """
    tree = source.tarball.parent / "tree"
    if tree.is_dir():
        return tree
    found = sha256_of(source.tarball)
    if found != source.tarball_sha256:
        raise OutputNotUnderstood(
            str(source.tarball),
            expected=f"SHA-256 {source.tarball_sha256}",
            found=f"{found}; remove its folder",
        )
    progress(f"unpacks {source.tarball.name}")
    with tempfile.TemporaryDirectory(prefix=".tree-", dir=source.tarball.parent) as temporary:
        fresh = Path(temporary, "tree")
        fresh.mkdir()
        try:
            unpack(source.tarball, fresh)
        except (OSError, ValueError) as error:
            raise BuildFailed(f"{source.tarball} is not unpacked: {error}") from None
        open_to_all(fresh)
        fresh.rename(tree)
    return tree
