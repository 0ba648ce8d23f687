"""Cells: one combination of levels from the device to the cluster, and their identity.

A field that is None was not asked for: the file system's, the kernel's or the engine's own
default holds, and what that is gets read back, not assumed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

from bedplate import registry
from bedplate.model.codec import to_json
from bedplate.model.devices import Latency
from bedplate.model.levels import Levels, Scalar, as_in_a_plan
from bedplate.units import format_size

# How commits wait is left to what each test is called, as in the published microbenchmark.
BY_TEST = "by-test"


@dataclass(frozen=True)
class EngineModel:
    """An engine whose commits wait for the device; others say so.

    `label` is what a person calls it; `plan_words` says how a plan begins the names of its cells' levels, by how cells do.
    `is_built`: it is built beforehand, so that its version and what is compiled in are levels of a cell.
    `making` is what the step of a visit is called that makes a server's data directory. `block_level` is the level of a cell that is its block size, chosen when it is built, made or opened; None where there is
    none to choose. `before_block` stands before it where a cell is named by that alone. So many power cuts `cuts_per_s` are
    replayed, on two idle cores. `configuration_words` is what a text beside its settings is called. A cell's name has its settings but the
    `unnamed_settings`.
    `commit_setting` is what says how a commit waits, of an engine of which each test of a microbenchmark may have another
    (`BY_TEST`); `commit_modes` are its values in tests that are called synchronous, and in the others. `more_tests` are those of a
    microbenchmark that not every engine has. `library_settings` say in cells which library it is, where a plan may name one.
    """

    label: str
    plan_words: Mapping[str, str] = field(default_factory=dict)
    is_built: bool = False
    making: str = "initdb"
    block_level: str | None = None
    before_block: str | None = None
    # Of PostgreSQL: 70 took two workers 20 to 24 s, half of which they waited; a third uses that time. Not measured.
    cuts_per_s: float = 4.0
    configuration_words: str = "own configuration"
    unnamed_settings: frozenset[str] = frozenset()
    commit_setting: str = ""
    commit_modes: tuple[str, str] = ("", "")
    more_tests: tuple[str, ...] = ()
    library_settings: tuple[str, ...] = ()

    def block_bytes(self, cell: Cell) -> int | None:
        """The database block size of a cell; None where there is none to choose, or none was asked for."""
        found = None if self.block_level is None else cell.levels.get(self.block_level)
        return found if isinstance(found, int) else None

    def waits(self, settings: Levels, in_force: Mapping[str, str]) -> bool:  # noqa: ARG002 -- of engines that may not
        """Whether a commit waits for a sync, by what was read back (`in_force`, by name), else by what the cell asks for."""
        return True

    def lets_one_in(self, settings: Levels) -> str | None:  # noqa: ARG002 -- of engines that may
        """The setting, as a plan says it, by which one connection keeps all others out; None where several may come."""
        return None

    def commit_mode(self, settings: Levels, *, synchronous: bool = True) -> str:
        """How a commit waits, by the setting's value: of a test that is called synchronous, or of another."""
        asked = settings.text(self.commit_setting) or BY_TEST
        return self.commit_modes[0 if synchronous else 1] if asked == BY_TEST else asked

    def waits_in_test(self, settings: Levels, *, synchronous: bool) -> bool:
        """Whether the commits of a test wait for a sync."""
        mode = self.commit_mode(settings, synchronous=synchronous)
        return self.waits(settings.updated(**{self.commit_setting: mode}), {})


def database_block_levels() -> frozenset[str]:
    """What the engines call the database block size, each a level by its dotted name."""
    named = (engine_model(engine).block_level for engine in registry.ENGINES)
    return frozenset(name for name in named if name is not None)


def library_levels() -> frozenset[str]:
    """What says in cells which library an engine is, each a level by its dotted name."""
    named = (engine_model(engine).library_settings for engine in registry.ENGINES)
    return frozenset(f"cluster.settings.{name}" for names in named for name in names)


def engine_model(engine: str) -> EngineModel:
    """That of an engine; PlanError lists the known ones."""
    model: EngineModel = registry.engine_part(engine, "model")
    return model


# What a plan writes for the changes that are not committed.
WORKING_TREE = "working tree"

# The setting of cells whose library is made from a tree.
SOURCE = "source"

# Where a study notes them, beside its plan.
SOURCES = "sources"

# The fact of how many files of a work tree git does not know: they are left out.
UNTRACKED = "untracked"

# Enough to tell the commits of any one history apart; Linux needs 12 today.
_DIGITS = 12

_SUBJECT_CHARACTERS = 60
_COMMIT_LEVEL = re.compile(r"[0-9a-f]{12}(?:\+[0-9a-f]{8})?(?: .*)?", re.ASCII | re.DOTALL)


@dataclass(frozen=True)
class SourceCommit:
    """A commit as git named it when it was asked."""

    hash: str
    """full hash"""
    subject: str
    """first paragraph of its message, printable"""
    describe: str | None = None
    """by the nearest tag, as `git describe --tags`; null where the tree has no tag before it"""

    @property
    def level(self) -> str:
        """`0123456789ab Speed up the checkpointer`: what it is called in cells."""
        return f"{self.hash[:_DIGITS]} {_short(self.subject)}".rstrip()


@dataclass(frozen=True)
class SourceTree:
    """What a plan's tree and commit stood for when it was read: a study keeps it, and stays with it.

    `facts` are what the engine reads from the commit, as its version. `changes` is a patch: what the work tree had beside the
    commit; None where a commit was asked for.
    """

    tree: str
    """the tree as the plan has it"""
    path: str
    """where it lay, absolute"""
    revision: str
    """the commit as the plan has it"""
    commit: SourceCommit
    facts: Mapping[str, str] = field(default_factory=dict)
    changes: str | None = None

    @property
    def level(self) -> str:
        """What it is called in cells: the commit, or `0123456789ab+89abcdef working tree on …`."""
        if self.changes is None:
            return self.commit.level
        digits = f"{self.commit.hash[:_DIGITS]}+{_sha256(self.changes)[:8]}"
        return f"{digits} {WORKING_TREE} on {_short(self.commit.subject)}".rstrip()


@dataclass(frozen=True)
class KernelSource:
    """A kernel that is built from a commit. `fragment` is the text of what is put on top of the shipped configuration, `name` its file's."""

    tree: SourceTree
    name: str | None = None
    fragment: str | None = None

    @property
    def level(self) -> str:
        """What it is called in cells: the commit, and the fragment behind it where there is one."""
        if self.fragment is None:
            return self.tree.level
        return f"{self.tree.level} ({patch_level(self.name or '', self.fragment)})"

    @property
    def digits(self) -> str:
        """What tells the commit from all others, with changes beside it."""
        return commit_digits(self.tree.level)


@dataclass(frozen=True)
class PlanSources:
    """Trees and patches that a plan names, each by its level: `trees` where they lie, `patches` their texts, `kernels` what is built as one."""

    trees: Mapping[str, SourceTree] = field(default_factory=dict)
    patches: Mapping[str, str] = field(default_factory=dict)
    kernels: Mapping[str, KernelSource] = field(default_factory=dict)


def is_commit_level(text: str) -> bool:
    """Whether a level is a commit's, and no release or path."""
    return _COMMIT_LEVEL.fullmatch(text) is not None


def patch_level(name: str, text: str) -> str:
    """`v3-0001-faster.patch 0123456789ab`: the file's name, and the first digits of what it holds."""
    return f"{name} {_sha256(text)[:_DIGITS]}"


def commit_digits(level: str) -> str:
    """What tells a commit from all others in its level: the first digits of the hash, with those of changes beside it."""
    return level.partition(" ")[0]


def patch_digits(level: str) -> str:
    """The same of a patch: the first digits of its SHA-256."""
    return level.rpartition(" ")[2]


def _short(subject: str) -> str:
    if len(subject) <= _SUBJECT_CHARACTERS:
        return subject
    return f"{subject[: _SUBJECT_CHARACTERS - 1].rstrip()}…"


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


# The table of defaults that identities are made under. A new factor gets a None default and
# leaves every old identity alone; a changed default needs a new version here.
IDENTITY_VERSION = 1

# Where an external journal stands: in memory, or on the plan's second scratch device.
JOURNAL_IN_RAM = "ram"

JOURNAL_ON_DEVICE = "device"

# How a server's pages are written: by itself, with the kernel asked to tear none, or as by itself and counted.
UNTORN_LEVELS = UNTORN_OFF, UNTORN_ON, UNTORN_COUNT = "off", "on", "count"

# Where a server's programs come from, beside the folder of one that is installed: compiled for its cells, or the distribution's packages.
SERVER_KINDS = BUILT, PACKAGED = "built", "packaged"

# Levels of a dataset that no label has.
_NOT_READ = ("_text", "_sha256", "_fixed")


@dataclass(frozen=True)
class Throttle:
    """An emulated slower device: limits that the kernel's block throttling enforces.

    Always labelled as emulated: IOPS are limited, the latency of a flush is not.
    """

    name: str
    """the plan's word for it"""
    read_iops: int | None = None
    """limit"""
    write_iops: int | None = None
    """limit"""
    read_bytes_per_s: int | None = None
    """limit"""
    write_bytes_per_s: int | None = None
    """limit"""


@dataclass(frozen=True)
class DeviceLevels:
    """Layer `device`: the scratch device and the memory of the machine around it."""

    memory_bytes: int | None = None
    """memory that the cell is limited to"""
    throttle: Throttle | None = None
    """emulated slower device"""
    read_ahead_kb: int | None = None
    """read-ahead of the queue"""
    scheduler: str | None = None
    """I/O scheduler"""
    latency: Latency | None = None
    """emulated device with latency"""


@dataclass(frozen=True)
class KernelLevels:
    """Layer `kernel`: None is the running kernel, or the one that the executor takes by itself.

    Else a version (`6.12` is any release of it, `6.12.95+deb12-amd64` just that one), the path of a
    kernel of the user's own, or a commit of a tree, which is built.
    """

    release: str | None = None
    """version, release, path, or commit by its first digits and its subject; null is the running kernel, or the executor's own"""

    def takes(self, release: str) -> bool:
        """Whether a kernel that calls itself so is the one asked for; a path is not known by its name."""
        asked = self.release
        if asked is None or asked == release:
            return True
        # `6.1` is 6.1.0 and 6.1-rc3, and not 6.12.
        return release.startswith(asked) and not release[len(asked)].isdigit() and not self.is_path

    @property
    def is_path(self) -> bool:
        """True for a kernel of the user's own, named by its path."""
        return self.release is not None and self.release.startswith("/")

    @property
    def is_built(self) -> bool:
        """True for a kernel that is built from a commit."""
        return self.release is not None and is_commit_level(self.release)


@dataclass(frozen=True)
class FilesystemLevels:
    """Layer `filesystem`."""

    type: str
    """`ext4`, `xfs`, …"""
    block_size_bytes: int | None = None
    """block (btrfs: sector) size"""
    mkfs_options: tuple[str, ...] = ()
    """further options of mkfs"""
    mount_options: tuple[str, ...] = ()
    """further mount options"""
    barrier: bool | None = None
    """whether fsync flushes the device's cache"""
    journal: str | None = None
    """`none`, or what else was requested"""
    features: Levels = field(default_factory=Levels)
    """what only this type knows: `data`, `nodatacow`"""
    journal_device: str | None = None
    """where an external journal is: `ram`, or `device` for the plan's second scratch device; null without one"""


@dataclass(frozen=True)
class BuildLevels:
    """Layer `build`: what must be compiled in.

    The version is the engine's and the blocks are its pages. Of an engine that is used as it is found nothing is built in more
    than one way: `unbuilt` makes its levels.
    """

    engine: str = next(iter(registry.ENGINES))
    """`postgresql`"""
    version: str = "18"
    """major or full version"""
    block_size_bytes: int = 8192
    """database block"""
    wal_block_size_bytes: int = 8192
    """WAL block"""
    source_commit: str | None = None
    """the commit that is built, by its first digits and its subject; null where a release is. `plan/sources/` has all of it. Its
    version follows from it, and is no level then"""
    patches: tuple[str, ...] = ()
    """patches that are applied first, in order, each by its file's name and its first digits"""
    server: str = BUILT
    """`built` here, `packaged` by the distribution, or the folder of an installed server"""

    @classmethod
    def unbuilt(cls, engine: str) -> BuildLevels:
        """The levels of an engine that nothing is built of, or of none."""
        return cls(engine, version="", block_size_bytes=0, wal_block_size_bytes=0)

    @property
    def own_levels(self) -> frozenset[str]:
        """Its fields that are levels: of an engine that is not built none but the engine, of a commit all but its version."""
        if not self.is_built:
            return frozenset({"engine"})
        names = frozenset(entry.name for entry in fields(self))
        return names if self.source_commit is None else names - {"version"}

    @property
    def is_built(self) -> bool:
        """Whether the engine is built beforehand, so that its version and what is compiled in are levels."""
        return engine_model(self.engine).is_built

    @property
    def is_fetched(self) -> bool:
        """Whether somebody else compiled it, and packages bring it here."""
        return self.server == PACKAGED or not self.is_built


@dataclass(frozen=True)
class ClusterLevels:
    """Layer `cluster`: what `initdb` and the server's configuration decide."""

    data_checksums: bool | None = None
    """asked at initdb"""
    settings: Levels = field(default_factory=Levels)
    """GUCs by name"""
    scaled_block_settings: bool = False
    """whether settings counted in blocks follow the block size"""
    configuration: str | None = None
    """text of an own postgresql.conf, read before `settings`, which win over it"""
    scaled_page_costs: bool = False
    """whether the planner's page costs follow the block size, so that a byte costs it the same at every one"""
    untorn_writes: str = UNTORN_OFF
    """`on`: each page is written whole or not at all (RWF_ATOMIC); `count`: as without it, and counted"""
    wal_segment_bytes: int | None = None
    """size of a file of the WAL, asked at initdb"""


@dataclass(frozen=True)
class Cell:
    """One combination of levels from device to cluster: one square of a heat map."""

    device: DeviceLevels
    """layer `device`"""
    kernel: KernelLevels
    """layer `kernel`"""
    filesystem: FilesystemLevels
    """layer `filesystem`"""
    build: BuildLevels
    """layer `build`"""
    cluster: ClusterLevels
    """layer `cluster`"""

    # A study asks each cell for these thousands of times.
    @cached_property
    def levels(self) -> Levels:
        """Every asked level by its dotted name, `filesystem.type` first of all; defaults left out."""
        return Levels(_requested_levels(self))

    @cached_property
    def id(self) -> str:
        """A readable slug plus a hash of the asked, non-default levels."""
        return f"{self.slug}-{_hash({'version': IDENTITY_VERSION, 'levels': dict(self.levels)})}"

    @property
    def database_block_bytes(self) -> int | None:
        """The database block size, wherever it is chosen; None for an engine that has none to choose."""
        return engine_model(self.build.engine).block_bytes(self)

    @property
    def slug(self) -> str:
        """What a person would call the cell, fit for a file name."""
        parts = [self.filesystem.type]
        if self.filesystem.block_size_bytes is not None:
            parts.append(f"fs{_short_size(self.filesystem.block_size_bytes)}")
        model = engine_model(self.build.engine)
        block_bytes = self.database_block_bytes
        if block_bytes is not None and model.before_block is not None:
            parts.append(f"{model.before_block}{_short_size(block_bytes)}")
        else:
            parts.append(self.build.engine)
            parts += [
                _feature(name, value, "-")
                for name, value in self.cluster.settings.items()
                if name not in model.unnamed_settings
            ]
        if self.filesystem.barrier is not None:
            parts.append("barrier" if self.filesystem.barrier else "nobarrier")
        if self.filesystem.journal is not None:
            parts.append(f"journal-{self.filesystem.journal}")
        if self.filesystem.journal_device is not None:
            parts.append(self.filesystem.journal_device)
        parts += [_feature(name, value, "-") for name, value in self.filesystem.features.items()]
        return _fit_for_file_name("-".join(parts))

    @property
    def variant(self) -> str:
        """The file system without its block size, as a heat map's title: `ext4 data=journal nobarrier`."""
        parts = [self.filesystem.type]
        parts += [_feature(name, value, "=") for name, value in self.filesystem.features.items()]
        if self.filesystem.journal is not None:
            parts.append(f"journal={self.filesystem.journal}")
        if self.filesystem.journal_device is not None:
            parts.append(f"on {self.filesystem.journal_device}")
        if self.filesystem.barrier is not None:
            parts.append("barrier" if self.filesystem.barrier else "nobarrier")
        parts += list(self.filesystem.mount_options)
        parts += list(self.filesystem.mkfs_options)
        return " ".join(parts)


@dataclass(frozen=True)
class Dataset:
    """Layer `load`: what is loaded once per visit, e.g. a database at scale 300."""

    workload: str
    """its type in a plan (“What each workload records”)"""
    levels: Levels = field(default_factory=Levels)
    """`scale`, `scale_factor`, …, by its workload (“What each workload records”)"""

    @property
    def id(self) -> str:
        """A readable slug plus a hash, like a cell's."""
        told = (f"{name}-{value}" for name, value in self.readable.items())
        words = "-".join([self.workload, *told])
        content = {"version": IDENTITY_VERSION, "workload": self.workload, "levels": dict(self.levels)}
        return f"{_fit_for_file_name(words)}-{_hash(content)}"

    @property
    def readable(self) -> Mapping[str, Scalar]:
        """Its levels without those that people do not read: texts, checksums, and what is fixed in files of somebody's."""
        return {name: value for name, value in self.levels.items() if not name.endswith(_NOT_READ)}

    @property
    def words(self) -> str:
        """What a person would call it: `power_cut clients 4 image 1 GiB`; two may have the same words."""
        return " ".join([self.workload, *self.levels_in_words])

    @property
    def levels_in_words(self) -> tuple[str, ...]:
        """What it is called by besides its workload: `scale 20`, `file 2 GiB`."""
        told = (_in_words(name, value) for name, value in self.readable.items())
        return tuple(words for words in told if words)


@dataclass(frozen=True)
class RunSpec:
    """Layer `measure`: one run on a dataset. `name` is unique within a visit's runs."""

    name: str
    """unique within a visit"""
    workload: str
    """its type in a plan (“What each workload records”)"""
    levels: Levels = field(default_factory=Levels)
    """`script`, `clients`, `kind`, …, by its workload (“What each workload records”)"""

    @property
    def id(self) -> str:
        """The name is how a plan tells its runs apart; the hash is how studies do."""
        return f"{_fit_for_file_name(self.name)}-{_hash({'w': self.workload, 'levels': dict(self.levels)})}"


def type_of_cell(name: str) -> str:
    """The type of its file system, with which the name of a cell begins."""
    return name.partition("-")[0]


def digest(value: Any, *, length: int = 16) -> str:
    """A short SHA-256 of a record's canonical JSON."""
    canonical = json.dumps(to_json(value), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()[:length]


def _in_words(name: str, value: Scalar) -> str:
    """`file 2 GiB`; nothing of what was asked for where what it came to stands beside it."""
    if name.endswith("_asked"):
        return ""
    if name.endswith("_bytes") and not isinstance(value, str):
        return f"{name.removesuffix('_bytes')} {format_size(value)}"
    return name if value is True else f"{name} {as_in_a_plan(value)}"


def _feature(name: str, value: Scalar, equals: str) -> str:
    """`data=journal`; a switch by its name, `nodatacow` and its opposite `datacow`."""
    if value is True:
        return name
    if value is False:
        return name.removeprefix("no") if name.startswith("no") else f"no{name}"
    return f"{name}{equals}{value}"


def _hash(content: Any) -> str:
    return digest(content, length=8)


def _requested_levels(cell: Cell) -> dict[str, Scalar]:
    found: dict[str, Scalar] = {}
    for layer in fields(cell):
        record = getattr(cell, layer.name)
        for entry in fields(record):
            value = getattr(record, entry.name)
            if entry.name != "type" and value == _default(entry):
                continue
            if record is cell.build and entry.name not in cell.build.own_levels:
                continue
            found.update(_leaf_levels(f"{layer.name}.{entry.name}", value))
    return found


def _default(entry: Any) -> Any:
    return entry.default_factory() if callable(entry.default_factory) else entry.default


def _leaf_levels(name: str, value: Any) -> dict[str, Scalar]:
    if isinstance(value, Levels):
        stem = name.removesuffix(".features")
        return {f"{stem}.{key}": level for key, level in value.items()}
    if isinstance(value, Throttle | Latency):
        limits = {key: level for key, level in to_json(value).items() if level is not None and key != "name"}
        # The model of a disk has levels of its own.
        disk = limits.pop("disk", {})
        limits |= {f"disk.{key}": level for key, level in disk.items() if level is not None}
        return {name: value.name, **{f"{name}.{key}": level for key, level in limits.items()}}
    if isinstance(value, tuple):
        return {name: ",".join(value)}
    return {name: value}


def _short_size(size_bytes: int) -> str:
    return format_size(size_bytes).replace(" ", "").replace("KiB", "k").replace("MiB", "M")


def _fit_for_file_name(text: str) -> str:
    """At most 60 characters that need no quoting anywhere; the hash keeps two cut names apart."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-.")[:60].rstrip("-.") or "x"
