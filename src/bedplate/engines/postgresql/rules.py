"""What PostgreSQL cannot be told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.engines.postgresql.settings import in_force

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bedplate.model.cell import Cell
    from bedplate.plan.rules import CellContext, Rule

# A key of Machine.tunables; where the fact is missing, no rule applies.
IO_URING_DISABLED = "kernel.io_uring_disabled"


def io_method(cell: Cell, around: CellContext) -> Iterator[str]:
    """`io_method` came with PostgreSQL 18; io_uring needs the kernel's leave."""
    method = in_force(cell.cluster, "io_method")
    if method is None:
        return
    major = int(cell.build.version.split(".")[0])
    if major < 18:
        yield f"PostgreSQL {cell.build.version} has no io_method; it came with 18"
    if method != "io_uring" or around.machine is None:
        return
    # 1 leaves it to root and one group, and the server runs as neither.
    if around.machine.tunables.get(IO_URING_DISABLED, "0") != "0":
        yield f"io_method = io_uring: this machine forbids it; `sysctl {IO_URING_DISABLED}=0` allows it"


RULES: Mapping[str, Rule] = {"io-method-impossible": io_method}
