"""What MariaDB cannot be told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.engines.mariadb.settings import same_value
from bedplate.model.cell import UNTORN_OFF
from bedplate.plan.untorn_writes import filesystem_refusals

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bedplate.model.cell import Cell
    from bedplate.plan.rules import CellContext, Rule

# What it has to be set to, what it is by itself, and why: pages are known by direct I/O, and are written by calls of the C library.
_NEEDED = (
    ("innodb_flush_method", "O_DIRECT", "O_DIRECT", "only direct I/O is written untorn"),
    ("innodb_log_file_buffering", "ON", "OFF", "with direct I/O the log would be taken for pages"),
    ("innodb_use_native_aio", "OFF", "ON", "the library does not see what asynchronous I/O writes"),
)


def untorn_writes(cell: Cell, around: CellContext) -> Iterator[str]:
    """The library sees pages that the server writes by itself and directly, and nothing else directly."""
    level = cell.cluster.untorn_writes
    if level == UNTORN_OFF:
        return
    for name, value, usual, why in _NEEDED:
        if not same_value(cell.cluster.settings.text(name) or usual, value):
            yield f'untorn_writes = {level}: {why}; set {name} = "{value}" in [mariadb.settings]'
    yield from filesystem_refusals(cell, around)


RULES: Mapping[str, Rule] = {"untorn-writes-impossible": untorn_writes}
