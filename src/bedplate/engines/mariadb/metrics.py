"""The metrics of InnoDB, beside those that it shares with other servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.model.figure import Better, Metric, Scale, taken_from

if TYPE_CHECKING:
    from collections.abc import Mapping

_HIGHER, _LOWER, _NEITHER = Better.HIGHER, Better.LOWER, Better.NEITHER
_RATIO, _PROPORTION, _COUNT = Scale.RATIO, Scale.PROPORTION, Scale.COUNT

# A table: a line for a metric, of which the formatter would make eight.
# fmt: off
_INNODB = taken_from(
    "`SHOW GLOBAL STATUS`",
    Metric("buffer_pool_hit_ratio", "share", _PROPORTION, _HIGHER,
        "1 - pages that had to be read / pages asked for", "`Innodb_buffer_pool_reads`, `_read_requests`"),
    Metric("buffer_pool_flushed_mib", "MiB", _RATIO, _NEITHER,
        "pages written from the buffer pool x the page size", "`Innodb_buffer_pool_pages_flushed`"),
    Metric("buffer_pool_lru_flushed_mib", "MiB", _RATIO, _LOWER,
        "of these, pages written because room was needed", "`Innodb_buffer_pool_pages_lru_flushed`"),
    Metric("buffer_pool_waits", "1", _COUNT, _LOWER, "times a session waited for a free page", "`Innodb_buffer_pool_wait_free`"),
    Metric("doublewrite_mib", "MiB", _RATIO, _NEITHER,
        "pages written a second time, to the doublewrite buffer, x the page size", "`Innodb_dblwr_pages_written`"),
    Metric("log_waits", "1", _COUNT, _LOWER, "times the log's buffer was too small", "`Innodb_log_waits`"),
    Metric("data_syncs_per_transaction", "1", _RATIO, _NEITHER, "syncs that InnoDB asked for / transactions", "`Innodb_data_fsyncs`"),
    Metric("row_lock_waits", "1", _COUNT, _LOWER, "times a session waited for a row", "`Innodb_row_lock_waits`"),
    Metric("row_lock_s", "s", _RATIO, _LOWER, "time that sessions waited for rows, added up", "`Innodb_row_lock_time`"),
    Metric("deadlocks", "1", _COUNT, _LOWER, "deadlocks; the client begins such a transaction again", "`Innodb_deadlocks`"),
)
# fmt: on
METRICS: Mapping[str, tuple[Metric, ...]] = {"MariaDB": _INNODB}
