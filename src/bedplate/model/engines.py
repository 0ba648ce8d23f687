"""The engines, by their names in a plan."""

from __future__ import annotations

POSTGRESQL = "postgresql"
LMDB = "lmdb"
SQLITE = "sqlite"
# The file system itself: sequential I/O has no engine between.
NO_ENGINE = "none"
MARIADB = "mariadb"
