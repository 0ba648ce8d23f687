"""A TOML text to a `Plan`, or a PlanError with every reason at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from math import ceil
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, Field, ValidationError, create_model, model_validator

from bedplate import registry
from bedplate.errors import PlanError
from bedplate.model.cell import (
    JOURNAL_IN_RAM,
    JOURNAL_ON_DEVICE,
    Cell,
    Dataset,
    DeviceLevels,
    FilesystemLevels,
    KernelLevels,
    KernelSource,
    PlanSources,
    SourceTree,
    Throttle,
)
from bedplate.model.devices import Latency
from bedplate.model.filesystem import AGE_PROFILES, DATASETS, FILLS, FRESH, TRAITS, unsafe_options
from bedplate.model.levels import Levels
from bedplate.model.machine import Fleet
from bedplate.model.plan import (
    DEFAULTS_VERSION,
    VISITS_PER_BOOT,
    Canary,
    EngineSetup,
    GuestPlan,
    Plan,
    PlannedWorkload,
)
from bedplate.model.visit import LOADED, ScratchDevice
from bedplate.near_names import did_you_mean
from bedplate.plan import values, words
from bedplate.plan.differences import warnings
from bedplate.plan.estimate import device_bytes_needed
from bedplate.plan.expand import expand
from bedplate.plan.fields import (
    FEATURES,
    Departures,
    DeviceName,
    Factor,
    FilesystemBlock,
    FilesystemType,
    Flag,
    ListFactor,
    Memory,
    Seed,
    SlurmTable,
    limit_to_cells,
    within,
)
from bedplate.plan.table import (
    EngineTable,
    Factors,
    PlanTable,
    WorkloadTable,
    at_least_one,
    combination_count,
    combinations,
    engine_tables,
    keys_of,
    plain_setup,
    section_of,
)
from bedplate.plan.toml import parse_toml, toml_text
from bedplate.plan.trees import Kernels, Revisions, left_out
from bedplate.plan.values import JOURNAL_BYTES, SMALLEST_IMAGE_BYTES, listed_for
from bedplate.plan.words import at_most, in_quotes, joined, refused_mkfs_options
from bedplate.units import GIB, TIB


def table_of(workload: str) -> type[WorkloadTable]:
    """The table of a type; PlanError lists the known ones."""
    table: type[WorkloadTable] = registry.part(workload, "plan")
    return table


def default_workloads() -> tuple[WorkloadTable, ...]:
    """What a plan without a workload gets: the first type with its defaults."""
    first = registry.first_workload()
    return (table_of(first).model_validate({"type": first}),)


def workload_tables() -> Mapping[tuple[str, ...], type[PlanTable]]:
    """Every table of every type, by the type and the keys of the tables in it."""
    found: dict[tuple[str, ...], type[PlanTable]] = {}
    for name in registry.WORKLOADS:
        table = table_of(name)
        found[(name,)] = table
        found |= {(name, key): inner for key, inner in table.inner_tables.items()}
    return found


if TYPE_CHECKING:
    AnyWorkload = WorkloadTable
else:
    # What is read is told apart by its type.
    AnyWorkload = Annotated[reduce(or_, map(table_of, registry.WORKLOADS)), Field(discriminator="type")]


def _types_with(feature: str) -> tuple[str, ...]:
    return tuple(kind for kind, traits in TRAITS.items() if feature in traits.features)


class ScratchDeviceTable(PlanTable):
    """`[scratch_device]`: what will be erased, and how its queue is set."""

    image_size: Annotated[int, within(values.size, values.SMALLEST_IMAGE_BYTES, 16 * TIB)] | None = None
    """– | 512 MB or more: an image file of bedplate's own on a loop device | what the largest visit needs | `"6 GB"`"""
    device: DeviceName | None = None
    """– | a stable name: `/dev/disk/by-id/…`, `by-path`, `by-partuuid`, `by-partlabel`, `/dev/mapper/…`, `/dev/md/…`,
    `/dev/GROUP/VOLUME` | – | `"/dev/disk/by-id/ata-…"`"""
    read_ahead: Factor[Annotated[int, within(values.read_ahead_kb)]] = ()
    """device | a size with its unit, whole kB | the kernel's | `"4096 kB"`"""
    scheduler: Factor[Annotated[str, within(values.one_of, words.SCHEDULERS)]] = ()
    """device | `none`, `mq-deadline`, `kyber`, `bfq` | the kernel's | `"none"`"""
    throttle: Factor[Annotated[Throttle, within(values.throttle)]] = ()
    """device | a name, or a table of limits (below) | none | `"hdd-7200"`"""
    latency: Factor[Annotated[Latency, within(values.latency)]] = ()
    """device | a name, a table of times, or a modelled disk (below); needs `image_size`, which is in memory then | none |
    `"hdd-7200-2011"`"""

    @model_validator(mode="after")
    def _not_both(self) -> ScratchDeviceTable:
        if self.image_size is not None and self.device is not None:
            raise ValueError('allowed is one of image_size = "6 GB" and device = "/dev/disk/by-id/…"')
        if self.device is not None and self.latency:
            raise ValueError(
                'latency is of an emulated device, whose data is in memory: use image_size = "6 GB"'
            )
        return self


class MachineTable(PlanTable):
    """`[machine]`: the machine around the device."""

    memory: Factor[Memory] = ()
    """device | 256 MB or more, less than the machine has: a cgroup limits the server and its page cache; a guest is that large | no
    limit | `"2 GB"`"""
    kernel: Kernels = ()
    """kernel | a version, a release, the path of a kernel of your own, or a tree: `{ tree = "~/src/linux", commit = { vary = ["v7.0", "v7.1"] },
    config = "guest" }` ([KERNELS.md](KERNELS.md)) | the running one; for guests the executor's own | `{ vary = ["6.1", "6.12"] }`"""


class JournalDeviceTable(PlanTable):
    """`[journal_device]`: what external journals stand on."""

    device: DeviceName | None = None
    """– | a stable name, as in `[scratch_device]` | – | `"/dev/disk/by-id/nvme-…"`"""
    ram_size: Annotated[int, within(values.size, values.SMALLEST_JOURNAL_BYTES, 64 * GIB)] | None = None
    """– | 64 MB or more: a journal in memory, gone at a power cut, and with it the file system | `"256 MB"` without this table |
    `"512 MB"`"""

    @model_validator(mode="after")
    def _one_or_both(self) -> JournalDeviceTable:
        if self.device is None and self.ram_size is None:
            raise ValueError('allowed is device = "/dev/disk/by-id/…", ram_size = "256 MB", or both')
        return self


class GuestTable(PlanTable):
    """`[guest]`: the guests of an executor that has them."""

    visits_per_boot: Annotated[int, within(values.whole_number, 1, 1000)] = VISITS_PER_BOOT
    """– | 1 to 1000 visits that share a boot at most ([the order](#the-order)) | `8` | `1`"""
    memory: Memory | None = None
    """– | memory of a guest whose cell asks for none; 256 MB or more | `"2 GB"` | `"1 GB"`"""


# The factors that only some types have become keys by standing in the types' traits.
_feature_fields: dict[str, Any] = {
    name: (
        Factor[level],  # type: ignore[valid-type]
        Field(default=(), description=f"{', '.join(_types_with(name))} only"),
    )
    for name, level in FEATURES.items()
}

_Features: Any = create_model("_Features", __base__=PlanTable, **_feature_fields)


class FilesystemTable(_Features):  # type: ignore[misc]
    """`[[filesystem]]`: one or more variants of a file system; a type's own factors are keys as well."""

    type: Factor[FilesystemType] = Field(description="type of the file system")
    """filesystem | `ext2`, `ext3`, `ext4`, `xfs`, `btrfs`, `jfs`, `reiserfs`, `nilfs2`, `f2fs`, `ntfs3`, `ntfs-3g`, `zfs`,
    `bcachefs` (no distribution has its tools) | required | `"ext4"`"""
    block_size: Factor[FilesystemBlock] = ()
    """filesystem | a power of two that some type has; on Btrfs the sector size, on ZFS the recordsize | mkfs's own | `"4 kB"`"""
    recordsize: Factor[FilesystemBlock] = ()
    """filesystem | ZFS's own name of `block_size` | ZFS's own | `"8 kB"`"""
    mount_options: ListFactor[Annotated[tuple[str, ...], within(values.mount_options)]] = ()
    """filesystem | a list of options | `[]` | `["noatime"]`"""
    mkfs_options: ListFactor[Annotated[tuple[str, ...], within(values.mkfs_options)]] = ()
    """filesystem | a list of argument words, an option and its argument being two | `[]` | `["-O", "^metadata_csum"]`"""
    barrier: Factor[Flag] = ()
    """filesystem | `true`: fsync must flush the device; `false`: it must not. Either is proved by counting flushes | not judged |
    `{ vary = [true, false] }`"""
    journal: Factor[Annotated[str, within(values.one_of, ("internal", "external", "none"))]] = ()
    """filesystem | `internal`; `external`: on a separate device (ext3, ext4, XFS, JFS, ReiserFS; a log device of ZFS); `none`
    (ext4) | `internal`, where there is one | `{ vary = ["internal", "external"] }`"""
    journal_device: Factor[Annotated[str, within(values.one_of, (JOURNAL_IN_RAM, JOURNAL_ON_DEVICE))]] = ()
    """filesystem | where an external journal is: `ram`, `device` | what `[journal_device]` has | `"ram"`"""

    fill: Factor[Annotated[str, within(values.one_of, (FRESH, *FILLS))]] = ()
    """filesystem | `no`, or how full the file system is with the database, as df has it: `50 %`, `60 %`, `70 %`, `75 %`, `80 %`, `85 %`,
    `90 %`, `95 %`. Files that nobody reads fill it, most of them before the load (ext4, XFS, Btrfs) | `"no"` | `{ vary = ["no", "90 %"] }`"""
    aged: Factor[Annotated[str, within(values.one_of, (FRESH, *AGE_PROFILES))]] = ()
    """filesystem | `no`: as mkfs made it; `mixed`: files of 4 KiB to 4 MiB came and went; `small files`: of 4 to 64 KiB, which leave the
    free space in small pieces. On images only (ext4, XFS, Btrfs) | `"no"` | `{ vary = ["no", "small files"] }`"""

    @model_validator(mode="after")
    def _fits_together(self) -> FilesystemTable:
        reasons = []
        if self.recordsize and (self.block_size or set(self.type) != {"zfs"}):
            reasons.append("recordsize is the block_size of zfs; write one of them, in a table of its own")
        if self.journal_device and "external" not in self.journal:
            reasons.append('journal_device is for journal = "external" only')
        reasons += [
            reason
            for kind in self.type
            for words in self.mkfs_options
            for reason in refused_mkfs_options(kind, words)
        ]
        if reasons:
            raise ValueError(joined(reasons))
        return self


class CanaryTable(PlanTable):
    """`[canary]`: the visit that comes back through the study."""

    enabled: Flag = True
    """– | `true`, `false` | `true` | `false`"""
    every: Annotated[float, within(values.duration, 60)] = 7200.0
    """– | a time of at least a minute | `"2 h"` | `"30 min"`"""
    filesystem: FilesystemType | None = None
    """– | a type, as in `[[filesystem]]` | `ext4` if a cell has it, else the first cell's | `"xfs"`"""


class Document(PlanTable):
    """The whole plan, without the tables of engines (`WHOLE` has them)."""

    title: Annotated[str, within(values.title)] | None = None
    """– | one line of at most 200 characters | workloads, file systems and kernels | `"Barriers on my laptop"`"""
    repetitions: Annotated[int, within(values.whole_number, 1, 1000)] = 5
    """– | 1 to 1000 passes over all cells, each in its own order | `5` | `2`"""
    seed: Seed = 1
    """– | a whole number from 0; decides the order | `1` | `2011`"""
    executor: Annotated[str, within(values.one_of, values.EXECUTORS)] = "local"
    """– | `local`, `qemu`, `slurm`, `auto` ([where visits run](#where-visits-run)) | `"local"` | `"auto"`"""
    dataset: Annotated[str, within(values.one_of, DATASETS)] = LOADED
    """– | `loaded`: each visit loads its dataset; `restored`: it is loaded once on each file system and build, kept in the cache, and copied
    onto the image of every visit ([restored datasets](METHOD.md#restored-datasets)) | `"loaded"` | `"restored"`"""
    scratch_device: ScratchDeviceTable = Field(
        default=ScratchDeviceTable(), description='a table with image_size = "6 GB" or device'
    )
    """– | the table below | an image file | –"""
    machine: MachineTable = Field(default=MachineTable(), description="a table")
    """– | the table below | nothing asked | –"""
    journal_device: JournalDeviceTable | None = Field(
        default=None, description='a table with device, or ram_size = "256 MB"'
    )
    """– | the table below | a journal in RAM, where one is asked for | –"""
    guest: GuestTable = Field(default=GuestTable(), description="a table")
    """– | the table below | all defaults | –"""
    slurm: SlurmTable | None = Field(default=None, description='a table with nodes = ["n1", "n2"]')
    """– | the table below | required for `executor = "slurm"` | –"""
    filesystem: Annotated[tuple[FilesystemTable, ...], AfterValidator(at_least_one)] = Field(
        description="one or more [[filesystem]] tables"
    )
    """– | one or more `[[filesystem]]` tables | required | –"""
    workload: Annotated[tuple[AnyWorkload, ...], AfterValidator(at_least_one)] = Field(
        default=default_workloads(), description="one or more [[workload]] tables"
    )
    """– | one or more `[[workload]]` tables | one with every default ([above](#as-short-as-it-gets)) | –"""
    canary: CanaryTable = Field(default=CanaryTable(), description="a table")
    """– | the table below | on | –"""

    def setup_of(self, engine: str) -> EngineSetup:
        """Every way in which the plan has an engine."""
        table: EngineTable | None = getattr(self, section_of(engine), None)
        if table is None:
            return plain_setup(engine)
        for workload in self.workload:
            if engine in workload.engines():
                table = table.with_settings(workload.settings_of_defaults())
        return table.setup()

    def setup_count(self, engine: str) -> int:
        """How many these are, before they are made."""
        table: EngineTable | None = getattr(self, section_of(engine), None)
        return 1 if table is None else table.count()

    @model_validator(mode="after")
    def _has_nodes(self) -> Document:
        if self.executor == "slurm" and self.slurm is None:
            raise ValueError('executor = "slurm" needs the table [slurm] with nodes = ["n1", "n2"]')
        if self.executor == "slurm" and self.machine.kernel:
            raise ValueError(
                "machine.kernel: nodes keep the kernel that they run; take it out, or use guests"
            )
        if self.slurm is not None and self.slurm.devices and self.scratch_device.device is None:
            raise ValueError(
                "[slurm.devices] are in place of the device of [scratch_device], which has an image"
            )
        if (
            self.slurm is not None
            and self.slurm.journal_devices
            and (self.journal_device is None or self.journal_device.device is None)
        ):
            raise ValueError(
                "[slurm.journal_devices] are in place of the device of [journal_device], which names none"
            )
        return self


# The tables of the engines become keys by standing in their folders.
_engine_fields: dict[str, Any] = {
    name: (table, Field(default=table(), description="a table")) for name, table in engine_tables().items()
}

WHOLE: type[Document] = create_model("WHOLE", __base__=Document, **_engine_fields)

# Where each table stands in a plan; array indices left out. Of a [[workload]] the type comes first.
TABLES: dict[tuple[str, ...], type[PlanTable]] = {
    (): WHOLE,
    ("scratch_device",): ScratchDeviceTable,
    ("machine",): MachineTable,
    ("journal_device",): JournalDeviceTable,
    ("guest",): GuestTable,
    ("slurm",): SlurmTable,
    ("filesystem",): FilesystemTable,
    **{(name,): table for name, table in engine_tables().items()},
    **{("workload", *names): table for names, table in workload_tables().items()},
    ("canary",): CanaryTable,
}

# A hostile plan must not make a terminal scroll for minutes.
MOST_REASONS = 100

_LONGEST_REASON = 2000
_SETTINGS, _CLUSTER = "settings", "slurm"

# Tables that a plan may have several of.
_REPEATED = frozenset({"filesystem", "workload"})


def sentences(error: ValidationError, document: Mapping[str, Any]) -> tuple[str, ...]:
    """One sentence per finding, without the file's name."""
    return at_most(
        [_sentence(finding, document) for finding in error.errors(include_url=False)], MOST_REASONS
    )


def bounded(reason: str) -> str:
    """The reason, cut where it would fill a screen."""
    if len(reason) <= _LONGEST_REASON:
        return reason
    return f"{reason[:_LONGEST_REASON]}… ({len(reason)} characters)"


def _sentence(finding: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    location = tuple(finding["loc"])
    key = key_text(_as_written(location), document)
    kind = finding["type"]
    if kind == "union_tag_not_found":
        return f"{key}.type: missing; expected {', '.join(registry.WORKLOADS)}"
    if kind == "union_tag_invalid":
        found = finding["input"]["type"]
        return f"{key}.type: found {_value_words(found)}; expected {listed_for(found, registry.WORKLOADS)}"
    if kind == "extra_forbidden":
        return f"{key}: unknown key; {_closest(location, document)}"
    if kind == "missing":
        return f"{key}: missing; expected {_description(location)}"
    if kind == "value_error":
        return f"{key}: found {_value_words(finding['input'])}; {finding['ctx']['error']}"
    return f"{key}: found {_value_words(finding['input'])}; expected {_description(location)}"


def key_text(location: Sequence[str | int], document: Mapping[str, Any]) -> str:
    """`filesystem[1].block_size.vary[2]`: the way through the plan as its author wrote it."""
    text = ""
    here: Any = document
    for part in location:
        if isinstance(part, int):
            if isinstance(here, dict) and isinstance(here.get("vary"), list):
                text += f".vary[{part}]"
                here = here["vary"][part]
            elif isinstance(here, list) and part < len(here) and isinstance(here[part], dict):
                text += f"[{part}]"
                here = here[part]
            # Else a bare value, which the schema sees as the only one of its levels.
        elif part != "[key]":
            text += f".{_key(part)}" if text else _key(part)
            here = here.get(part) if isinstance(here, dict) else None
    return text or "the plan"


def _key(part: str) -> str:
    if part.replace("_", "").replace("-", "").replace(".", "").isalnum() and len(part) <= 60:
        return part
    return in_quotes(part)


def _value_words(value: Any) -> str:
    if isinstance(value, dict):
        return f"a table with {in_quotes(', '.join(map(str, value)))}" if value else "an empty table"
    return in_quotes(value)


def _as_written(location: Sequence[str | int]) -> tuple[str | int, ...]:
    """The location without the type by which a [[workload]] was chosen, which is no key."""
    if len(location) > 2 and location[0] == "workload" and isinstance(location[1], int):
        return (*location[:2], *location[3:])
    return tuple(location)


def _names(location: Sequence[str | int]) -> tuple[str, ...]:
    names = tuple(part for part in location if isinstance(part, str))
    return (
        (names[0], registry.type_today(names[1]), *names[2:])
        if names[1:] and names[0] == "workload"
        else names
    )


def _closest(location: Sequence[str | int], document: Mapping[str, Any]) -> str:
    *table, key = _names(location)
    allowed = list(keys_of(TABLES[tuple(table)]))
    listed = f"allowed: {', '.join(allowed)}"
    if _SETTINGS in allowed:
        listed += f"; a setting of the server goes into [{'.'.join((*table, _SETTINGS))}]"
    return did_you_mean(key, allowed, otherwise=_elsewhere(table, key, document) or listed)


def _elsewhere(table: Sequence[str], key: str, document: Mapping[str, Any]) -> str:
    """`it is a key of [machine]`: the tables that have the key; to a workload, those of the others are foreign.

    A cluster's table is meant by nobody who has none.
    """
    homes = [names for names, other in TABLES.items() if names != tuple(table) and key in keys_of(other)]
    if table[:1] == ["workload"]:
        homes = [names for names in homes if names[:1] != ("workload",) or names[:2] == tuple(table[:2])]
    if _CLUSTER not in document:
        homes = [names for names in homes if names != (_CLUSTER,)]
    written = dict.fromkeys(map(_header, homes))
    return f"it is a key of {' and of '.join(written)}" if written else ""


def _header(names: tuple[str, ...]) -> str:
    """As the table is headed in a plan."""
    if not names:
        return "the plan itself, above its tables"
    if names[0] == "workload":
        return f"[[{'.'.join((names[0], *names[2:]))}]]"
    return f"[[{names[0]}]]" if names[0] in _REPEATED else f"[{names[0]}]"


def _description(location: Sequence[str | int]) -> str:
    names = _names(location)
    for length in range(len(names), 0, -1):
        table = TABLES.get(names[: length - 1])
        field = keys_of(table).get(names[length - 1]) if table else None
        if field and field.description:
            return field.description
    return "a table"


def workloads(
    tables: Iterable[WorkloadTable], seed: int, reasons: list[str], *, defaults: int = DEFAULTS_VERSION
) -> tuple[PlannedWorkload, ...]:
    """All of them, in the order of the plan; what speaks against one is added to `reasons`."""
    found: list[PlannedWorkload] = []
    tables = tuple(tables)
    for index, table in enumerate(tables):
        reasons += (f"workload[{index}]{reason}" for reason in table.against(tables))
        try:
            workload = table.planned(seed, defaults)
        except ValueError as error:
            reasons.append(f"workload[{index}].{table.runs_key}: {error}")
            continue
        for earlier, other in enumerate(found):
            # Workloads that name their cells are held against each other where those are known.
            named = bool(table.cells_named() and tables[earlier].cells_named())
            if workload.type != other.type or not _loaded(workload) & _loaded(other):
                continue
            if not named or workload.runs != other.runs:
                reasons.append(
                    f"workload[{index}]{table.dataset_key}: loads the same dataset as workload[{earlier}]; "
                    f"{table.loaded_twice}"
                )
        found.append(workload)
    return tuple(found)


def cells_named(tables: Iterable[WorkloadTable]) -> dict[int, tuple[Departures, ...]]:
    """What workloads say of the cells that they run in, by their place in the plan."""
    return {index: cells for index, table in enumerate(tables) if (cells := table.cells_named())}


def _loaded(workload: PlannedWorkload) -> set[object]:
    return {*workload.scales, *workload.datasets}


MOST_CELLS = 20_000
MOST_RUNS_PER_VISIT = 1000
MOST_VISITS = 100_000

# An image that a plan does not size: what its largest visit needs with a tenth more, in steps of the smallest allowed.
_SPARE = 1.1

_IMAGE_STEP_BYTES = SMALLEST_IMAGE_BYTES

# Ordering and estimating take some 25 microseconds for each.
MOST_RUNS = 500_000

_UNUSED_JOURNAL_DEVICE = (
    'journal_device: no file system asks for journal = "external", so nothing is done with it'
)


def load_plan(
    text: str,
    *,
    source: str,
    directory: Path,
    defaults: int = DEFAULTS_VERSION,
    revisions: Revisions | None = None,
    kept_sources: Mapping[str, str] | None = None,
) -> Plan:
    """The plan in a TOML text.

    `source` is the file's name in errors; files that the plan names (an own script, an own
    postgresql.conf) are read from `directory`. `defaults` is the version of the table of defaults: a study stays with
    the one that it was begun with. `revisions` looks commits up; without it they are read from a study's notes alone. `kept_sources` are
    those notes of a study that the plan goes on with, by their paths. PlanError has all reasons, each with the file, the
    key, what was found and what is allowed.
    """
    name = source if source.isprintable() and len(source) <= 300 else in_quotes(source)
    try:
        files: dict[str, str] = {}
        archives: dict[str, str] = {}
        trees: dict[str, SourceTree] = {}
        patches: dict[str, str] = {}
        kernels: dict[str, KernelSource] = {}
        context = {
            "files": files,
            "archives": archives,
            "trees": trees,
            "patches": patches,
            "kernels": kernels,
        }
        document = _document(
            parse_toml(text),
            {**context, "directory": directory, "revisions": revisions, "kept": kept_sources},
        )
        _refuse_too_many(document)
        plan = _plan(document, files, defaults)
        unknown = tuple(filter(None, map(left_out, trees.values())))
        return replace(
            plan,
            archives=archives,
            sources=PlanSources(trees, patches, kernels),
            warnings=(*plan.warnings, *unknown),
        )
    except PlanError as error:
        raise PlanError(*(f"{name}: {bounded(reason)}" for reason in error.reasons)) from None


def _document(values: dict[str, Any], context: dict[str, Any]) -> Document:
    """`context` receives texts of files that the plan names, places of those that are not copied, trees, patches."""
    try:
        return WHOLE.model_validate(values, context=context)
    except ValidationError as error:
        raise PlanError(*sentences(error, values)) from None
    except RecursionError:
        raise PlanError("the plan is nested too deeply") from None


def _refuse_too_many(document: Document) -> None:
    """Counts before anything is multiplied out, so that a short text cannot fill the memory."""
    reasons = []
    devices = combination_count({**_device_factors(document), "kernel": document.machine.kernel})
    filesystems = sum(combination_count(_filesystem_factors(table)) for table in document.filesystem)
    used = {name for table in document.workload for name in table.engines()}
    engine = sum(map(document.setup_count, used))
    cells = devices * filesystems * engine
    if cells > MOST_CELLS:
        reasons.append(
            f"the plan comes to {cells} cells ({devices} of device and machine x {filesystems} file systems "
            f"x {engine} of the engines); allowed are {MOST_CELLS}"
        )
    for index, workload in enumerate(document.workload):
        runs = workload.run_count()
        if runs > MOST_RUNS_PER_VISIT:
            reasons.append(f"workload[{index}]: {runs} runs in one visit; allowed are {MOST_RUNS_PER_VISIT}")
    visits = cells * document.repetitions * sum(table.dataset_count() for table in document.workload)
    if visits > MOST_VISITS and cells <= MOST_CELLS:
        reasons.append(f"the plan comes to {visits} visits; allowed are {MOST_VISITS}")
    per_cell = sum(table.run_count() * table.dataset_count() for table in document.workload)
    runs = cells * document.repetitions * per_cell
    if not reasons and runs > MOST_RUNS:
        reasons.append(f"the plan comes to {runs} runs; allowed are {MOST_RUNS}")
    if reasons:
        raise PlanError(*reasons)


def _plan(document: Document, files: dict[str, str], defaults: int) -> Plan:
    reasons: list[str] = []
    engines = _engines(document)
    tables = tuple(table.suited(engines) for table in document.workload)
    plan = Plan(
        title=document.title or _title(document),
        repetitions=document.repetitions,
        seed=document.seed,
        executor=document.executor,
        dataset_by=document.dataset,
        scratch_device=ScratchDevice(
            device=document.scratch_device.device, image_bytes=document.scratch_device.image_size
        ),
        devices=tuple(DeviceLevels(**levels) for levels in combinations(_device_factors(document))),
        kernels=tuple(map(KernelLevels, document.machine.kernel or (None,))),
        filesystems=_filesystems(document, reasons),
        engines=engines,
        workloads=workloads(tables, document.seed, reasons, defaults=defaults),
        canary=Canary(document.canary.enabled, document.canary.every, document.canary.filesystem),
        files=files,
        journal_device=_journal_device(document, reasons),
        guest=GuestPlan(document.guest.visits_per_boot, document.guest.memory),
        fleet=_fleet(document, reasons),
    )
    if not reasons:
        plan = limit_to_cells(plan, cells_named(document.workload), reasons)
    if reasons:
        raise PlanError(*at_most(reasons, 100))
    plan = _with_place(plan)
    unused = document.journal_device is not None and plan.journal_device is None
    return replace(plan, warnings=warnings(plan) + ((_UNUSED_JOURNAL_DEVICE,) if unused else ()))


def _title(document: Document) -> str:
    """What varies first of all, for a plan that has no title."""
    kinds = dict.fromkeys(kind for table in document.filesystem for kind in table.type)
    kernels = document.machine.kernel
    under = f" under kernels {' and '.join(kernels)}" if kernels else ""
    loads = dict.fromkeys(table.type for table in document.workload)
    return f"{', '.join(loads)} on {', '.join(kinds)}{under}"[:200]


def _with_place(plan: Plan) -> Plan:
    """The plan with an image file that holds its largest visit, where it says nothing of a scratch device."""
    if plan.scratch_device != ScratchDevice():
        return plan
    try:
        # A canary has an image of its own; where it cannot be, the scratch device is not what is wrong.
        cells = expand(replace(plan, canary=replace(plan.canary, enabled=False)), None).cells
    except PlanError as error:
        raise PlanError(*(f"scratch_device: missing; {reason}" for reason in error.reasons)) from None
    needed = max((device_bytes_needed(each.cell, load) for each in cells for load in each.loads), default=0)
    steps = ceil(needed * _SPARE / _IMAGE_STEP_BYTES)
    return replace(plan, scratch_device=ScratchDevice(image_bytes=max(1, steps) * _IMAGE_STEP_BYTES))


def _fleet(document: Document, reasons: list[str]) -> Fleet | None:
    table = document.slurm
    if table is None:
        return None
    for node, device in table.journal_devices.items():
        if device == table.devices.get(node, document.scratch_device.device):
            reasons.append(
                f"slurm.journal_devices.{node}: it is the node's scratch device; a journal needs another one"
            )
    journal = None if document.journal_device is None else document.journal_device.device
    for node, device in table.devices.items():
        if device == journal and node not in table.journal_devices:
            reasons.append(f"slurm.devices.{node}: it is the device of [journal_device]; name another one")
    return Fleet(
        nodes=table.nodes,
        partition=table.partition,
        constraint=table.constraint,
        account=table.account,
        gres=table.gres,
        time_s=table.time,
        devices=table.devices,
        local_directory=table.local_directory,
        controller_deadline_s=table.controller_deadline,
        differing=table.differing,
        journal_devices=table.journal_devices,
    )


def _engines(document: Document) -> tuple[EngineSetup, ...]:
    """The setup of every engine that a workload of the plan runs on."""
    used = dict.fromkeys(name for table in document.workload for name in table.engines())
    return tuple(map(document.setup_of, used))


def _device_factors(document: Document) -> Factors:
    """By the fields of DeviceLevels."""
    scratch = document.scratch_device
    return {
        "memory_bytes": document.machine.memory,
        "throttle": scratch.throttle,
        "read_ahead_kb": scratch.read_ahead,
        "scheduler": scratch.scheduler,
        "latency": scratch.latency,
    }


def _filesystem_factors(table: FilesystemTable) -> Factors:
    """By the fields of FilesystemLevels, and a type's own. The block size last, so that the variants of one heat map stand together."""
    names = ("type", "mkfs_options", "mount_options", "journal", "journal_device", *FEATURES, "barrier")
    factors = {name: getattr(table, name) for name in names}
    return {**factors, "block_size_bytes": table.block_size or table.recordsize}


def _journal_device(document: Document, reasons: list[str]) -> ScratchDevice | None:
    """What external journals stand on, None where no variant has one; RAM if the plan does not say."""
    if not any("external" in filesystem.journal for filesystem in document.filesystem):
        return None
    table = document.journal_device
    if table is None:
        return ScratchDevice(image_bytes=JOURNAL_BYTES)
    if table.device is not None and table.device == document.scratch_device.device:
        reasons.append("journal_device.device: it is the scratch device; a journal needs another one")
    return ScratchDevice(device=table.device, image_bytes=table.ram_size)


def _journal_places(document: Document) -> tuple[str, ...]:
    """Where external journals can stand; the first one is where they do unless a variant says otherwise."""
    table = document.journal_device
    if table is None:
        return (JOURNAL_IN_RAM,)
    known = ((JOURNAL_ON_DEVICE, table.device), (JOURNAL_IN_RAM, table.ram_size))
    return tuple(name for name, value in known if value is not None)


def _filesystems(document: Document, reasons: list[str]) -> tuple[FilesystemLevels, ...]:
    places = _journal_places(document)
    found: dict[FilesystemLevels, int] = {}
    for index, table in enumerate(document.filesystem):
        for combination in combinations(_filesystem_factors(table)):
            levels = {name: level for name, level in combination.items() if level is not None}
            place, is_external = levels.pop("journal_device", None), levels.get("journal") == "external"
            if is_external and place is None:
                if len(places) > 1:
                    reasons.append(
                        f"filesystem[{index}].journal_device: [journal_device] names a device and RAM; "
                        'write which: "ram" or "device"'
                    )
                    break
                (place,) = places
            elif place is not None and place not in places:
                key = "device" if place == JOURNAL_ON_DEVICE else "ram_size"
                reasons.append(
                    f"filesystem[{index}].journal_device: {place!r} needs {key} in [journal_device]"
                )
                break
            features = Levels({name: levels.pop(name) for name in FEATURES if name in levels})
            filesystem = FilesystemLevels(
                **levels, features=features, journal_device=place if is_external else None
            )
            if found.get(filesystem) == index:
                continue  # the place of a journal that is not external: no difference
            if filesystem in found:
                reasons.append(
                    f"filesystem[{index}]: makes the same variant as filesystem[{found[filesystem]}]; "
                    "take it out of one of them"
                )
                break
            found[filesystem] = index
            reasons += (f"filesystem[{index}]: {reason}" for reason in unsafe_options(filesystem))
    return tuple(found)


_Path = tuple[str | int, ...]


def narrowed(text: str, cell: Cell, dataset: Dataset, *, directory: Path) -> dict[str, Any]:
    """The values of a plan that comes to this cell and dataset and to no other; its files are read from `directory`.

    Each factor keeps its first level with which the plan, read as any, still has both. So nothing has to know what cells call a key.
    PlanError where the plan cannot be read here, or has no such cell.
    """

    def has(values: Mapping[str, Any]) -> bool:
        plan = load_plan(toml_text(values), source="plan.toml", directory=directory)
        return any(
            dataset.workload == workload.type and dataset.levels in workload.datasets
            for found in plan.cells()
            if _is(found, cell)
            for workload in plan.workloads_of(found)
        )

    values = parse_toml(text)
    if not has(values):
        raise PlanError(f"the plan has no cell {cell.id} with {dataset.words}")
    values = _with_one_alternative(values, has, ("workload",))
    # Its cells are named beside the plan's first one, which is another now.
    values = {**values, "workload": [{**values["workload"][0]}]}
    values["workload"][0].pop("cells", None)
    others = engine_tables().keys() - {section_of(cell.build.engine)}
    values = {name: each for name, each in values.items() if name not in others}
    while (path := next(_several(values), None)) is not None:
        values = _with_one_alternative(values, has, path)
    if not has(values):
        raise PlanError(f"the plan does not have cell {cell.id} alone")
    return values


def _is(plan_cell: Cell, cell: Cell) -> bool:
    """Whether a cell of the plan is the one; an executor chooses the kernel that the plan leaves open."""
    return cell == (
        plan_cell if plan_cell.kernel.release is not None else replace(plan_cell, kernel=cell.kernel)
    )


def _with_one_alternative(
    values: dict[str, Any], has: Callable[[Mapping[str, Any]], bool], path: _Path
) -> dict[str, Any]:
    """The values with the one alternative at `path` with which the plan has what is asked for."""
    reasons: tuple[str, ...] = (f"{path} has no level of the cell",)
    for alternative in _alternatives(_value_at(values, path)):
        candidate: dict[str, Any] = _with(values, path, alternative)
        try:
            if has(candidate):
                return candidate
        except PlanError as error:
            reasons = error.reasons
    raise PlanError(*reasons)


def _several(values: object, path: _Path = ()) -> Iterator[_Path]:
    """Paths at which the plan has several alternatives and a cell has one: varied levels, and tables of file systems."""
    if isinstance(values, dict):
        if "vary" in values or (len(path) == 0 and len(values.get("filesystem", ())) > 1):
            yield path or ("filesystem",)
            return
        for name, each in values.items():
            yield from _several(each, (*path, name))
    elif isinstance(values, list):
        for index, each in enumerate(values):
            yield from _several(each, (*path, index))


def _alternatives(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value["vary"]
    else:
        for table in value:
            yield [table]


def _value_at(values: Any, path: _Path) -> Any:
    for part in path:
        values = values[part]
    return values


def _with(values: Any, path: _Path, new: object) -> Any:
    """A copy of the values with another one at a path."""
    if not path:
        return new
    first, *rest = path
    changed: Any = dict(values) if isinstance(values, dict) else list(values)
    changed[first] = _with(values[first], tuple(rest), new)
    return changed
