"""The library of the distribution, as drivers are linked with it."""

from __future__ import annotations

from bedplate.host.native_driver import Library

LIBSQLITE3 = Library(
    name="libsqlite3",
    header="sqlite3.h",
    package="libsqlite3-dev",
    linker_words=("-lsqlite3",),
    version_macros=("SQLITE_VERSION",),
)
