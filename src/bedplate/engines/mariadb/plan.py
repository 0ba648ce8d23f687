"""`[mariadb]` in a plan: the page size of its data directory, and the server's settings."""

from __future__ import annotations

from itertools import product
from typing import Annotated, Any, ClassVar, TypeAlias

from pydantic import AfterValidator, Field, PlainValidator

from bedplate.engines.mariadb.model import PAGE_SIZE
from bedplate.engines.mariadb.settings import setting_name, setting_value
from bedplate.model.cell import UNTORN_COUNT, UNTORN_LEVELS, UNTORN_OFF, UNTORN_ON, BuildLevels, ClusterLevels
from bedplate.model.engines import MARIADB
from bedplate.model.levels import Levels, Scalar
from bedplate.model.plan import EngineSetup
from bedplate.plan import values
from bedplate.plan.engine_table import EngineTable, asked
from bedplate.plan.fields import Factor, UntornWrites, within
from bedplate.units import KIB

PAGE_SIZES = tuple(size * KIB for size in (4, 8, 16, 32, 64))

PageSize: TypeAlias = Annotated[int, within(values.power_of_two, PAGE_SIZES)]
ServerSetting: TypeAlias = Annotated[str, AfterValidator(setting_name)]
ServerSettingValue: TypeAlias = Annotated[str, PlainValidator(setting_value)]


class MariadbTable(EngineTable):
    """`[mariadb]`: how its data directory is made, and how its server is set."""

    innodb_page_size: Factor[PageSize] = Field(default=(), description="InnoDB's page size")
    """cluster | `4 kB`, `8 kB`, `16 kB`, `32 kB`, `64 kB`; chosen when the data directory is made | MariaDB's own (16 kB) |
    `{ vary = ["4 kB", "16 kB"] }`"""
    untorn_writes: Factor[UntornWrites] = Field(
        default=(UNTORN_OFF,), description=f"{UNTORN_OFF}, {UNTORN_ON} or {UNTORN_COUNT}"
    )
    """cluster | as in `[postgresql]`: `on` has each page written whole or not at all (RWF_ATOMIC), `count` counts alone. Both need
    `innodb_log_file_buffering = true` and `innodb_use_native_aio = false`, and `innodb_flush_method` as it is | `"off"` |
    `{ vary = ["on", "count"] }`"""
    settings: dict[ServerSetting, Factor[ServerSettingValue]] = Field(
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

    def build_factors(self) -> tuple[tuple[Any, ...], ...]:
        """None: the packages are the distribution's."""
        return ()

    def cluster_factors(self) -> tuple[tuple[Any, ...], ...]:
        """The page size, how pages are written, then the settings."""
        return (asked(self.innodb_page_size), asked(self.untorn_writes), *self.settings.values())

    def setup(self) -> EngineSetup:
        """Every combination."""
        names = (PAGE_SIZE, *self.settings)
        clusters = tuple(
            ClusterLevels(
                settings=Levels(
                    {
                        name: level
                        for name, level in zip(names, (page, *levels), strict=True)
                        if level is not None
                    }
                ),
                untorn_writes=untorn,
            )
            for page, untorn, *levels in product(*self.cluster_factors())
        )
        return EngineSetup(MARIADB, (BuildLevels.unbuilt(MARIADB),), clusters)


PLAN = MariadbTable
