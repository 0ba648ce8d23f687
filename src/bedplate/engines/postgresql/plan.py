"""`[postgresql]` in a plan: what is built, and how the cluster is set up."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, model_validator

from bedplate.engines.postgresql import settings as known_settings
from bedplate.engines.postgresql.model import DATABASE_BLOCK_SIZES
from bedplate.engines.postgresql.settings import (
    PAGE_COSTS,
    controlled_in,
    in_force,
    page_costs_in,
    refused_settings,
)
from bedplate.engines.postgresql.versions import VERSION, major_of, version_of_tree
from bedplate.model.cell import (
    BUILT,
    PACKAGED,
    SERVER_KINDS,
    UNTORN_OFF,
    BuildLevels,
    Cell,
    ClusterLevels,
    SourceTree,
)
from bedplate.model.engines import POSTGRESQL
from bedplate.model.levels import Levels, Scalar
from bedplate.model.plan import Plan
from bedplate.plan import values
from bedplate.plan.fields import Factor, Flag, ListFactor, UntornWrites, within
from bedplate.plan.rules import CellContext, Rule, filesystem_refusals
from bedplate.plan.table import EngineTable, Factors, of_settings
from bedplate.plan.trees import PATCHES, SOURCE, patch_levels, source_trees
from bedplate.plan.words import in_quotes, joined
from bedplate.units import GIB, KIB, MIB, format_size, parse_size

if TYPE_CHECKING:
    from bedplate.plan.differences import PlanWarnings
    from bedplate.plan.estimate import EngineEstimate

# What initdb takes (--wal-segsize, in megabytes).
WAL_SEGMENT_SIZES = tuple(MIB << power for power in range(11))

Version: TypeAlias = Annotated[str, within(values.version)]
WalBlock: TypeAlias = Annotated[int, within(values.power_of_two, (*DATABASE_BLOCK_SIZES, 64 * KIB))]
SettingName: TypeAlias = Annotated[str, AfterValidator(known_settings.setting_name)]
SettingValue: TypeAlias = Annotated[str, within(known_settings.setting_value, form=values.SCALAR)]


def _configuration(value: Any, info: ValidationInfo) -> str:
    """The text of an own postgresql.conf, by its path beside the plan."""
    if not isinstance(value, str):
        raise ValueError("allowed is the path of a postgresql.conf, relative to the plan")
    return known_settings.own_configuration_text(values.file_beside_the_plan(value, info))


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
        raise ValueError(f"{', '.join(map(in_quotes, twice))} is set twice; PostgreSQL ignores case in names")
    return flat


def _server(value: Any) -> str:
    """Who made the programs."""
    if value in SERVER_KINDS or (
        isinstance(value, str) and value.isprintable() and str(Path(value)) == value and value[0] == "/"
    ):
        return str(value)
    raise ValueError(
        f'allowed: {in_quotes(BUILT)}, {in_quotes(PACKAGED)}, or the folder of an installed server, such as "/usr/lib/postgresql/17"'
    )


_SERVER: values.Form = values.either({"enum": list(SERVER_KINDS)}, values.pattern("/.+"))

Server: TypeAlias = Annotated[str, within(_server, form=_SERVER)]
Source: TypeAlias = Annotated[tuple[SourceTree, ...], within(_source, form=SOURCE)]
Configuration: TypeAlias = Annotated[str, within(_configuration, form=values.TEXT)]


# As a plan has them: those of an extension are in a table by its name.
Settings: TypeAlias = dict[str, Factor[SettingValue] | dict[str, Factor[SettingValue]]]


class PostgresqlTable(EngineTable):
    """`[postgresql]`: what is built, and how the cluster is set up."""

    version: Factor[Version] = ("18",)
    """build | `15`, `16`, `17`, `18`, or an exact version | `"18"` | `"18.6"`"""
    server: Server = BUILT
    """build | `built`: compiled here, minutes for each block size. `packaged`: the distribution's packages, unpacked in the cache in half a
    minute. Or the folder of an installed server, of which only the programs are used. The last two have 8 kB blocks and need
    `version`, the major version | `"built"` | `"packaged"`, `"/usr/lib/postgresql/17"`"""
    source: Source = ()
    """build | a tree of your own: `tree` is a work tree or a bare repository, `commit` a branch, a tag, `master~1`, a hash or
    `"working tree"`, and may vary ([source trees](#source-trees-and-patches)); in place of `version` | the release | `{ tree = "~/src/postgres",
    commit = { vary = ["master~1", "master"] } }`"""
    patches: ListFactor[Annotated[tuple[str, ...], within(_patches, form=PATCHES)]] = ((),)
    """build | patches of `git format-patch`, `git diff` or `diff -u`, applied in order to the commit or the release | none | `{ vary = [[],
    ["v3-0001-x.patch"]] }`"""
    block_size: Factor[Annotated[int, within(values.power_of_two, DATABASE_BLOCK_SIZES)]] = (8192,)
    """build | `1 kB`, `2 kB`, `4 kB`, `8 kB`, `16 kB`, `32 kB`; each is built once and kept | `"8 kB"` | `{ vary = ["1 kB", "8 kB"]
    }`"""
    wal_block_size: Factor[WalBlock] = (8192,)
    """build | the same, and `64 kB` | `"8 kB"` | `"8 kB"`"""
    data_checksums: Factor[Flag] = ()
    """cluster | `true`, `false` | the version's own (on since 18) | `false`"""
    wal_segment_size: Factor[Annotated[int, within(values.power_of_two, WAL_SEGMENT_SIZES)]] = ()
    """cluster | `1 MB`, `2 MB`, `4 MB`, … `1024 MB`: initdb's `--wal-segsize`, read back from the cluster | `16 MB` |
    `{ vary = ["16 MB", "64 MB"] }`"""
    scaled_block_settings: Factor[Flag] = (False,)
    """cluster | `true`: defaults that count blocks (`bgwriter_lru_maxpages` and its kin) follow the block size, so that they mean
    as many bytes at 1 kB as at 8 kB; what `configuration` or `settings` say stays | `false` | `true`"""
    scaled_page_costs: Factor[Flag] = (False,)
    """cluster | `true`: the planner's `seq_page_cost` and `random_page_cost` follow the block size: a 4 kB page
    costs half of an 8 kB page. So block sizes are more often compared under one query plan. What is scaled is what `settings` say, else
    PostgreSQL's default | `false` | `true`"""
    untorn_writes: Factor[UntornWrites] = (UNTORN_OFF,)
    """cluster | `on`: the server writes each data page whole or not at all, as far as the file system can (RWF_ATOMIC; a library is
    preloaded into it). `count`: as without, and counted, for comparison. Both need `debug_io_direct = "data"`, and so version
    16 or later | `"off"` | `{ vary = ["off", "on"] }`"""
    configuration: Factor[Configuration] = ()
    """cluster | the path of an own `postgresql.conf`, in or below the plan's directory; its text becomes part of the plan | none |
    `"mine.conf"`"""
    settings: Annotated[
        dict[SettingName, Factor[SettingValue]], BeforeValidator(_dotted, json_schema_input_type=Settings)
    ] = Field(default_factory=dict, description="a table of PostgreSQL settings")
    """cluster | `[postgresql.settings]`: any setting by its name; it wins over `configuration` | none | `shared_buffers = "512MB"`"""

    @model_validator(mode="after")
    def _fits_together(self) -> PostgresqlTable:
        reasons = [
            *(
                ["version is the commit's where there is a source; take one of them out"]
                if self.source and "version" in self.model_fields_set
                else []
            ),
            *self._not_of_a_ready_server(),
            *refused_settings(self.settings),
            *(
                f"scaled_page_costs scales {name}, which is {in_quotes(level)}; allowed is a positive number"
                for name in PAGE_COSTS
                for level in self.settings.get(name, ())
                if True in self.scaled_page_costs and not _is_positive(level)
            ),
        ]
        if reasons:
            raise ValueError(joined(reasons))
        return self

    def _not_of_a_ready_server(self) -> Iterator[str]:
        """What only a build can be given."""
        if self.server == BUILT:
            return
        is_usual = {*self.block_size, *self.wal_block_size} == {BuildLevels().block_size_bytes}
        subject = f"server = {in_quotes(self.server)}"
        for is_wrong, words in (
            (bool(self.source), "source is compiled"),
            (self.patches != ((),), "patches are compiled"),
            (not is_usual, "its blocks have 8 kB, and other sizes are compiled"),
        ):
            if is_wrong:
                yield f"{subject}: {words}; server = {in_quotes(BUILT)} does that"
        if "version" not in self.model_fields_set:
            yield f'{subject}: which major version it is belongs into the plan: version = "17" (`bedplate doctor` says what is here)'
        elif any("." in version for version in self.version) or len(self.version) > 1:
            yield f'{subject}: there is one version of it; name that alone, without its minor: version = "17"'

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

    engine: ClassVar[str] = POSTGRESQL

    def build_factors(self) -> Factors:
        """The version is the commit's where there is a source."""
        return {
            "version": self.source or self.version,
            "block_size_bytes": self.block_size,
            "wal_block_size_bytes": self.wal_block_size,
            "patches": self.patches,
            "server": (self.server,),
        }

    def build_levels(self, combination: Mapping[str, Any]) -> BuildLevels:
        """A tree by its commit, and the version that it says it is of."""
        source = combination["version"]
        if isinstance(source, SourceTree):
            combination = {**combination, "version": source.facts[VERSION], "source_commit": source.level}
        return BuildLevels(self.engine, **combination)

    def cluster_factors(self) -> Factors:
        """What initdb and bedplate decide, then the settings."""
        return {
            "data_checksums": self.data_checksums,
            "scaled_block_settings": self.scaled_block_settings,
            "scaled_page_costs": self.scaled_page_costs,
            "configuration": self.configuration,
            "untorn_writes": self.untorn_writes,
            "wal_segment_bytes": self.wal_segment_size,
            **of_settings(self.settings),
        }


def _is_positive(text: str) -> bool:
    try:
        return 0 < float(text) < float("inf")
    except ValueError:
        return False


PLAN = PostgresqlTable

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

# 8 s hold no timed checkpoint at the default timeout anyway; say so, so that it stays so.
CANARY = ClusterLevels(settings=Levels(checkpoint_timeout="1h"))

_MAX_WAL_SIZE_BYTES = GIB

# What initdb writes into postgresql.conf (DEFAULT_MAX_WAL_SEGS).
_MAX_WAL_SEGMENTS = 64


class PostgresqlEstimate:
    """`max_wal_size`."""

    def log_bytes(self, cell: Cell) -> int:
        """As it is set, else its default."""
        asked, segment = in_force(cell.cluster, "max_wal_size"), cell.cluster.wal_segment_bytes
        if asked is None and segment is not None:
            return _MAX_WAL_SEGMENTS * segment
        return _max_wal_bytes(asked)


@lru_cache(maxsize=1024)
def _max_wal_bytes(text: str | None) -> int:
    if text is None:
        return _MAX_WAL_SIZE_BYTES
    if re.fullmatch(r"\d{1,12}", text):
        return int(text) * MIB  # the server's own unit of max_wal_size
    try:
        return parse_size(text)
    except (ValueError, OverflowError):
        return _MAX_WAL_SIZE_BYTES


ESTIMATE: EngineEstimate = PostgresqlEstimate()


def of_plan(plan: Plan) -> Iterator[str]:
    """Sentences."""
    yield from _of_configurations(plan)
    yield from _of_scaled_costs(plan)


def _of_configurations(plan: Plan) -> list[str]:
    found = []
    for text in dict.fromkeys(cluster.configuration for cluster in plan.clusters if cluster.configuration):
        names = controlled_in(text)
        if names:
            found.append(f"postgresql.configuration: bedplate's own {', '.join(names)} win over the file's")
    for cluster in plan.clusters:
        names = page_costs_in(cluster.configuration or "") if cluster.scaled_page_costs else ()
        if names:
            found.append(
                f"postgresql.configuration: scaled_page_costs replaces the file's {', '.join(names)}; what "
                "shall be scaled belongs into [postgresql.settings]"
            )
    return found


def _of_scaled_costs(plan: Plan) -> list[str]:
    """The planner takes a share of an index for cached by `effective_cache_size`, whose default counts pages."""
    blocks = {build.block_size_bytes for build in plan.builds if build.is_built}
    left = any(
        cluster.scaled_page_costs
        and not cluster.scaled_block_settings
        and in_force(cluster, "effective_cache_size") is None
        for cluster in plan.clusters
    )
    if len(blocks) < 2 or not left:
        return []
    words = (
        "scaled_page_costs: effective_cache_size is left at PostgreSQL's default of 524288 pages, which is 512 MB at "
        "1 kB and 16 GB at 32 kB. Query plans may still follow the block size. Set it in [postgresql.settings], or "
        "scaled_block_settings = true"
    )
    return [words]


WARNINGS: PlanWarnings = of_plan
