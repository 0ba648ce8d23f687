"""The server's own counters, asked through one lasting session."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from bedplate.engines.postgresql.builds.version import major_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.engines.postgresql.session import Session

_DATABASE = """
SELECT 'blks_hit', blks_hit FROM pg_stat_database WHERE datname = current_database()
UNION ALL SELECT 'blks_read', blks_read FROM pg_stat_database WHERE datname = current_database()
UNION ALL SELECT 'xact_commit', xact_commit FROM pg_stat_database WHERE datname = current_database()
UNION ALL SELECT 'rows_written', tup_inserted + tup_updated + tup_deleted
    FROM pg_stat_database WHERE datname = current_database()
UNION ALL SELECT 'transaction_ids', pg_snapshot_xmax(pg_current_snapshot())::text::numeric
UNION ALL SELECT 'temp_bytes', temp_bytes FROM pg_stat_database WHERE datname = current_database()
UNION ALL SELECT 'wal_bytes', pg_current_wal_insert_lsn() - '0/0'
UNION ALL SELECT 'wal_full_page_images', wal_fpi FROM pg_stat_wal
"""

# Up to 16 one view has it all, backends' writes included.
_WRITERS_UNTIL_16 = """
UNION ALL SELECT 'checkpoints_timed', checkpoints_timed FROM pg_stat_bgwriter
UNION ALL SELECT 'checkpoints_requested', checkpoints_req FROM pg_stat_bgwriter
UNION ALL SELECT 'buffers_checkpointer', buffers_checkpoint FROM pg_stat_bgwriter
UNION ALL SELECT 'buffers_background_writer', buffers_clean FROM pg_stat_bgwriter
UNION ALL SELECT 'buffers_backend', buffers_backend FROM pg_stat_bgwriter
UNION ALL SELECT 'buffers_allocated', buffers_alloc FROM pg_stat_bgwriter
UNION ALL SELECT 'maxwritten_clean', maxwritten_clean FROM pg_stat_bgwriter
"""

_WRITERS_SINCE_17 = """
UNION ALL SELECT 'checkpoints_timed', num_timed FROM pg_stat_checkpointer
UNION ALL SELECT 'checkpoints_requested', num_requested FROM pg_stat_checkpointer
UNION ALL SELECT 'buffers_checkpointer', buffers_written FROM pg_stat_checkpointer
UNION ALL SELECT 'buffers_background_writer', buffers_clean FROM pg_stat_bgwriter
UNION ALL SELECT 'buffers_allocated', buffers_alloc FROM pg_stat_bgwriter
UNION ALL SELECT 'maxwritten_clean', maxwritten_clean FROM pg_stat_bgwriter
"""

# Since 16 pg_stat_io tells who wrote. In 16 and 17 its operations are of op_bytes each; since 18 one
# operation may cover many blocks and the bytes are counted themselves.
_BACKENDS = "backend_type NOT IN ('checkpointer', 'background writer') AND object = 'relation'"
_IO_17 = f"""
UNION ALL SELECT 'read_bytes', coalesce(sum(reads * op_bytes), 0) FROM pg_stat_io WHERE object = 'relation'
UNION ALL SELECT 'buffers_backend', coalesce(sum(writes), 0) FROM pg_stat_io WHERE {_BACKENDS}
"""  # noqa: S608 -- constants only
_IO_SINCE_18 = f"""
UNION ALL SELECT 'read_bytes', coalesce(sum(read_bytes), 0) FROM pg_stat_io WHERE object = 'relation'
UNION ALL SELECT 'buffers_backend',
    coalesce(sum(write_bytes), 0) / current_setting('block_size')::int FROM pg_stat_io WHERE {_BACKENDS}
"""  # noqa: S608 -- constants only

# Calls of fsync and fdatasync on the WAL: methods that write with O_SYNC need none, and count none.
_WAL_SYNCS_UNTIL_17 = "UNION ALL SELECT 'wal_syncs', wal_sync FROM pg_stat_wal\n"
_WAL_SYNCS_SINCE_18 = """UNION ALL SELECT 'wal_syncs', coalesce(sum(fsyncs), 0) FROM pg_stat_io
    WHERE object = 'wal' AND context = 'normal'
"""

_NAME = "bedplate_probe"


def statement_for(version: str) -> str:
    """The statement that reads every counter which this version has."""
    major = major_of(version)
    if major >= 18:
        return _DATABASE + _WRITERS_SINCE_17 + _IO_SINCE_18 + _WAL_SYNCS_SINCE_18
    if major == 17:
        return _DATABASE + _WRITERS_SINCE_17 + _IO_17 + _WAL_SYNCS_UNTIL_17
    if major == 16:
        # 16 still counts backends' writes in pg_stat_bgwriter; pg_stat_io adds the bytes read.
        return (
            _DATABASE
            + _WRITERS_UNTIL_16
            + _IO_17.split("UNION ALL SELECT 'buffers_backend'", maxsplit=1)[0]
            + _WAL_SYNCS_UNTIL_17
        )
    return _DATABASE + _WRITERS_UNTIL_16 + _WAL_SYNCS_UNTIL_17


class PostgresqlProbe:
    """Cumulative statistics of the server. One probe for a session: its statement is prepared there."""

    name = "PostgreSQL statistics"
    skew = "one prepared statement on one connection a second; its blocks count as hits of shared buffers"

    def __init__(self, session: Session, version: str) -> None:
        self._session = session
        self._statement = statement_for(version)
        self._prepared = False
        # The sampler's thread and the run's own readings before and after share the session.
        self._lock = threading.Lock()

    def read(self) -> Mapping[str, float]:
        """`postgresql.<counter>`, cumulative."""
        with self._lock:
            if not self._prepared:
                # Parsing a statement over that many views costs the server more than running it.
                self._session.execute(f"PREPARE {_NAME} AS {self._statement}", timeout_s=30)
                self._prepared = True
            rows = self._session.rows(f"EXECUTE {_NAME}", timeout_s=30)
        return {f"postgresql.{name}": float(value) for name, value in rows if value is not None}
