"""A visit: what is asked of `bedplate run-visit`, and what it records.

`VisitRequest` is the one JSON document that goes in. What comes out is a directory:

    visit.json              VisitRecord
    logs/                   server log, kernel log, commands, tool output
    runs/<nn>-<name>/
        record.json         RunRecord
        course.jsonl        one Sample a second
        warmup.bin, measure.bin
                            transaction logs, condensed (see drivers/pgbench_log.c), of clients that have them
        …                   what else its workload keeps (docs/STUDY_FORMAT.md)
        logs/               what the workload's tool printed

Figures are made from it afterwards, on the host (room `figures`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from bedplate.model import codec
from bedplate.model.cell import Cell, Dataset, RunSpec
from bedplate.model.device_cache import PROTECTED, VOLATILE_512
from bedplate.model.devices import DeviceIdentity
from bedplate.model.free_space import FreeSpace
from bedplate.model.levels import Levels, Scalar
from bedplate.model.reason import Reason, because

# 2: a reason has a code and values beside its sentence. What is written is of this format, what is read of any known one.
FORMAT_VERSION = 2

KNOWN_FORMATS = (1, 2)

# How the dataset came onto the file system: loaded there, or restored from an image of one that was loaded once.
LOADED, RESTORED = "loaded", "restored"

# A RunRecord in the folder of its run.
RECORD_FILE = "record.json"

# The accelerator of a guest whose processors are QEMU's own programs.
EMULATED = "tcg"


class Outcome(StrEnum):
    """What became of a visit or a run."""

    COMPLETED = "completed"
    FAILED = "failed"
    NOT_RUN = "not_run"


class Validity(StrEnum):
    """Whether a completed run may be believed: separate from its outcome."""

    VALID = "valid"
    SUSPECT = "suspect"
    UNKNOWN = "unknown"

    @property
    def is_trusted(self) -> bool:
        """Whether figures may take part in a verdict. Where evidence is missing they may not: absent is not good."""
        return self is Validity.VALID


class CheckOutcome(StrEnum):
    """What became of the file system's own check (fsck) at the end of a visit."""

    CLEAN = "clean"
    ERRORS = "errors"
    # The device was busy, or the tool was missing: nothing is known of the file system.
    COULD_NOT_RUN = "could not run"


# Steps that single runs stop at, or the making of their figures: the rest of the visit went through.
STEPS_OF_SINGLE_RUNS = ("runs", "figures")

CHECK_STEP = "check"
VISIT_FAILED_AFTER_RUN = "visit-failed-after-run"

# Of a doubt as it stands beside each run; the visit's record has the whole output of its tools.
_REASON_CHARACTERS = 300


@dataclass(frozen=True)
class ScratchDevice:
    """What will be erased: a device by its stable name, or an image file of bedplate's own."""

    device: str | None = None
    """stable name of a device; null for an image file"""
    image_bytes: int | None = None
    """size of the image file"""
    image_directory: str | None = None
    """where the image file is"""
    erase: tuple[str, ...] = ()
    """devices that may be erased"""
    erase_foreign: bool = False
    """whether foreign data may be"""
    recorded: DeviceIdentity | None = None
    """what the study found at the device's name when it began: another device is refused; null for an image, and in older ones"""

    @property
    def is_image(self) -> bool:
        """True for an image file on a loop device."""
        return self.device is None

    def recorded_in(self, identities: Mapping[str, DeviceIdentity]) -> ScratchDevice:
        """The same, as the device that a study has recorded under its name; as it is where there is none."""
        known = None if self.device is None else identities.get(self.device)
        return self if known is None else replace(self, recorded=known)


@dataclass(frozen=True)
class EngineBuild:
    """A PostgreSQL that was built, as the visit needs it; `digest` covers everything that made it."""

    prefix: str
    """where it is installed"""
    version: str
    """full version"""
    block_size_bytes: int
    """database block"""
    wal_block_size_bytes: int
    """WAL block"""
    source_sha256: str
    """digest of the source's archive"""
    source_origin: str
    """where that came from"""
    compiler: str
    """compiler and its version"""
    configure_options: tuple[str, ...]
    """what it was configured with"""
    digest: str
    """digest of everything that made it"""
    commit: str | None = None
    """full hash of the commit that was built; null of a release"""
    patches: tuple[str, ...] = ()
    """patches that were applied, in order, each by its file's name and the first digits of its SHA-256"""


@dataclass(frozen=True)
class VisitKey:
    """Which visit: a cell and a dataset in a repetition, and which attempt at it."""

    cell: str
    """id of the cell"""
    dataset: str
    """id of the dataset"""
    repetition: int
    """from 1"""
    attempt: int
    """from 1"""
    canary: bool = False
    """whether it is a canary"""


@dataclass(frozen=True)
class VisitRequest:
    """Everything a visit needs."""

    format_version: int
    """2; 1 in older ones"""
    key: VisitKey
    """which visit"""
    cell: Cell
    """the cell"""
    dataset: Dataset
    """the dataset"""
    runs: tuple[RunSpec, ...]
    """its runs, in order"""
    scratch_device: ScratchDevice
    """what is erased"""
    build: EngineBuild | None
    """the PostgreSQL to use; null where none is needed"""
    native_drivers: Mapping[str, str]
    """built C drivers: name to path"""
    state_directory: str
    """where what must be undone is written down"""
    seed: int
    """what the visit draws from"""
    provenance: Mapping[str, str] = field(default_factory=dict)
    """machine and plan by digest, for the record"""
    journal_device: ScratchDevice | None = None
    """where the cell asks for an external journal; an image is memory then, in an `image_directory` on a tmpfs"""
    inputs: Mapping[str, str] = field(default_factory=dict)
    """what was made for the workloads beforehand: name to path (a folder of CSV files by the
    type of its workload; `pg_test_fsync`: the folder of a PostgreSQL's programs)"""
    expected_answers: Mapping[str, str] = field(default_factory=dict)
    """digests of right answers by the question, as earlier visits found them"""
    answer_sources: Mapping[str, str] = field(default_factory=dict)
    """which run of which visit found each of them"""
    needed_bytes: int | None = None
    """what the visit needs on the scratch device, about, where the plan fills its file system"""
    dataset_by: str = LOADED
    """`loaded`, or `restored` from the image of one that was loaded once"""


@dataclass(frozen=True)
class ReadBack:
    """One asked option and what was read back."""

    name: str
    """option, by its dotted name"""
    asked: Scalar | None
    """null where nothing was requested"""
    effective: Scalar | None
    """null where it could not be read"""
    source: str
    """where it was read"""
    matches: bool | None
    """null where there is nothing to judge"""


@dataclass(frozen=True)
class FlushCount:
    """Flushes that reached a device over some syncs."""

    device: str
    """`data` or `journal`"""
    pattern: str
    """`appending` or `overwriting`, each write with an fsync, or `logging`, an overwrite with an fdatasync"""
    calls: int
    """calls of fsync or fdatasync"""
    flushes: int
    """flushes that reached the device"""


@dataclass(frozen=True)
class Timing:
    """How long one step of the visit's life took."""

    step: str
    """name of the step"""
    seconds: float
    """on the monotonic clock"""


@dataclass(frozen=True)
class Sample:
    """Counters read at one moment; cumulative ones stay cumulative."""

    monotonic_s: float
    """monotonic clock"""
    wall_s: float
    """Unix time"""
    phase: str
    """name of the phase"""
    values: Mapping[str, float]
    """counters by name; absent where the machine has none"""


@dataclass(frozen=True)
class Phase:
    """A stretch of a run: `warmup` is recorded and not reported, `measure` is."""

    name: str
    """`warmup` and `measure`, or what its workload has in their place (“What each workload records”)"""
    start_monotonic_s: float
    """monotonic clock"""
    end_monotonic_s: float
    """monotonic clock"""
    start_wall_s: float
    """Unix time"""
    end_wall_s: float
    """Unix time"""


@dataclass(frozen=True)
class PhaseCounters:
    """The counters at both ends of one phase of a run that has several."""

    phase: str
    """name of the phase"""
    before: Sample
    """counters right before it"""
    after: Sample
    """counters right after it"""


@dataclass(frozen=True)
class TimedItem:
    """One thing of many that a run timed apart: a query, the load of a table, an index."""

    phase: str
    """`load`, `primary keys`, `foreign keys`, `indexes`; `queries`; `stream 1`, …"""
    item: str
    """name of the table, key or index; number of the query"""
    seconds: float | None
    """on the monotonic clock; null where it did not end"""
    limit_s: float | None = None
    """where it was stopped; null where it was not"""
    facts: Mapping[str, Scalar] = field(default_factory=dict)
    """of a query `rows`, `answer` (digest), `answer_key` (the question, in words), `plan` (hash)"""


@dataclass(frozen=True)
class RunRecord:
    """What happened in one run, before any figure is made of it."""

    spec: RunSpec
    """the run as it was requested"""
    outcome: Outcome
    reasons: tuple[Reason, ...] = ()
    """why not completed"""
    phases: tuple[Phase, ...] = ()
    """those that were reached, in order"""
    before: Sample | None = None
    """counters right before `measure`, or before the first phase of a run that has others"""
    after: Sample | None = None
    """counters right after `measure`, or after the last phase"""
    facts: Mapping[str, Scalar] = field(default_factory=dict)
    """single values that only the workload knows (“What each workload records”)"""
    commands: tuple[tuple[str, ...], ...] = ()
    """argument lists"""
    phase_counters: tuple[PhaseCounters, ...] = ()
    """counters at both ends of each phase, of a run that has others than `measure`"""
    items: tuple[TimedItem, ...] = ()
    """what was timed within phases: queries, tables, keys, indexes, tests"""


@dataclass(frozen=True)
class Durability:
    """What survives a power cut, for a volatile and for a protected device cache.

    Classes: `durable`, `bounded loss`, `unsafe`, `unknown`.
    """

    volatile_cache: str
    """class on a device whose cache a power cut empties; measured, of one with sectors of 4 KiB"""
    protected_cache: str
    """class where the cache survives"""
    basis: str
    """`declared` (flushes counted and settings read) or `measured` (power cuts)"""
    reasons: tuple[Reason, ...] = ()
    """why it is not `durable`"""
    without_waiting: Durability | None = None
    """of commits that do not wait for the medium, where a visit makes both kinds, as some tests of a microbenchmark do"""
    by_runs: tuple[Reason, ...] = ()
    """of the reasons, those that runs gave by what they did; they lower a measured class, too, as cuts
    asked about other transactions"""
    volatile_cache_512: str | None = None
    """measured class of one with sectors of 512 bytes; null where flushes and settings declare it, which say
    nothing of sectors"""

    def class_with(self, cache: str) -> str:
        """The class with a cache of `model.device_cache.CACHES`."""
        if cache == PROTECTED:
            return self.protected_cache
        if cache == VOLATILE_512 and self.volatile_cache_512 is not None:
            return self.volatile_cache_512
        return self.volatile_cache

    @property
    def tells_sectors(self) -> bool:
        """Whether a volatile cache is in another class with sectors of 512 bytes than with 4 KiB."""
        return self.class_with(VOLATILE_512) != self.volatile_cache


@dataclass(frozen=True)
class VisitRecord:
    """What happened in one visit."""

    format_version: int
    """2; 1 in older ones"""
    key: VisitKey
    """which visit"""
    cell: Cell
    """the cell as it was requested"""
    dataset: Dataset
    """the dataset"""
    outcome: Outcome
    reasons: tuple[Reason, ...]
    """why not completed"""
    failed_step: str | None
    """step at which it stopped"""
    started_wall_s: float | None
    """Unix time; null where an imported study's source does not say"""
    seconds: float
    """how long its own steps took"""
    boot_id: str
    """which boot"""
    executor: str
    """`local`, `qemu`, `slurm`; `imported` where others made the visit"""
    comparisons: tuple[ReadBack, ...] = ()
    """each asked option and what was read back"""
    effective_digest: str | None = None
    """digest of what was effective; equal digests are one configuration"""
    flush_counts: tuple[FlushCount, ...] = ()
    """flushes counted over fsyncs"""
    durability: Durability | None = None
    """what survives a power cut"""
    device_facts: Levels = field(default_factory=Levels)
    """what the kernel says of the device; `backing_physical_block_size` has the physical sectors of the disk
    under a loop device's file, `unknown` where nothing tells"""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """bytes by name: `filesystem_bytes`, `used_bytes`"""
    timings: tuple[Timing, ...] = ()
    """steps of the visit's life"""
    versions: Mapping[str, str] = field(default_factory=dict)
    """program to version"""
    kernel_messages: tuple[str, ...] = ()
    """warnings of the kernel meanwhile, but those of other loop devices, and those that name no device while a
    device was in use that is neither the visit's nor below its files; `logs/kernel.log` has all"""
    filesystem_check: str | None = None
    """`clean`, or what the check printed where it found errors"""
    commands: tuple[tuple[str, ...], ...] = ()
    """every command as an argument list"""
    runs: tuple[str, ...] = ()
    """names of the folders in `runs/`, in order"""
    build_digest: str | None = None
    """digest of the engine's build"""
    provenance: Mapping[str, str] = field(default_factory=dict)
    """what may be compared with what. `machine` and `plan` by digest, `executor`, `kernel`, `build`, `protocol`, `dataset` (`loaded`,
    `restored`; absent in older studies, which loaded). `tools`: versions of the library or tool that did the work, where it is no PostgreSQL. On a
    fleet also `node`, and `machine` is then the digest of all nodes. In a guest also `accelerator` (`kvm`, `tcg`),
    `qemu`, `kernel_digest` (image and modules), `host_kernel`, `disk`, `zfs` and `zfs_modules`. Not compared
    are `disk_sector_bytes` (physical sectors under the guest's disk, where they are known), and of an
    external journal `journal_disk` and `journal_disk_sector_bytes`"""
    whole_seconds: float | None = None
    """`seconds` with hand-over, a guest's boot and the making of figures; null in older studies"""
    filesystem_check_outcome: CheckOutcome | None = None
    """`clean`; `errors`: fsck ran and found some, so the durability class is unknown; `could not run`: nothing
    is known (device busy or gone, file system no longer mounted, the process of the check killed). Null where
    the visit did not come to it, and in older studies, of which `failed_step` = `check` beside a text means
    errors"""
    free_space: tuple[FreeSpace, ...] = ()
    """free space before the database, after its load and after the runs, where the plan asks for `aged` or `fill` (whatever the level).
    On a disk of the workload's own it is in the record of the run"""
    sealed: bool = False
    """whether `checksums.json` was written with it; false in older studies"""

    @property
    def found_errors(self) -> bool:
        """True where the check of the unmounted file system found errors; older records say so by their step."""
        if self.filesystem_check_outcome is not None:
            return self.filesystem_check_outcome is CheckOutcome.ERRORS
        return self.failed_step == CHECK_STEP and self.filesystem_check is not None

    @property
    def doubts(self) -> tuple[Reason, ...]:
        """What speaks against every run of the visit: it failed after them, and not in one of them alone."""
        if self.outcome is Outcome.COMPLETED or self.failed_step in STEPS_OF_SINGLE_RUNS:
            return ()
        where = f" at the step “{self.failed_step}”" if self.failed_step else ""
        words = " ".join(" ".join(map(str, self.reasons)).split()) or "no reason was recorded"
        if len(words) > _REASON_CHARACTERS:
            words = f"{words[: _REASON_CHARACTERS - 1]}…"
        step = self.failed_step
        return (because(VISIT_FAILED_AFTER_RUN, f"its visit failed after it{where}: {words}", step=step),)

    @property
    def accelerator(self) -> str | None:
        """`kvm` or `tcg` for a visit in a guest, None where the machine itself was measured."""
        return self.provenance.get("accelerator")

    @property
    def emulated(self) -> bool:
        """True where the processors were emulated: its speeds measure the emulator as well."""
        return self.accelerator == EMULATED


_ENOUGH = 2
_SHOWN_CHARACTERS = 300

# Times, process ids and device numbers differ between two tellings of one thing.
_NUMBER = re.compile(r"[0-9]+")


class AlikeFailures:
    """The failures of one start, as long as they are all alike."""

    def __init__(self) -> None:
        self._failed: list[VisitRecord] = []
        self._differ = False

    def add(self, record: VisitRecord) -> None:
        """One more visit that has ended."""
        if record.outcome is Outcome.COMPLETED or (
            self._failed and _signature(record) != _signature(self._failed[0])
        ):
            self._differ = True
        self._failed.append(record)

    def verdict(self, rest: Iterable[tuple[Cell, str, str | None]]) -> tuple[str, ...]:
        """Sentences if no visit of these cells, datasets and nodes is worth its time; empty if one is, or none is left."""
        if self._differ or len(self._failed) < _ENOUGH:
            return ()
        rest = tuple(rest)
        if not rest:
            return ()
        common = set.intersection(
            *({*_levels(record.cell, record.key.dataset, _node(record))} for record in self._failed)
        )
        if any(not common <= {*_levels(*each)} for each in rest):
            return ()
        first = self._failed[0]
        reason = first.reasons[0].sentence if first.reasons else "no reason was given"
        shown = reason if len(reason) <= _SHOWN_CHARACTERS else f"{reason[:_SHOWN_CHARACTERS]}…"
        return (
            f"the first {len(self._failed)} visits of this start failed alike, at {first.failed_step}: {shown}",
            f"the {len(rest)} that are left have all that those had in common, and were not tried",
            "mend the cause first; a plan that was changed needs another --study",
        )


def _signature(record: VisitRecord) -> tuple[str | None, tuple[tuple[str, str], ...]]:
    told = [(reason.code, reason.sentence) for reason in record.reasons]
    if node := _node(record):
        # Every node says its own name.
        told = [(code, re.sub(rf"(?<![\w.-]){re.escape(node)}(?![\w.-])", "", text)) for code, text in told]
    return record.failed_step, tuple((code, _NUMBER.sub("0", text)) for code, text in told)


def _node(record: VisitRecord) -> str | None:
    return record.provenance.get("node")


def _levels(cell: Cell, dataset: str, node: str | None) -> Iterator[tuple[str, str]]:
    """Every level of a cell by its place, as text, its dataset and where it is visited."""
    yield "dataset", dataset
    yield "node", str(node)
    yield from _leaves("", codec.to_json(cell))


def _leaves(place: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(f"{place}.{name}", inner)
    else:
        yield place, repr(value)
