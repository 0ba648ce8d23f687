"""More clients than a server takes are said when the plan is read, and not after a load."""

from __future__ import annotations

from pathlib import Path

import pytest

from bedplate.plan.load import load_plan

RUNS = {
    "pgbench": '[[workload]]\ntype = "pgbench"\nscale = 100\n[[workload.run]]\nname = "r"\nscript = "read-only"\nclients = {}\n',
    "sysbench": '[[workload]]\ntype = "sysbench"\nengine = "postgresql"\n[[workload.run]]\nname = "r"\nscript = "oltp_read_only"\nthreads = {}\n',
}


@pytest.mark.parametrize("workload", RUNS)
@pytest.mark.parametrize(
    ("clients", "settings", "needed"),
    [
        # Measured on a server with its defaults: 96 beside a superuser's session are taken, the 97th is refused.
        (96, "", None),
        (97, "", 101),
        (97, "max_connections = 101", None),
        (97, 'MAX_CONNECTIONS = "100"\nsuperuser_reserved_connections = 2', None),
        (96, "reserved_connections = 5", 105),
        (96, 'max_connections = "much"', None),
    ],
)
def test_clients_beyond_max_connections_are_warned_of(
    workload: str, clients: int, settings: str, needed: int | None
) -> None:
    text = f'repetitions = 3\nfilesystem = [{{ type = "ext4" }}]\n[postgresql.settings]\n{settings}\n{RUNS[workload].format(clients)}'
    plan = load_plan(text, source="plan.toml", directory=Path())
    said = [words for words in plan.warnings if "max_connections" in words]
    assert bool(said) == (needed is not None)
    assert all(f"run r: {clients} clients need max_connections = {needed}" in words for words in said)
