"""The versions of PostgreSQL that bedplate knows how to build, and how they are asked for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from bedplate.errors import PlanError

# Those whose build and run are proved by this repository's own host tests and decisions.
SUPPORTED_MAJORS = (15, 16, 17, 18)

DEFAULT_VERSION = "18"

# Older ones have another catalogue of counters than bedplate knows.
_OLDEST_MAJOR = min(SUPPORTED_MAJORS)

# The fact of a tree that says which version it is: `19devel`, `18.6`, `19beta1`.
VERSION = "version"

_OF_TREE = re.compile(r"^AC_INIT\(\[PostgreSQL\], \[(\d{1,3}[a-z0-9.]{0,12})\]", re.MULTILINE | re.ASCII)
_ASKED = re.compile(r"(\d{1,3})(?:\.(\d{1,3}))?", re.ASCII)


@dataclass(frozen=True, order=True)
class AskedVersion:
    """`18` (any minor: `minor` is None) or `18.6`."""

    major: int
    minor: int | None = None

    def __str__(self) -> str:
        return str(self.major) if self.minor is None else f"{self.major}.{self.minor}"

    def accepts(self, exact: str) -> bool:
        """Whether the release `exact` (like "18.6") is what was asked; betas never are."""
        release = release_key(exact)
        return release is not None and release[0] == self.major and self.minor in (None, release[1])


def parse_version(text: str) -> AskedVersion:
    """`"18"` or `"18.6"`; `PlanError` names what is allowed."""
    found = _ASKED.fullmatch(text.strip())
    if found is None or int(found[1]) not in SUPPORTED_MAJORS:
        known = ", ".join(str(major) for major in SUPPORTED_MAJORS)
        raise PlanError(
            f"PostgreSQL version {text!r} cannot be built here; "
            f"ask for one of {known}, or for an exact release such as 18.6"
        )
    return AskedVersion(int(found[1]), None if found[2] is None else int(found[2]))


def major_of(version: str) -> int:
    """The major version of a release, or of what a tree says: 19 of `19devel`."""
    found = re.match(r"\d+", version, re.ASCII)
    if found is None:
        raise PlanError(f"{version!r} is no version of PostgreSQL")
    return int(found[0])


def version_of_tree(read_file: Callable[[str], str | None]) -> Mapping[str, str]:
    """The version in a tree's configure.ac; PlanError where it has none, or one that bedplate cannot run."""
    found = _OF_TREE.search(read_file("configure.ac") or "")
    if found is None:
        raise PlanError("it is no PostgreSQL: its configure.ac does not say AC_INIT([PostgreSQL], [...])")
    if major_of(found[1]) < _OLDEST_MAJOR:
        raise PlanError(f"it is PostgreSQL {found[1]}; bedplate runs {_OLDEST_MAJOR} and later")
    return {VERSION: found[1]}


def release_key(exact: str) -> tuple[int, int] | None:
    """(major, minor) of a release like "18.6", for ordering; None for anything else ("19beta1")."""
    found = _ASKED.fullmatch(exact)
    if found is None or found[2] is None:
        return None
    return int(found[1]), int(found[2])


_EVERY_EXTENSION = frozenset(
    """
    amcheck autoinc bloom btree_gin btree_gist citext cube dblink dict_int dict_xsyn earthdistance file_fdw fuzzystrmatch hstore
    insert_username intagg intarray isn lo ltree moddatetime pageinspect pg_buffercache pg_freespacemap pg_prewarm pg_stat_statements
    pg_surgery pg_trgm pg_visibility pg_walinspect pgcrypto pgrowlocks pgstattuple plpgsql postgres_fdw refint seg sslinfo tablefunc tcn
    tsm_system_rows tsm_system_time unaccent uuid-ossp xml2
    """.split()  # noqa: SIM905 -- a list of names
)

_SINCE = {"pg_logicalinspect": 18}
_UNTIL = {"adminpack": 16, "old_snapshot": 16}


def extensions_of(major: int) -> frozenset[str]:
    """Their names, as CREATE EXTENSION takes them."""
    since = {name for name, first in _SINCE.items() if major >= first}
    return _EVERY_EXTENSION | since | {name for name, last in _UNTIL.items() if major <= last}


def lacking_sentence(name: str, names: Iterable[str]) -> str:
    """What is said of an archive that needs others."""
    return (
        f"{name} needs extensions or languages that bedplate's PostgreSQL does not have: {', '.join(names)}; dump without "
        "them (pg_dump --exclude-extension since 17, else without the schemas that use them)"
    )


@dataclass(frozen=True)
class BuildLibrary:
    """`pkg_config` names it to pkg-config, `package` to Debian; `macro` is what configure defines where it uses it.

    `option` is None where configure uses the library unasked.
    """

    name: str
    package: str
    pkg_config: str
    reason: str
    option: str | None
    macro: str


_EVERY = (
    BuildLibrary(
        "zlib headers", "zlib1g-dev", "zlib", "pg_restore reads compressed dumps with it", None, "HAVE_LIBZ"
    ),
    BuildLibrary(
        "ICU headers", "libicu-dev", "icu-i18n", "collations and databases of ICU's", "--with-icu", "USE_ICU"
    ),
    BuildLibrary(
        "LZ4 headers",
        "liblz4-dev",
        "liblz4",
        "wal_compression = lz4, default_toast_compression = lz4, and dumps",
        "--with-lz4",
        "USE_LZ4",
    ),
    BuildLibrary(
        "Zstandard headers",
        "libzstd-dev",
        "libzstd",
        "wal_compression = zstd, and dumps",
        "--with-zstd",
        "USE_ZSTD",
    ),
    BuildLibrary(
        "OpenSSL headers",
        "libssl-dev",
        "libssl",
        "the extension pgcrypto",
        "--with-ssl=openssl",
        "USE_OPENSSL",
    ),
    BuildLibrary(
        "libxml2 headers", "libxml2-dev", "libxml-2.0", "the type xml", "--with-libxml", "USE_LIBXML"
    ),
    BuildLibrary(
        "libuuid headers", "uuid-dev", "uuid", "the extension uuid-ossp", "--with-uuid=e2fs", "HAVE_UUID_E2FS"
    ),
)

_SINCE_18 = (
    BuildLibrary(
        "liburing",
        "liburing-dev",
        "liburing",
        "io_method = io_uring of PostgreSQL 18; a build without it would refuse that level",
        "--with-liburing",
        "USE_LIBURING",
    ),
)


def libraries(major: int) -> tuple[BuildLibrary, ...]:
    """Those of a major version."""
    return _EVERY + (_SINCE_18 if major >= 18 else ())
