"""The library of the distribution, as drivers are linked with it."""

from __future__ import annotations

from bedplate.host.native_driver import Library

LIBLMDB = Library(
    name="liblmdb",
    header="lmdb.h",
    package="liblmdb-dev",
    linker_words=("-llmdb",),
    version_macros=("MDB_VERSION_MAJOR", "MDB_VERSION_MINOR", "MDB_VERSION_PATCH"),
)
