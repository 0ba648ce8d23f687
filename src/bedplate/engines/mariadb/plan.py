"""`[mariadb]` in a plan: the page size of its data directory, and the server's settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar, TypeAlias

from pydantic import AfterValidator, Field

from bedplate.engines.mariadb.model import PAGE_SIZE, same_value, setting_name, setting_value
from bedplate.model.cell import (
    UNTORN_LEVELS,
    UNTORN_OFF,
    Cell,
    ClusterLevels,
)
from bedplate.model.engines import MARIADB
from bedplate.model.levels import Scalar
from bedplate.plan import values
from bedplate.plan.fields import Factor, UntornWrites, within
from bedplate.plan.rules import CellContext, Rule, filesystem_refusals
from bedplate.plan.table import EngineTable, Factors, of_settings
from bedplate.units import KIB, MIB

if TYPE_CHECKING:
    from bedplate.plan.estimate import EngineEstimate

PAGE_SIZES = tuple(size * KIB for size in (4, 8, 16, 32, 64))

PageSize: TypeAlias = Annotated[int, within(values.power_of_two, PAGE_SIZES)]
ServerSetting: TypeAlias = Annotated[str, AfterValidator(setting_name)]


class MariadbTable(EngineTable):
    """`[mariadb]`: how its data directory is made, and how its server is set."""

    innodb_page_size: Factor[PageSize] = ()
    """cluster | `4 kB`, `8 kB`, `16 kB`, `32 kB`, `64 kB`; chosen when the data directory is made | MariaDB's own (16 kB) |
    `{ vary = ["4 kB", "16 kB"] }`"""
    untorn_writes: Factor[UntornWrites] = (UNTORN_OFF,)
    """cluster | as in `[postgresql]`: `on` has each page written whole or not at all (RWF_ATOMIC), `count` only counts. Both need
    `innodb_log_file_buffering = true` and `innodb_use_native_aio = false`, and `innodb_flush_method` as it is | `"off"` |
    `{ vary = ["on", "count"] }`"""
    settings: dict[ServerSetting, Factor[Annotated[str, within(setting_value, form=values.SCALAR)]]] = Field(
        default_factory=dict, description="a table of MariaDB settings"
    )
    """cluster | `[mariadb.settings]`: any setting by its name | none | `innodb_doublewrite = false`"""

    level_names: ClassVar[dict[str, str]] = {
        "mariadb": "cluster.",
        "mariadb.settings": "cluster.settings.",
    }

    @classmethod
    def level_name(cls, section: str, key: str) -> str:
        """The page size is a setting to MariaDB."""
        return super().level_name("mariadb.settings" if key == PAGE_SIZE else section, key)

    @staticmethod
    def level(section: str, level: Scalar) -> Scalar:
        """Settings as the server takes them, the page size in bytes."""
        if section == "mariadb.settings":
            return setting_value(level)
        return level if level in UNTORN_LEVELS else values.power_of_two(PAGE_SIZES, level)

    engine: ClassVar[str] = MARIADB

    def cluster_factors(self) -> Factors:
        """The page size, how pages are written, then the settings."""
        page_size = of_settings({PAGE_SIZE: self.innodb_page_size})
        return {**page_size, "untorn_writes": self.untorn_writes, **of_settings(self.settings)}


PLAN = MariadbTable

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

CANARY = ClusterLevels()

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
