"""A visit: what is asked of `bedplate run-visit`, and what it records.

`VisitRequest` is the one JSON document that goes in. What comes out is a directory:

    visit.json              VisitRecord
    logs/                   server log, kernel log, commands, tool output
    runs/<nn>-<name>/
        record.json         RunRecord
        course.jsonl        one Sample a second
        transactions.bin    the transaction log, condensed (see drivers/pgbench_log.c)
        plans.json          the plans of its queries (model/query_plan.py)
        lmdb/<test>.json    what LMDB's driver says of a test (drivers/lmdb_bench.c)
        logs/               what the workload's tool printed

Figures are made from it afterwards, on the host (room `figures`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from bedplate.model.cell import Cell, Dataset, RunSpec
from bedplate.model.device_cache import PROTECTED, VOLATILE_512
from bedplate.model.levels import Levels, Scalar

FORMAT_VERSION = 1
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
# Of a doubt as it stands beside each run; the visit's record has the whole output of its tools.
_REASON_CHARACTERS = 300


@dataclass(frozen=True)
class ScratchDevice:
    """What will be erased: a device by its stable name, or an image file of bedplate's own."""

    device: str | None = None
    image_bytes: int | None = None
    image_directory: str | None = None
    erase: tuple[str, ...] = ()
    erase_foreign: bool = False

    @property
    def is_image(self) -> bool:
        """True for an image file on a loop device."""
        return self.device is None


@dataclass(frozen=True)
class EngineBuild:
    """A PostgreSQL that was built, as the visit needs it; `digest` covers everything that made it."""

    prefix: str
    version: str
    block_size_bytes: int
    wal_block_size_bytes: int
    source_sha256: str
    source_origin: str
    compiler: str
    configure_options: tuple[str, ...]
    digest: str


@dataclass(frozen=True)
class VisitKey:
    """Which visit: a cell and a dataset in a repetition, and which attempt at it."""

    cell: str
    dataset: str
    repetition: int
    attempt: int
    canary: bool = False


@dataclass(frozen=True)
class VisitRequest:
    """Everything a visit needs; `build` is None without PostgreSQL, `native_drivers` are paths of built C drivers by name.

    `inputs` are paths of what was made for the workloads beforehand, by name (`tpch`: its CSV files).
    `expected_answers` are digests of right answers by what was asked, as earlier visits of the study
    found them, and `answer_sources` which run of which visit that was. `journal_device` is there where the cell asks for an external journal; an image is memory then, in
    the `image_directory` that is on a tmpfs. `provenance` names the machine and the plan by digest,
    for the record.
    """

    format_version: int
    key: VisitKey
    cell: Cell
    dataset: Dataset
    runs: tuple[RunSpec, ...]
    scratch_device: ScratchDevice
    build: EngineBuild | None
    native_drivers: Mapping[str, str]
    state_directory: str
    seed: int
    provenance: Mapping[str, str] = field(default_factory=dict)
    journal_device: ScratchDevice | None = None
    inputs: Mapping[str, str] = field(default_factory=dict)
    expected_answers: Mapping[str, str] = field(default_factory=dict)
    answer_sources: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Comparison:
    """One asked option and what was read back; `source` says where it was read."""

    name: str
    asked: Scalar | None
    effective: Scalar | None
    source: str
    matches: bool | None


@dataclass(frozen=True)
class FlushCount:
    """Flushes that reached a device over `calls` syncs.

    `device` is `data` or `journal`. `pattern` is `appending` or `overwriting`, each write with an
    fsync, or `logging`, an overwrite with an fdatasync.
    """

    device: str
    pattern: str
    calls: int
    flushes: int


@dataclass(frozen=True)
class Timing:
    """How long one step of the visit's life took, on the monotonic clock."""

    step: str
    seconds: float


@dataclass(frozen=True)
class Sample:
    """Counters read at one moment; cumulative ones stay cumulative. `phase` as in `Phase.name`."""

    monotonic_s: float
    wall_s: float
    phase: str
    values: Mapping[str, float]


@dataclass(frozen=True)
class Phase:
    """A stretch of a run: `warmup` is recorded and not reported, `measure` is."""

    name: str
    start_monotonic_s: float
    end_monotonic_s: float
    start_wall_s: float
    end_wall_s: float


@dataclass(frozen=True)
class PhaseCounters:
    """The counters at both ends of one phase of a run that has several; `phase` as in `Phase.name`."""

    phase: str
    before: Sample
    after: Sample


@dataclass(frozen=True)
class TimedItem:
    """One thing of many that a run timed apart: a query, the load of a table, an index.

    `seconds` is None where it did not end, `limit_s` is set where it was stopped at its limit.
    """

    phase: str
    item: str
    seconds: float | None
    limit_s: float | None = None
    facts: Mapping[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True)
class RunRecord:
    """What happened in one run, before any figure is made of it.

    `before` and `after` frame the `measure` phase, or all phases of a run that has others, whose own are
    in `phase_counters`. `items` are what was timed within phases. `facts` are single values that the workload
    knows and no counter has (pgbench's own summary, why the warm-up ended, the client's CPU).
    """

    spec: RunSpec
    outcome: Outcome
    reasons: tuple[str, ...] = ()
    phases: tuple[Phase, ...] = ()
    before: Sample | None = None
    after: Sample | None = None
    facts: Mapping[str, Scalar] = field(default_factory=dict)
    commands: tuple[tuple[str, ...], ...] = ()
    phase_counters: tuple[PhaseCounters, ...] = ()
    items: tuple[TimedItem, ...] = ()


@dataclass(frozen=True)
class Durability:
    """What survives a power cut, for a volatile and for a protected device cache.

    Classes: `durable`, `bounded loss`, `unsafe`, `unknown`. `basis` is `declared` (flushes counted
    and settings read) or `measured` (power cuts). `without_waiting` is there where a visit also commits
    without waiting for the medium (LMDB, `sync = "by-test"`): the class of those commits, as a record of its own.
    `by_runs` are those of the reasons that runs gave by what they did: they lower a measured class, too, as cuts
    asked about other transactions.
    Measured, `volatile_cache` holds where the device writes 4 KiB whole, and `volatile_cache_512` where its sectors have 512
    bytes. Flushes and settings say nothing of sectors: what they declare holds for both, and the second is None.
    """

    volatile_cache: str
    protected_cache: str
    basis: str
    reasons: tuple[str, ...] = ()
    without_waiting: Durability | None = None
    by_runs: tuple[str, ...] = ()
    volatile_cache_512: str | None = None

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
    """What happened in one visit; `failed_step` is the step of its life at which it stopped.

    `provenance` names what may be compared with what: `machine` and `plan` by digest, `executor`,
    `kernel`, `build` by digest, and `protocol`, the version of how the workload is measured; of a visit
    in a guest also `accelerator`, `qemu`, `kernel_digest`, `host_kernel` and `disk`. `seconds` is the visit's
    own life; `whole_seconds` has the hand-over, a boot and the making of figures too, None in older studies.
    `filesystem_check_outcome` is None where the visit did not come to its check, and in older studies. `sealed` says
    that the checksums of its files were written with it.
    """

    format_version: int
    key: VisitKey
    cell: Cell
    dataset: Dataset
    outcome: Outcome
    reasons: tuple[str, ...]
    failed_step: str | None
    started_wall_s: float
    seconds: float
    boot_id: str
    executor: str
    comparisons: tuple[Comparison, ...] = ()
    effective_digest: str | None = None
    flush_counts: tuple[FlushCount, ...] = ()
    durability: Durability | None = None
    device_facts: Levels = field(default_factory=Levels)
    sizes: Mapping[str, int] = field(default_factory=dict)
    timings: tuple[Timing, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    kernel_messages: tuple[str, ...] = ()
    filesystem_check: str | None = None
    commands: tuple[tuple[str, ...], ...] = ()
    runs: tuple[str, ...] = ()
    build_digest: str | None = None
    provenance: Mapping[str, str] = field(default_factory=dict)
    whole_seconds: float | None = None
    filesystem_check_outcome: CheckOutcome | None = None
    sealed: bool = False

    @property
    def found_errors(self) -> bool:
        """True where the check of the unmounted file system found errors; older records say so by their step."""
        if self.filesystem_check_outcome is not None:
            return self.filesystem_check_outcome is CheckOutcome.ERRORS
        return self.failed_step == CHECK_STEP and self.filesystem_check is not None

    @property
    def doubts(self) -> tuple[str, ...]:
        """What speaks against every run of the visit: it failed after them, and not in one of them alone."""
        if self.outcome is not Outcome.FAILED or self.failed_step in STEPS_OF_SINGLE_RUNS:
            return ()
        where = f" at the step “{self.failed_step}”" if self.failed_step else ""
        words = " ".join(" ".join(self.reasons).split()) or "no reason was recorded"
        if len(words) > _REASON_CHARACTERS:
            words = f"{words[: _REASON_CHARACTERS - 1]}…"
        return (f"its visit failed after it{where}: {words}",)

    @property
    def accelerator(self) -> str | None:
        """`kvm` or `tcg` for a visit in a guest, None where the machine itself was measured."""
        return self.provenance.get("accelerator")

    @property
    def emulated(self) -> bool:
        """True where the processors were emulated: its speeds measure the emulator as well."""
        return self.accelerator == EMULATED
