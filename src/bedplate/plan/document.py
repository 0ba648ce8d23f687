"""The schema of a plan: one class per TOML table, one field per key.

A field's description says what is allowed; the errors quote it and docs/PLANS.md is held to the keys.
A factor is a tuple of levels; an empty one means that the key was left out.
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    create_model,
    model_validator,
)

from bedplate.model.filesystem import TRAITS
from bedplate.model.plan import VISITS_PER_BOOT
from bedplate.plan.fields import (
    FEATURES,
    CanaryEvery,
    Configuration,
    DatabaseBlock,
    DeviceName,
    Executor,
    Factor,
    FilesystemBlock,
    FilesystemType,
    Flag,
    ImageSize,
    Journal,
    JournalDevice,
    JournalSize,
    Kernel,
    Memory,
    MkfsOptions,
    MountOptions,
    Preallocation,
    ReadAhead,
    Repetitions,
    Scheduler,
    Seed,
    SettingName,
    SettingValue,
    SyncMode,
    ThrottleLevel,
    Title,
    Version,
    VisitsPerBoot,
    WalBlock,
)
from bedplate.plan.lmdb_runs import LMDB_PREALLOCATIONS, LMDB_SYNC_MODES
from bedplate.plan.settings import PAGE_COSTS, refused_settings
from bedplate.plan.slurm_table import SlurmTable
from bedplate.plan.table import Table, at_least_one
from bedplate.plan.words import joined, refused_mkfs_options, shown
from bedplate.plan.workload_tables import WORKLOAD_TABLES, AnyWorkload


def _types_with(feature: str) -> tuple[str, ...]:
    return tuple(kind for kind, traits in TRAITS.items() if feature in traits.features)


class ScratchDeviceTable(Table):
    """`[scratch_device]`: what will be erased, and how its queue is set."""

    image_size: ImageSize | None = Field(default=None, description='size of an image file, such as "6 GB"')
    device: DeviceName | None = Field(default=None, description="stable name of a device that will be erased")
    read_ahead: Factor[ReadAhead] = Field(
        default=(), description='read-ahead with its unit, such as "4096 kB"'
    )
    scheduler: Factor[Scheduler] = Field(default=(), description="I/O scheduler")
    throttle: Factor[ThrottleLevel] = Field(default=(), description="emulated slower device")

    @model_validator(mode="after")
    def _one_of_two(self) -> ScratchDeviceTable:
        if (self.image_size is None) == (self.device is None):
            raise ValueError('allowed is exactly one of image_size = "6 GB" and device = "/dev/disk/by-id/…"')
        return self


class MachineTable(Table):
    """`[machine]`: the machine around the device."""

    memory: Factor[Memory] = Field(default=(), description='limit of the memory, such as "2 GB"')
    kernel: Factor[Kernel] = Field(default=(), description='version of the kernel, such as "6.12", or a path')


class JournalDeviceTable(Table):
    """`[journal_device]`: what external journals stand on."""

    device: DeviceName | None = Field(default=None, description="stable name of a device that will be erased")
    ram_size: JournalSize | None = Field(
        default=None, description='size of a journal in RAM, such as "256 MB"'
    )

    @model_validator(mode="after")
    def _one_or_both(self) -> JournalDeviceTable:
        if self.device is None and self.ram_size is None:
            raise ValueError('allowed is device = "/dev/disk/by-id/…", ram_size = "256 MB", or both')
        return self


class GuestTable(Table):
    """`[guest]`: the guests of an executor that has them."""

    visits_per_boot: VisitsPerBoot = Field(default=VISITS_PER_BOOT, description="a whole number from 1")
    memory: Memory | None = Field(default=None, description='memory of a guest, such as "2 GB"')


# The factors that only some types have become keys by standing in the types' traits.
_feature_fields: dict[str, Any] = {
    name: (
        Factor[level],  # type: ignore[valid-type]
        Field(default=(), description=f"{', '.join(_types_with(name))} only"),
    )
    for name, level in FEATURES.items()
}
_Features: Any = create_model("_Features", __base__=Table, **_feature_fields)


class FilesystemTable(_Features):  # type: ignore[misc]
    """`[[filesystem]]`: one or more variants of a file system; a type's own factors are keys as well."""

    type: Factor[FilesystemType] = Field(description="type of the file system")
    block_size: Factor[FilesystemBlock] = Field(default=(), description="block size (btrfs: sector size)")
    recordsize: Factor[FilesystemBlock] = Field(default=(), description="what ZFS calls its block size")
    mount_options: Factor[MountOptions] = Field(default=(), description="list of mount options")
    mkfs_options: Factor[MkfsOptions] = Field(default=(), description="list of argument words for mkfs")
    barrier: Factor[Flag] = Field(
        default=(), description="true or false: whether fsync flushes the device's cache"
    )
    journal: Factor[Journal] = Field(default=(), description="internal, external, or none")
    journal_device: Factor[JournalDevice] = Field(default=(), description="ram, or device")

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


class PostgresqlTable(Table):
    """`[postgresql]`: what is built, and how the cluster is set up."""

    version: Factor[Version] = Field(default=("18",), description="version of PostgreSQL")
    block_size: Factor[DatabaseBlock] = Field(default=(8192,), description="database block size")
    wal_block_size: Factor[WalBlock] = Field(default=(8192,), description="WAL block size")
    data_checksums: Factor[Flag] = Field(default=(), description="true or false")
    scaled_block_settings: Factor[Flag] = Field(
        default=(False,), description="true or false: settings counted in blocks follow the block size"
    )
    scaled_page_costs: Factor[Flag] = Field(
        default=(False,), description="true or false: the planner's costs of a page follow the block size"
    )
    configuration: Factor[Configuration] = Field(default=(), description="path of an own postgresql.conf")
    settings: Annotated[dict[SettingName, Factor[SettingValue]], BeforeValidator(_dotted)] = Field(
        default_factory=dict, description="a table of PostgreSQL settings"
    )

    @model_validator(mode="after")
    def _fits_together(self) -> PostgresqlTable:
        reasons = [
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


def _is_positive(text: str) -> bool:
    try:
        return 0 < float(text) < float("inf")
    except ValueError:
        return False


class LmdbTable(Table):
    """`[lmdb]`: how LMDB's environment is opened."""

    sync: Factor[SyncMode] = Field(default=(), description=f"one of {', '.join(LMDB_SYNC_MODES)}")
    writemap: Factor[Flag] = Field(default=(), description="true or false: write through the memory map")
    readahead: Factor[Flag] = Field(
        default=(), description="true or false: the kernel's read-ahead of the map"
    )
    preallocation: Factor[Preallocation] = Field(
        default=(), description=f"one of {', '.join(LMDB_PREALLOCATIONS)}"
    )


class CanaryTable(Table):
    """`[canary]`: the visit that comes back through the study."""

    enabled: Flag = Field(default=True, description="true or false")
    every: CanaryEvery = Field(default=7200.0, description='time between two canaries, such as "2 h"')
    filesystem: FilesystemType | None = Field(default=None, description="type of the canary's file system")


class Document(Table):
    """The whole plan."""

    title: Title = Field(description="one line of text")
    repetitions: Repetitions = Field(default=5, description="a whole number from 1")
    seed: Seed = Field(default=1, description="a whole number")
    executor: Executor = Field(default="local", description="who runs the visits")
    scratch_device: ScratchDeviceTable = Field(description='a table with image_size = "6 GB" or device')
    machine: MachineTable = Field(default=MachineTable(), description="a table")
    journal_device: JournalDeviceTable | None = Field(
        default=None, description='a table with device, or ram_size = "256 MB"'
    )
    guest: GuestTable = Field(default=GuestTable(), description="a table")
    slurm: SlurmTable | None = Field(default=None, description='a table with nodes = ["n1", "n2"]')
    filesystem: Annotated[tuple[FilesystemTable, ...], AfterValidator(at_least_one)] = Field(
        description="one or more [[filesystem]] tables"
    )
    postgresql: PostgresqlTable = Field(default=PostgresqlTable(), description="a table")
    lmdb: LmdbTable = Field(default=LmdbTable(), description="a table")
    workload: Annotated[tuple[AnyWorkload, ...], AfterValidator(at_least_one)] = Field(
        description="one or more [[workload]] tables"
    )
    canary: CanaryTable = Field(default=CanaryTable(), description="a table")

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


# Where each table stands in a plan; array indices left out. Of a [[workload]] the type comes first.
TABLES: dict[tuple[str, ...], type[Table]] = {
    (): Document,
    ("scratch_device",): ScratchDeviceTable,
    ("machine",): MachineTable,
    ("journal_device",): JournalDeviceTable,
    ("guest",): GuestTable,
    ("slurm",): SlurmTable,
    ("filesystem",): FilesystemTable,
    ("postgresql",): PostgresqlTable,
    ("lmdb",): LmdbTable,
    **{("workload", *names): table for names, table in WORKLOAD_TABLES.items()},
    ("canary",): CanaryTable,
}
