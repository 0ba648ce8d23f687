"""The file systems that take an untorn write of a server's page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.model.cell import UNTORN_ON
from bedplate.units import format_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bedplate.model.cell import Cell
    from bedplate.plan.rules import CellContext

# fs/xfs: by copying on write; before, and on ext4, only where the device itself says that it writes so much whole.
_TAKES_UNTORN_WRITES = ("xfs", "ext4")
_XFS_ALONE_SINCE = (6, 16)


def filesystem_refusals(cell: Cell, around: CellContext) -> Iterator[str]:
    """Why the cell's file system takes no untorn write of a page; nothing where none is asked for."""
    filesystem, page_bytes = cell.filesystem, cell.database_block_bytes
    if cell.cluster.untorn_writes != UNTORN_ON or page_bytes is None:
        return
    asked = f"untorn_writes = {UNTORN_ON}"
    if filesystem.type not in _TAKES_UNTORN_WRITES:
        yield f"{asked}: {filesystem.type} takes no untorn write; {' and '.join(_TAKES_UNTORN_WRITES)} can"
    elif (filesystem.block_size_bytes or 0) > page_bytes:
        yield (
            f"{asked}: a page of {format_size(page_bytes)} is less than a block of {format_size(filesystem.block_size_bytes or 0)}, "
            "and no less than a block is written untorn; take smaller blocks or larger pages"
        )
    kernel = around.kernel(cell)
    if filesystem.type == "xfs" and kernel is not None and kernel < _XFS_ALONE_SINCE:
        yield (
            f"{asked}: under kernel {kernel[0]}.{kernel[1]} XFS needs a device that says what it writes whole; "
            f"since {_XFS_ALONE_SINCE[0]}.{_XFS_ALONE_SINCE[1]} it needs none"
        )
