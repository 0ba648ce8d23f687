"""The schema of a plan: one class per TOML table, one field per key.

A field's description says what is allowed, and the errors quote it. Below the field is its row of docs/PLANS.md: its layer,
its values, its default and an example.
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
from bedplate.model.visit import LOADED
from bedplate.plan.engine_table import EngineTable, engine_tables, plain_setup, section_of
from bedplate.plan.fields import (
    FEATURES,
    Aged,
    CanaryEvery,
    DatasetBy,
    DeviceName,
    Executor,
    Factor,
    FilesystemBlock,
    FilesystemType,
    Fill,
    Flag,
    ImageSize,
    Journal,
    JournalDevice,
    JournalSize,
    LatencyLevel,
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
from bedplate.plan.trees.kernels import Kernels
from bedplate.plan.words import joined, refused_mkfs_options
from bedplate.plan.workload_tables import AnyWorkload, default_workloads, workload_tables


def _types_with(feature: str) -> tuple[str, ...]:
    return tuple(kind for kind, traits in TRAITS.items() if feature in traits.features)


class ScratchDeviceTable(PlanTable):
    """`[scratch_device]`: what will be erased, and how its queue is set."""

    image_size: ImageSize | None = Field(default=None, description='size of an image file, such as "6 GB"')
    """– | 512 MB or more: an image file of bedplate's own on a loop device | what the largest visit needs | `"6 GB"`"""
    device: DeviceName | None = Field(default=None, description="stable name of a device that will be erased")
    """– | a stable name: `/dev/disk/by-id/…`, `by-path`, `by-partuuid`, `by-partlabel`, `/dev/mapper/…`, `/dev/md/…`,
    `/dev/GROUP/VOLUME` | – | `"/dev/disk/by-id/ata-…"`"""
    read_ahead: Factor[ReadAhead] = Field(
        default=(), description='read-ahead with its unit, such as "4096 kB"'
    )
    """device | a size with its unit, whole kB | the kernel's | `"4096 kB"`"""
    scheduler: Factor[Scheduler] = Field(default=(), description="I/O scheduler")
    """device | `none`, `mq-deadline`, `kyber`, `bfq` | the kernel's | `"none"`"""
    throttle: Factor[ThrottleLevel] = Field(default=(), description="emulated slower device")
    """device | a name, or a table of limits (below) | none | `"hdd-7200"`"""
    latency: Factor[LatencyLevel] = Field(default=(), description="emulated device with latency")
    """device | a name, or a table of times (below); needs `image_size`, which is in memory then | none | `"gp3"`"""

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

    memory: Factor[Memory] = Field(default=(), description='limit of the memory, such as "2 GB"')
    """device | 256 MB or more, less than the machine has: a cgroup limits the server and its page cache; a guest is that large | no
    limit | `"2 GB"`"""
    kernel: Kernels = Field(
        default=(), description='version of the kernel, such as "6.12", a path, or a tree and its commit'
    )
    """kernel | a version, a release, the path of a kernel of your own, or a tree: `{ tree = "~/src/linux", commit = { vary = ["v7.0", "v7.1"] },
    config = "guest" }` ([KERNELS.md](KERNELS.md)) | the running one; for guests the executor's own | `{ vary = ["6.1", "6.12"] }`"""


class JournalDeviceTable(PlanTable):
    """`[journal_device]`: what external journals stand on."""

    device: DeviceName | None = Field(default=None, description="stable name of a device that will be erased")
    """– | a stable name, as in `[scratch_device]` | – | `"/dev/disk/by-id/nvme-…"`"""
    ram_size: JournalSize | None = Field(
        default=None, description='size of a journal in RAM, such as "256 MB"'
    )
    """– | 64 MB or more: a journal in memory, gone at a power cut, and with it the file system | `"256 MB"` without this table |
    `"512 MB"`"""

    @model_validator(mode="after")
    def _one_or_both(self) -> JournalDeviceTable:
        if self.device is None and self.ram_size is None:
            raise ValueError('allowed is device = "/dev/disk/by-id/…", ram_size = "256 MB", or both')
        return self


class GuestTable(PlanTable):
    """`[guest]`: the guests of an executor that has them."""

    visits_per_boot: VisitsPerBoot = Field(default=VISITS_PER_BOOT, description="a whole number from 1")
    """– | 1 to 1000 visits that share a boot at most ([the order](#the-order)) | `8` | `1`"""
    memory: Memory | None = Field(default=None, description='memory of a guest, such as "2 GB"')
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
    block_size: Factor[FilesystemBlock] = Field(default=(), description="block size (btrfs: sector size)")
    """filesystem | a power of two that some type has; on Btrfs the sector size, on ZFS the recordsize | mkfs's own | `"4 kB"`"""
    recordsize: Factor[FilesystemBlock] = Field(default=(), description="what ZFS calls its block size")
    """filesystem | ZFS's own name of `block_size` | ZFS's own | `"8 kB"`"""
    mount_options: ListFactor[MountOptions] = Field(default=(), description="list of mount options")
    """filesystem | a list of options | `[]` | `["noatime"]`"""
    mkfs_options: ListFactor[MkfsOptions] = Field(default=(), description="list of argument words for mkfs")
    """filesystem | a list of argument words, an option and its argument being two | `[]` | `["-O", "^metadata_csum"]`"""
    barrier: Factor[Flag] = Field(
        default=(), description="true or false: whether fsync flushes the device's cache"
    )
    """filesystem | `true`: fsync must flush the device; `false`: it must not. Either is proved by counting flushes | not judged |
    `{ vary = [true, false] }`"""
    journal: Factor[Journal] = Field(default=(), description="internal, external, or none")
    """filesystem | `internal`; `external`: on a device of its own (ext3, ext4, XFS, JFS, ReiserFS; a log device of ZFS); `none`
    (ext4) | `internal`, where there is one | `{ vary = ["internal", "external"] }`"""
    journal_device: Factor[JournalDevice] = Field(default=(), description="ram, or device")
    """filesystem | where an external journal is: `ram`, `device` | what `[journal_device]` has | `"ram"`"""

    fill: Factor[Fill] = Field(default=(), description=f"{', '.join(_types_with('fill'))} only")
    """filesystem | `no`, or how full the file system is with the database, as df has it: `50 %`, `60 %`, `70 %`, `75 %`, `80 %`, `85 %`,
    `90 %`, `95 %`. Files that nobody reads fill it, most of them before the load (ext4, XFS, Btrfs) | `"no"` | `{ vary = ["no", "90 %"] }`"""
    aged: Factor[Aged] = Field(default=(), description=f"{', '.join(_types_with('aged'))} only")
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

    enabled: Flag = Field(default=True, description="true or false")
    """– | `true`, `false` | `true` | `false`"""
    every: CanaryEvery = Field(default=7200.0, description='time between two canaries, such as "2 h"')
    """– | a time of at least a minute | `"2 h"` | `"30 min"`"""
    filesystem: FilesystemType | None = Field(default=None, description="type of the canary's file system")
    """– | a type, as in `[[filesystem]]` | `ext4` if a cell has it, else the first cell's | `"xfs"`"""


class Document(PlanTable):
    """The whole plan, without the tables of engines (`WHOLE` has them)."""

    title: Title | None = Field(default=None, description="one line of text")
    """– | one line of at most 200 characters | workloads, file systems and kernels | `"Barriers on my laptop"`"""
    repetitions: Repetitions = Field(default=5, description="a whole number from 1")
    """– | 1 to 1000 passes over all cells, each in an order of its own | `5` | `2`"""
    seed: Seed = Field(default=1, description="a whole number")
    """– | a whole number from 0; decides the order | `1` | `2011`"""
    executor: Executor = Field(default="local", description="who runs the visits")
    """– | `local`, `qemu`, `slurm`, `auto` ([where visits run](#where-visits-run)) | `"local"` | `"auto"`"""
    dataset: DatasetBy = Field(default=LOADED, description="whether a visit loads its dataset")
    """– | `loaded`: each visit loads its dataset; `restored`: it is loaded once on each file system and build, kept in the cache, and copied
    onto the image of every visit ([restored datasets](method/filesystems.md#restored-datasets)) | `"loaded"` | `"restored"`"""
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
