"""What InnoDB counts, as figures; and how far its log was from a steady state, as its checkpoints are fuzzy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.figures.counters import Absent, Deltas, Divisors, divide, per_transaction
from bedplate.figures.server_counters import FuzzyLog, ServerCounters
from bedplate.model.reason import because
from bedplate.units import KIB, MIB

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_NO_PAGE_ASKED = because("nothing-asked", "the server asked for no page")
_NO_PAGE_SIZE = because("block-size-unknown", "the engine's page size is not in the record")


class MariadbCounters:
    """Names are those of the probe."""

    def formulas(self, deltas: Deltas, divisors: Divisors) -> Mapping[str, Callable[[], float]]:
        """Of the buffer pool, the log and the locks."""

        def grown(name: str) -> float:
            return deltas.growth(f"mariadb.{name}")

        def pages_mib(name: str) -> float:
            size = deltas.after.get("mariadb.page_size_bytes")
            if size is None:
                raise Absent(_NO_PAGE_SIZE)
            return grown(name) * size / MIB

        return {
            "buffer_pool_hit_ratio": lambda: (
                1 - divide(grown("buffer_pool_reads"), grown("buffer_pool_read_requests"), _NO_PAGE_ASKED)
            ),
            "buffer_pool_flushed_mib": lambda: pages_mib("buffer_pool_pages_flushed"),
            "buffer_pool_lru_flushed_mib": lambda: pages_mib("buffer_pool_pages_lru_flushed"),
            "buffer_pool_waits": lambda: grown("buffer_pool_wait_free"),
            "doublewrite_mib": lambda: pages_mib("dblwr_pages_written"),
            "wal_kib_per_transaction": lambda: per_transaction(grown("lsn_current") / KIB, divisors),
            "log_waits": lambda: grown("log_waits"),
            "data_syncs_per_transaction": lambda: per_transaction(grown("data_fsyncs"), divisors),
            "row_lock_waits": lambda: grown("row_lock_waits"),
            "row_lock_s": lambda: grown("row_lock_time") / 1000,
            "deadlocks": lambda: grown("deadlocks"),
        }

    def fuzzy(self, deltas: Deltas | None, measured: Sequence[Mapping[str, float]]) -> FuzzyLog:
        """By the log sequence number, and by the checkpoint age of each second."""
        known = [values for values in measured if values.get("mariadb.checkpoint_max_age")]
        return FuzzyLog(
            None if deltas is None else _turned_over(deltas),
            tuple(values["mariadb.checkpoint_age"] for values in known if "mariadb.checkpoint_age" in values),
            known[-1]["mariadb.checkpoint_max_age"] if known else None,
        )


def _turned_over(deltas: Deltas) -> float | None:
    size = deltas.after.get("mariadb.log_file_size_bytes")
    try:
        return deltas.growth("mariadb.lsn_current") / size if size else None
    except Absent:
        return None


COUNTER_FIGURES: ServerCounters = MariadbCounters()
