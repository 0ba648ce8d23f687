"""`[postgresql]` in a plan: what is built, and how the cluster is set up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import product
from typing import Annotated, Any, ClassVar, Self, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, ValidationInfo, model_validator

from bedplate.engines.postgresql.builds.version import VERSION, version_of_tree
from bedplate.engines.postgresql.configuring import settings as known_settings
from bedplate.engines.postgresql.configuring.settings import PAGE_COSTS, refused_settings
from bedplate.engines.postgresql.model import DATABASE_BLOCK_SIZES
from bedplate.model.cell import UNTORN_COUNT, UNTORN_OFF, UNTORN_ON, BuildLevels, ClusterLevels
from bedplate.model.engines import POSTGRESQL
from bedplate.model.levels import Levels, Scalar
from bedplate.model.plan import EngineSetup
from bedplate.model.source_commit import SourceTree
from bedplate.plan import values
from bedplate.plan.engine_table import EngineTable, asked
from bedplate.plan.fields import Factor, Flag, ListFactor, UntornWrites, within
from bedplate.plan.trees.commits import source_trees
from bedplate.plan.trees.patches import patch_levels
from bedplate.plan.words import joined, shown
from bedplate.units import KIB, MIB

# What initdb takes (--wal-segsize, in megabytes).
WAL_SEGMENT_SIZES = tuple(MIB << power for power in range(11))

Version: TypeAlias = Annotated[str, PlainValidator(values.version)]
DatabaseBlock: TypeAlias = Annotated[int, within(values.power_of_two, DATABASE_BLOCK_SIZES)]
WalBlock: TypeAlias = Annotated[int, within(values.power_of_two, (*DATABASE_BLOCK_SIZES, 64 * KIB))]
WalSegment: TypeAlias = Annotated[int, within(values.power_of_two, WAL_SEGMENT_SIZES)]
SettingName: TypeAlias = Annotated[str, AfterValidator(known_settings.setting_name)]
SettingValue: TypeAlias = Annotated[str, PlainValidator(known_settings.setting_value)]


def _configuration(value: Any, info: ValidationInfo) -> str:
    """The text of an own postgresql.conf, by its path beside the plan."""
    if not isinstance(value, str):
        raise ValueError("allowed is the path of a postgresql.conf, relative to the plan")
    return known_settings.configuration_text(values.file_beside_the_plan(value, info))


def _source(value: Any, info: ValidationInfo) -> tuple[SourceTree, ...]:
    return source_trees(value, info.context or {}, version_of_tree)


def _patches(value: Any, info: ValidationInfo) -> tuple[str, ...]:
    return patch_levels(value, info.context or {})


def _dotted(value: Any) -> Any:
    """An extension's setting (`a.b = 1`) is a table to TOML; put its name together again."""
    if not isinstance(value, dict):
        return value
    flat: dict[str, Any] = {}
    for name, setting in value.items():
        if isinstance(setting, dict) and "vary" not in setting:
            flat.update({f"{name}.{part}": inner for part, inner in setting.items()})
        else:
            flat[name] = setting
    twice = sorted(name for name, count in Counter(map(str.lower, flat)).items() if count > 1)
    if twice:
        raise ValueError(f"{', '.join(map(shown, twice))} is set twice; PostgreSQL ignores case in names")
    return flat


Source: TypeAlias = Annotated[tuple[SourceTree, ...], PlainValidator(_source)]
Patches: TypeAlias = Annotated[tuple[str, ...], PlainValidator(_patches)]
Configuration: TypeAlias = Annotated[str, PlainValidator(_configuration)]


class PostgresqlTable(EngineTable):
    """`[postgresql]`: what is built, and how the cluster is set up."""

    version: Factor[Version] = Field(default=("18",), description="version of PostgreSQL")
    """build | `15`, `16`, `17`, `18`, or an exact version | `"18"` | `"18.6"`"""
    source: Source = Field(
        default=(), description='a table such as { tree = "~/src/postgres", commit = "master" }'
    )
    """build | a tree of your own: `tree` is a work tree or a bare repository, `commit` a branch, a tag, `master~1`, a hash or
    `"working tree"`, and may vary ([source trees](#source-trees-and-patches)); in place of `version` | the release | `{ tree = "~/src/postgres",
    commit = { vary = ["master~1", "master"] } }`"""
    patches: ListFactor[Patches] = Field(
        default=((),), description='a list of patches, such as ["v3-0001-x.patch"]'
    )
    """build | patches of `git format-patch`, `git diff` or `diff -u`, applied in order to the commit or the release | none | `{ vary = [[],
    ["v3-0001-x.patch"]] }`"""
    block_size: Factor[DatabaseBlock] = Field(default=(8192,), description="database block size")
    """build | `1 kB`, `2 kB`, `4 kB`, `8 kB`, `16 kB`, `32 kB`; each is built once and kept | `"8 kB"` | `{ vary = ["1 kB", "8 kB"]
    }`"""
    wal_block_size: Factor[WalBlock] = Field(default=(8192,), description="WAL block size")
    """build | the same, and `64 kB` | `"8 kB"` | `"8 kB"`"""
    data_checksums: Factor[Flag] = Field(default=(), description="true or false")
    """cluster | `true`, `false` | the version's own (on since 18) | `false`"""
    wal_segment_size: Factor[WalSegment] = Field(default=(), description="size of a file of the WAL")
    """cluster | `1 MB`, `2 MB`, `4 MB`, … `1024 MB`: initdb's `--wal-segsize`, read back from the cluster | `16 MB` |
    `{ vary = ["16 MB", "64 MB"] }`"""
    scaled_block_settings: Factor[Flag] = Field(
        default=(False,), description="true or false: settings counted in blocks follow the block size"
    )
    """cluster | `true`: defaults that count blocks (`bgwriter_lru_maxpages` and its kin) follow the block size, so that they mean
    as many bytes at 1 kB as at 8 kB; what `configuration` or `settings` say stays | `false` | `true`"""
    scaled_page_costs: Factor[Flag] = Field(
        default=(False,), description="true or false: the planner's costs of a page follow the block size"
    )
    """cluster | `true`: the planner's `seq_page_cost` and `random_page_cost` follow the block size: a 4 kB page
    costs half of an 8 kB page. So block sizes are more often compared under one query plan. What is scaled is what `settings` say, else
    PostgreSQL's default | `false` | `true`"""
    untorn_writes: Factor[UntornWrites] = Field(
        default=(UNTORN_OFF,), description=f"{UNTORN_OFF}, {UNTORN_ON} or {UNTORN_COUNT}"
    )
    """cluster | `on`: the server writes each data page whole or not at all, as far as the file system can (RWF_ATOMIC; a library is
    preloaded into it). `count`: as without, and counted, for comparison. Both need `debug_io_direct = "data"`, and so version
    16 or later | `"off"` | `{ vary = ["off", "on"] }`"""
    configuration: Factor[Configuration] = Field(default=(), description="path of an own postgresql.conf")
    """cluster | the path of an own `postgresql.conf`, in or below the plan's directory; its text becomes part of the plan | none |
    `"mine.conf"`"""
    settings: Annotated[dict[SettingName, Factor[SettingValue]], BeforeValidator(_dotted)] = Field(
        default_factory=dict, description="a table of PostgreSQL settings"
    )
    """cluster | `[postgresql.settings]`: any setting by its name; it wins over `configuration` | none | `shared_buffers = "512MB"`"""

    @model_validator(mode="after")
    def _fits_together(self) -> PostgresqlTable:
        reasons = [
            *(
                ["version is the commit's where there is a source; take one of them out"]
                if self.source and "version" in self.model_fields_set
                else []
            ),
            *refused_settings(self.settings),
            *(
                f"scaled_page_costs scales {name}, which is {shown(level)}; allowed is a positive number"
                for name in PAGE_COSTS
                for level in self.settings.get(name, ())
                if True in self.scaled_page_costs and not _is_positive(level)
            ),
        ]
        if reasons:
            raise ValueError(joined(reasons))
        return self

    level_names: ClassVar[dict[str, str]] = {
        "postgresql": "cluster.",
        "postgresql.settings": "cluster.settings.",
    }

    @staticmethod
    def level(section: str, level: Scalar) -> Scalar:
        """Settings as postgresql.conf has them."""
        return known_settings.setting_value(level) if section == "postgresql.settings" else level

    def with_settings(self, settings: Mapping[str, Scalar]) -> Self:
        """Those in its own postgresql.conf are named as well."""
        named = {
            *self.settings,
            *(name for text in self.configuration for name in known_settings.names_in(text)),
        }
        if not settings or named & set(settings):
            return self
        more = {name: (known_settings.setting_value(value),) for name, value in settings.items()}
        return self.model_copy(update={"settings": {**self.settings, **more}})

    def build_factors(self) -> tuple[tuple[Any, ...], ...]:
        """In the order of BuildLevels' fields."""
        return (self.source or self.version, self.block_size, self.wal_block_size, self.patches)

    def cluster_factors(self) -> tuple[tuple[Any, ...], ...]:
        """What initdb and bedplate decide, then the settings."""
        scalars = (
            self.data_checksums,
            self.scaled_block_settings,
            self.scaled_page_costs,
            self.configuration,
            self.untorn_writes,
            self.wal_segment_size,
        )
        return (*map(asked, scalars), *self.settings.values())

    def setup(self) -> EngineSetup:
        """Every build with every cluster."""
        builds = tuple(map(_build, product(*self.build_factors())))
        return EngineSetup(POSTGRESQL, builds, tuple(map(self._cluster, product(*self.cluster_factors()))))

    def _cluster(self, levels: tuple[Any, ...]) -> ClusterLevels:
        checksums, scaled_blocks, scaled_costs, configuration, untorn, segment, *of_settings = levels
        return ClusterLevels(
            data_checksums=checksums,
            settings=Levels(dict(zip(self.settings, of_settings, strict=True))),
            scaled_block_settings=scaled_blocks,
            configuration=configuration,
            scaled_page_costs=scaled_costs,
            untorn_writes=untorn,
            wal_segment_bytes=segment,
        )


def _build(levels: tuple[Any, ...]) -> BuildLevels:
    source, block_size, wal_block_size, patches = levels
    if not isinstance(source, SourceTree):
        return BuildLevels(POSTGRESQL, source, block_size, wal_block_size, patches=patches)
    version = source.facts[VERSION]
    return BuildLevels(POSTGRESQL, version, block_size, wal_block_size, source.level, patches)


def _is_positive(text: str) -> bool:
    try:
        return 0 < float(text) < float("inf")
    except ValueError:
        return False


PLAN = PostgresqlTable
