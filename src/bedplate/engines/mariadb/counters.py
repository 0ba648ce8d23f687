"""The server's own counters, asked through one lasting session."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from bedplate.engines.mariadb.read_back import status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedplate.engines.mariadb.session import MariadbSession

# Of `SHOW GLOBAL STATUS`; the first two are gauges, the others grow.
COUNTERS = (
    "Innodb_checkpoint_age",
    "Innodb_checkpoint_max_age",
    "Innodb_buffer_pool_reads",
    "Innodb_buffer_pool_read_requests",
    "Innodb_buffer_pool_pages_flushed",
    "Innodb_buffer_pool_pages_lru_flushed",
    "Innodb_buffer_pool_wait_free",
    "Innodb_lsn_current",
    "Innodb_data_fsyncs",
    "Innodb_dblwr_pages_written",
    "Innodb_row_lock_waits",
    "Innodb_row_lock_time",
    "Innodb_deadlocks",
    "Innodb_log_waits",
)


class MariadbProbe:
    """Cumulative statistics of the server. The sizes of a page and of the log stand beside them."""

    name = "MariaDB statistics"
    skew = "one statement on one connection a second; it counts what is in memory, and reads no table"

    def __init__(self, session: MariadbSession) -> None:
        self._session = session
        # The sampler's thread and the run's own readings before and after share the session.
        self._lock = threading.Lock()
        (row,) = session.rows("SELECT @@innodb_page_size, @@innodb_log_file_size")
        self._sizes = dict(
            zip(("page_size_bytes", "log_file_size_bytes"), map(float, map(str, row)), strict=True)
        )

    def read(self) -> Mapping[str, float]:
        """`mariadb.<counter>`, cumulative."""
        with self._lock:
            found = status(self._session, *COUNTERS)
        counted = {name.lower().removeprefix("innodb_"): value for name, value in found.items()}
        return {f"mariadb.{name}": value for name, value in {**counted, **self._sizes}.items()}
