"""What MariaDB keeps on the device beside its data: InnoDB's log, as large as it is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.units import MIB

if TYPE_CHECKING:
    from bedplate.model.cell import Cell
    from bedplate.plan.workload_estimate import EngineEstimate

_LOG_BYTES = 96 * MIB
# System tables, undo and temporary tablespaces, the buffer of double writes.
_EMPTY_BYTES = 40 * MIB


class MariadbEstimate:
    """`innodb_log_file_size`."""

    def log_bytes(self, cell: Cell) -> int:
        """As it is set, else its default; with what stands in an empty data directory."""
        text = str(cell.cluster.settings.get("innodb_log_file_size") or "")
        return _EMPTY_BYTES + (int(text) if text.isdigit() else _LOG_BYTES)


ESTIMATE: EngineEstimate = MariadbEstimate()
