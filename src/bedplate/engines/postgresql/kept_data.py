"""Clusters that are loaded once and kept in an image: which settings decide their files, and how each visit configures its copy."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from bedplate.model.levels import Levels

if TYPE_CHECKING:
    from bedplate.engines.postgresql.cluster import Cluster
    from bedplate.model.cell import Cell, ClusterLevels
    from bedplate.visit.engine_server import KeptServerData, Server

# They say how memory is used, what a plan costs, when a commit waits and when the writers of the background wake. None of them
# decides what a load leaves on disk: not how much WAL there is, what is in a page, nor how a table is split into files.
# Not here for that reason: all of checkpoints and of the WAL's size, `full_page_writes`, `wal_compression`, `wal_level`, `fsync`,
# `maintenance_work_mem` (temporary files of the index builds), and whatever is not known.
_LEAVES_THE_FILES = frozenset(
    (
        *(
            "shared_buffers",
            "effective_cache_size",
            "work_mem",
            "hash_mem_multiplier",
            "temp_buffers",
            "wal_buffers",
            "huge_pages",
        ),
        *(
            "random_page_cost",
            "seq_page_cost",
            "cpu_tuple_cost",
            "cpu_index_tuple_cost",
            "cpu_operator_cost",
            "jit",
        ),
        *("synchronous_commit", "commit_delay", "commit_siblings", "wal_writer_delay"),
        *("bgwriter_delay", "bgwriter_lru_maxpages", "bgwriter_lru_multiplier"),
        *(
            "effective_io_concurrency",
            "io_workers",
            "max_connections",
            "plan_cache_mode",
            "deadlock_timeout",
            "track_io_timing",
        ),
    )
)


class PostgresqlKeptData:
    """A cluster of the cell's build, with its database and the workload's role."""

    def deciding(self, cluster: ClusterLevels) -> ClusterLevels:
        """Every setting but those that are known to leave the files alone; of an own postgresql.conf its whole text."""
        settings = {name: value for name, value in cluster.settings.items() if name not in _LEAVES_THE_FILES}
        return replace(cluster, settings=Levels(settings), scaled_page_costs=False)

    def take_configuration_out(self, server: Server) -> None:
        """Leave initdb's configuration behind."""
        cast("Cluster", server).unconfigure()

    def configure(self, server: Server, cell: Cell) -> None:
        """Append the cell's configuration to initdb's."""
        cast("Cluster", server).configure(cell)


KEPT_DATA: KeptServerData = PostgresqlKeptData()
