"""The engines, and which of them each type of workload runs on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

POSTGRESQL = "postgresql"
LMDB = "lmdb"
# The file system itself: sequential I/O has no engine between.
NO_ENGINE = "none"

ENGINE_OF: Mapping[str, str] = {
    "pgbench": POSTGRESQL,
    "tpch": POSTGRESQL,
    "lmdb": LMDB,
    "bonnie": NO_ENGINE,
    "fio": NO_ENGINE,
}
