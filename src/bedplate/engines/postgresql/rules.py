"""What PostgreSQL cannot be told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.engines.postgresql.builds.version import major_of
from bedplate.engines.postgresql.configuring.settings import in_force
from bedplate.model.cell import UNTORN_OFF
from bedplate.plan.untorn_writes import filesystem_refusals
from bedplate.units import format_size, parse_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bedplate.model.cell import Cell
    from bedplate.plan.rules import CellContext, Rule

# A key of Machine.tunables; where the fact is missing, no rule applies.
IO_URING_DISABLED = "kernel.io_uring_disabled"
HUGE_PAGES = "vm.nr_hugepages"
_DIRECT_SINCE = 16
_ON = ("on", "true", "yes", "1")


def io_method(cell: Cell, around: CellContext) -> Iterator[str]:
    """`io_method` came with PostgreSQL 18; io_uring needs the kernel's leave."""
    method = in_force(cell.cluster, "io_method")
    if method is None:
        return
    major = major_of(cell.build.version)
    if major < 18:
        yield f"PostgreSQL {cell.build.version} has no io_method; it came with 18"
    if method != "io_uring" or around.machine is None:
        return
    # 1 leaves it to root and one group, and the server runs as neither.
    if around.machine.tunables.get(IO_URING_DISABLED, "0") != "0":
        yield f"io_method = io_uring: this machine forbids it; `sysctl {IO_URING_DISABLED}=0` allows it"


def huge_pages(cell: Cell, around: CellContext) -> Iterator[str]:
    """The server does not start with `huge_pages = on` where the kernel has none set aside."""
    asked = (in_force(cell.cluster, "huge_pages") or "").lower()
    if asked not in _ON or around.machine is None:
        return
    reserved = around.machine.tunables.get(HUGE_PAGES, "")
    if reserved == "0":
        yield (
            f"huge_pages = {asked}: this machine has none reserved; `sysctl {HUGE_PAGES}=N` reserves N, and shared_buffers has to fit "
            "into them with some to spare"
        )


def wal_segments(cell: Cell, around: CellContext) -> Iterator[str]:  # noqa: ARG001
    """The server wants room for two files of the WAL (`max_wal_size`, `min_wal_size`)."""
    segment = cell.cluster.wal_segment_bytes
    for name in ("max_wal_size", "min_wal_size"):
        asked = in_force(cell.cluster, name)
        if segment is None or asked is None:
            continue
        try:
            # A bare number counts megabytes.
            size_bytes = parse_size(f"{asked}MB" if asked.isdigit() else asked)
        except ValueError:
            continue  # the server's own word for it comes when it starts
        if size_bytes < 2 * segment:
            yield (
                f"wal_segment_size = {format_size(segment)}: {name} = {asked} is less than two of them, which the server refuses; "
                f"set {name} to {format_size(2 * segment)} or more"
            )


def untorn_writes(cell: Cell, around: CellContext) -> Iterator[str]:
    """The kernel takes an untorn write from direct I/O alone, of a file system that can make one of it."""
    level = cell.cluster.untorn_writes
    if level == UNTORN_OFF:
        return
    asked = f"untorn_writes = {level}"
    if major_of(cell.build.version) < _DIRECT_SINCE:
        yield f"{asked}: PostgreSQL {cell.build.version} has no debug_io_direct; it came with {_DIRECT_SINCE}"
        return
    direct = {word.strip() for word in (in_force(cell.cluster, "debug_io_direct") or "").split(",")}
    if "data" not in direct:
        yield f'{asked}: only direct I/O is written untorn; set debug_io_direct = "data" in [postgresql.settings]'
    if direct & {"wal", "wal_init"}:
        yield (
            f'{asked}: with direct I/O the WAL would be taken for pages; set debug_io_direct = "data", without wal and wal_init'
        )
    yield from filesystem_refusals(cell, around)


RULES: Mapping[str, Rule] = {
    "io-method-impossible": io_method,
    "huge-pages-missing": huge_pages,
    "wal-segments-impossible": wal_segments,
    "untorn-writes-impossible": untorn_writes,
}
