"""The schema of a plan: one class per TOML table, one field per key.

A field's description says what is allowed; the errors quote it and docs/PLANS.md is held to the keys.
A factor is a tuple of levels; an empty one means that the key was left out.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    Field,
    create_model,
    model_validator,
)

from bedplate.model.filesystem import TRAITS
from bedplate.model.plan import VISITS_PER_BOOT, EngineSetup
from bedplate.plan.engine_table import EngineTable, engine_tables, plain_setup
from bedplate.plan.fields import (
    FEATURES,
    CanaryEvery,
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
    ListFactor,
    Memory,
    MkfsOptions,
    MountOptions,
    ReadAhead,
    Repetitions,
    Scheduler,
    Seed,
    ThrottleLevel,
    Title,
    VisitsPerBoot,
)
from bedplate.plan.slurm_table import SlurmTable
from bedplate.plan.table import PlanTable, at_least_one
from bedplate.plan.words import joined, refused_mkfs_options
from bedplate.plan.workload_tables import AnyWorkload, default_workloads, workload_tables


def _types_with(feature: str) -> tuple[str, ...]:
    return tuple(kind for kind, traits in TRAITS.items() if feature in traits.features)


class ScratchDeviceTable(PlanTable):
    """`[scratch_device]`: what will be erased, and how its queue is set."""

    image_size: ImageSize | None = Field(default=None, description='size of an image file, such as "6 GB"')
    device: DeviceName | None = Field(default=None, description="stable name of a device that will be erased")
    read_ahead: Factor[ReadAhead] = Field(
        default=(), description='read-ahead with its unit, such as "4096 kB"'
    )
    scheduler: Factor[Scheduler] = Field(default=(), description="I/O scheduler")
    throttle: Factor[ThrottleLevel] = Field(default=(), description="emulated slower device")

    @model_validator(mode="after")
    def _not_both(self) -> ScratchDeviceTable:
        if self.image_size is not None and self.device is not None:
            raise ValueError('allowed is one of image_size = "6 GB" and device = "/dev/disk/by-id/…"')
        return self


class MachineTable(PlanTable):
    """`[machine]`: the machine around the device."""

    memory: Factor[Memory] = Field(default=(), description='limit of the memory, such as "2 GB"')
    kernel: Factor[Kernel] = Field(default=(), description='version of the kernel, such as "6.12", or a path')


class JournalDeviceTable(PlanTable):
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


class GuestTable(PlanTable):
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
_Features: Any = create_model("_Features", __base__=PlanTable, **_feature_fields)


class FilesystemTable(_Features):  # type: ignore[misc]
    """`[[filesystem]]`: one or more variants of a file system; a type's own factors are keys as well."""

    type: Factor[FilesystemType] = Field(description="type of the file system")
    block_size: Factor[FilesystemBlock] = Field(default=(), description="block size (btrfs: sector size)")
    recordsize: Factor[FilesystemBlock] = Field(default=(), description="what ZFS calls its block size")
    mount_options: ListFactor[MountOptions] = Field(default=(), description="list of mount options")
    mkfs_options: ListFactor[MkfsOptions] = Field(default=(), description="list of argument words for mkfs")
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


class CanaryTable(PlanTable):
    """`[canary]`: the visit that comes back through the study."""

    enabled: Flag = Field(default=True, description="true or false")
    every: CanaryEvery = Field(default=7200.0, description='time between two canaries, such as "2 h"')
    filesystem: FilesystemType | None = Field(default=None, description="type of the canary's file system")


class Document(PlanTable):
    """The whole plan, without the tables of engines (`WHOLE` has them)."""

    title: Title | None = Field(default=None, description="one line of text")
    repetitions: Repetitions = Field(default=5, description="a whole number from 1")
    seed: Seed = Field(default=1, description="a whole number")
    executor: Executor = Field(default="local", description="who runs the visits")
    scratch_device: ScratchDeviceTable = Field(
        default=ScratchDeviceTable(), description='a table with image_size = "6 GB" or device'
    )
    machine: MachineTable = Field(default=MachineTable(), description="a table")
    journal_device: JournalDeviceTable | None = Field(
        default=None, description='a table with device, or ram_size = "256 MB"'
    )
    guest: GuestTable = Field(default=GuestTable(), description="a table")
    slurm: SlurmTable | None = Field(default=None, description='a table with nodes = ["n1", "n2"]')
    filesystem: Annotated[tuple[FilesystemTable, ...], AfterValidator(at_least_one)] = Field(
        description="one or more [[filesystem]] tables"
    )
    workload: Annotated[tuple[AnyWorkload, ...], AfterValidator(at_least_one)] = Field(
        default=default_workloads(), description="one or more [[workload]] tables"
    )
    canary: CanaryTable = Field(default=CanaryTable(), description="a table")

    def setup_of(self, engine: str) -> EngineSetup:
        """Every way in which the plan has an engine."""
        table: EngineTable | None = getattr(self, engine, None)
        if table is None:
            return plain_setup(engine)
        for workload in self.workload:
            if engine in workload.engines():
                table = table.with_settings(workload.settings_of_defaults())
        return table.setup()

    def setup_count(self, engine: str) -> int:
        """How many these are, before they are made."""
        table: EngineTable | None = getattr(self, engine, None)
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
