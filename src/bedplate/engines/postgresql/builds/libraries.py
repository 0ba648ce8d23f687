"""The libraries that PostgreSQL is built with: configure's option, the header that is needed, what it is for."""

from __future__ import annotations

from dataclasses import dataclass


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
