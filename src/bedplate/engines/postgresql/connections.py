"""How many clients a server takes: a run with more fails after its dataset was loaded, and the plan says both numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.engines.postgresql.configuring.settings import in_force
from bedplate.model.engines import POSTGRESQL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bedplate.model.cell import ClusterLevels, RunSpec
    from bedplate.model.plan import Plan

# PostgreSQL's own defaults (guc_tables.c); what is reserved is for superusers, and a client is none.
_MOST = ("max_connections", 100)
_RESERVED = (("superuser_reserved_connections", 3), ("reserved_connections", 0))
# The session that watches a run.
_OWN = 1


def too_many_clients(plan: Plan, run: RunSpec, clients: int) -> Iterator[str]:
    """A sentence for each cluster of the plan that refuses some of a run's clients."""
    for cluster in (
        cluster for setup in plan.engines if setup.engine == POSTGRESQL for cluster in setup.clusters
    ):
        most = _number(cluster, *_MOST)
        needed = clients + _OWN + sum(_number(cluster, name, usual) for name, usual in _RESERVED)
        if needed > most:
            yield (
                f"run {run.name}: {clients} clients need max_connections = {needed}, as some are reserved, and it is {most}: the server refuses "
                f"some, and the run fails; set it in [postgresql.settings]"
            )


def _number(cluster: ClusterLevels, name: str, usual: int) -> int:
    asked = in_force(cluster, name)
    # What is no number the server refuses, which is said elsewhere.
    return int(asked) if asked is not None and asked.strip().isdecimal() else usual
