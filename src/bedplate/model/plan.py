"""A plan once it is read, what it expands to, and the order in which its visits run.

Levels are kept per layer, as the layers multiply: a plan's cells are the product of its devices,
kernels, file systems, builds and clusters. Room `plan` makes these records and decides about them;
they stand here because the study keeps the schedule and the executors follow it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product

from bedplate import registry
from bedplate.model.cell import (
    JOURNAL_IN_RAM,
    BuildLevels,
    Cell,
    ClusterLevels,
    Dataset,
    DeviceLevels,
    FilesystemLevels,
    KernelLevels,
    PlanSources,
    RunSpec,
    digest,
)
from bedplate.model.codec import dumps, to_json
from bedplate.model.durability import BOUNDED_LOSS, CLASSES, DURABLE
from bedplate.model.engines import ENGINE
from bedplate.model.levels import Levels, Scalar
from bedplate.model.machine import Fleet
from bedplate.model.reason import Reason, sentences
from bedplate.model.visit import LOADED, ScratchDevice
from bedplate.units import GIB, format_count

# What survives a power cut, as a search asks for it: with the device's volatile cache, with one that survives, with
# no more lost than the last commits. `measured` is as `volatile`, and cells that the search would name get power cuts.
VOLATILE, SURVIVING, BOUNDED, MEASURED, ANY = "volatile", "protected", "bounded", "measured", "any"

NOT_ASKED = "durability-not-asked"

WANTED: Mapping[str, tuple[str, ...]] = {
    VOLATILE: (DURABLE,),
    SURVIVING: (DURABLE,),
    BOUNDED: (DURABLE, BOUNDED_LOSS),
    MEASURED: (DURABLE,),
    ANY: CLASSES,
}


@dataclass(frozen=True)
class NotWorse:
    """A figure that the named cell may give up a part of, at most."""

    metric: str
    """the figure"""
    share: float
    """by how much it may be worse than the baseline's: 0.1 is 10 %"""


@dataclass(frozen=True)
class SearchCandidate:
    """A cell that may be visited."""

    cell: str
    """id of the cell"""
    seconds: float
    """what a visit was estimated to take, without making its build"""
    build: str = ""
    """digest of the build that it needs; empty where none is made"""


@dataclass(frozen=True)
class SearchLeftOut:
    """A cell that is never visited."""

    cell: str
    """id of the cell"""
    reason: Reason
    """why"""


@dataclass(frozen=True)
class SearchedBlock:
    """Visits that were decided together, in random order. They are one repetition of the schedule."""

    number: int
    """from 0: its repetition less 1"""
    cells: tuple[str, ...]
    """ids of its cells, in the order of their visits"""
    proof: int = 0
    """0 in the search, k in the k-th proof"""
    leader: str | None = None
    """id of the cell that a proof is about; null in the search"""
    stage: int = 0
    """which of the runs it was decided for, from 0 in the order asked; a later run's search begins where an earlier one's ended"""


@dataclass(frozen=True)
class SearchRecord:
    """`search.json`: that a study is a search, what it asks, and its blocks so far."""

    version: int
    """1"""
    best: str
    """the metric whose best cell is looked for"""
    runs: tuple[str, ...]
    """names of the runs that it is a figure of"""
    dataset: str
    """id of the dataset that they run on"""
    durable: str
    """what a power cut must leave: `volatile` (durable with the device's volatile cache), `protected` (durable where the cache survives),
    `bounded` (loses the last commits at most), `measured` (as `volatile`, and power was cut), `any`"""
    budget_s: float
    """seconds of visits that it may take; on a fleet of each node"""
    margin: float
    """what counts as the same: 0.05 is 5 %"""
    candidates: tuple[SearchCandidate, ...]
    """cells that may be visited, in the plan's order"""
    left_out: tuple[SearchLeftOut, ...] = ()
    """cells that are never visited, and why"""
    baseline: str | None = None
    """id of the plan's first cell, which the best one is compared with; null where that is left out"""
    not_worse: tuple[NotWorse, ...] = ()
    """figures that the best cell may not be worse in"""
    builds: Mapping[str, float] = field(default_factory=dict)
    """by digest of a build the seconds that making it was estimated to take; those that the cache had are not in it"""
    cut_dataset: str | None = None
    """id of the dataset whose visits cut power; null where none does"""
    cut_seconds: float = 0.0
    """what a visit that cuts power was estimated to take"""
    at_once: int = 1
    """blocks of the search that are decided together: one for each node of a fleet"""
    accepted: tuple[str, ...] = ()
    """words or codes of doubts that were accepted: a suspect run is believed where nothing else speaks against it"""
    blocks: tuple[SearchedBlock, ...] = ()
    """all blocks, in order"""
    extended: int | None = None
    """repetitions of the factorial that the study was extended to; null while it is a search"""


@dataclass(frozen=True)
class SearchStep:
    """What a search does next: `blocks`, or power cuts in the cells `cuts`, or nothing more.

    A block that the search has already gets further attempts at these cells. `words` say where the search is. `spent_s` are the
    seconds of its visits so far. An end that names no cell is one where none could be measured; with
    `has_failed` visits that are due are not worth their time either.
    """

    words: str
    spent_s: float
    blocks: tuple[SearchedBlock, ...] = ()
    cuts: tuple[str, ...] = ()
    names_a_cell: bool = True
    has_failed: bool = False

    @property
    def is_last(self) -> bool:
        """Whether the search has ended."""
        return not self.blocks and not self.cuts


# Level `pass` of a run that reads: with everything dropped from every cache before it, or as it was left.
COLD = "cold"

WARM = "warm"


@dataclass(frozen=True)
class RecordWords:
    """What a type writes into the records that all types share, in Markdown for docs/STUDY_FORMAT.md; empty: nothing of its own."""

    dataset: str = ""
    """the levels of its datasets"""
    run: str = ""
    """the levels of its runs"""
    phases: str = ""
    """the phases of its records and figures"""
    items: str = ""
    """the items within a phase"""
    facts: str = ""
    """the facts of its runs"""
    files: str = ""
    """the files of its own beside a run's record"""


class WorkloadModel:
    """A type whose datasets are all for one engine, and whose runs stand each for itself; others say so."""

    def __init__(
        self,
        engine: str,
        tools: Mapping[str, str] | None = None,
        *,
        plan_keys: Mapping[str, str] | None = None,
        words: RecordWords | None = None,
        former_metrics: Mapping[str, str] | None = None,
        cuts_power: bool = False,
    ) -> None:
        self._engine = engine
        self.cuts_power = cuts_power
        """Whether its visits measure what a power cut leaves of a cell, and no speed."""
        self.words: RecordWords = words or RecordWords()
        self.tools: Mapping[str, str] = tools or {}
        """Programs of the system that do the work, and the option that makes each say its version."""
        self._plan_keys: Mapping[str, str] = plan_keys or {}
        self.former_metrics: Mapping[str, str] = former_metrics or {}
        """What studies of before call metrics of it, and what those are called today."""

    @property
    def has_own_disk(self) -> bool:
        """Whether the engine stands on a disk of its own in memory, so that the scratch device only shows what its levels come to."""
        return False

    @property
    def has_speed(self) -> bool:
        """Whether its runs have speeds, which need repetitions for a verdict; cases that are counted have one each."""
        return True

    def engine_of(self, dataset: Levels) -> str:  # noqa: ARG002 -- of types whose datasets say which
        """The engine that a dataset is for."""
        return self._engine

    def in_a_plan(self, levels: Levels) -> Mapping[str, Scalar]:
        """The levels of a dataset or a run by the keys of its `[[workload]]`; sizes in bytes, times in seconds."""
        return {key: levels[name] for name, key in self._plan_keys.items() if name in levels}

    def restores(self, dataset: Levels) -> bool:  # noqa: ARG002 -- of types whose load is apart from their runs
        """Whether a dataset is loaded before all runs and outside of them, so that an image of it is as good."""
        return False

    def fills(self, spec: RunSpec) -> bool:  # noqa: ARG002 -- of types whose runs need each other
        """Whether a run makes what later ones of its visit read, so that without it they cannot be."""
        return False


class OwnDiskModel(WorkloadModel):
    """A type whose engine is any that has an oracle, on a recorded disk of its own; its dataset says which."""

    @property
    def has_own_disk(self) -> bool:
        """A recorded one."""
        return True

    @property
    def has_speed(self) -> bool:
        """Cuts and tries are counted."""
        return False

    def engine_of(self, dataset: Levels) -> str:
        """What the dataset says; of those of the first version, which say nothing, the type's own."""
        return dataset.text(ENGINE) or super().engine_of(dataset)


def tools_of_workloads() -> Mapping[str, str]:
    """Those of all workloads."""
    return {
        program: option for name in registry.WORKLOADS for program, option in model_of(name).tools.items()
    }


def model_of(workload: str) -> WorkloadModel:
    """That of a type; PlanError lists the known ones."""
    model: WorkloadModel = registry.part(workload, "model")
    return model


# A canary looks for drift of the machine; it needs no more room than this, and writing a large
# image full of zeros would cost more than the canary itself.
CANARY_IMAGE_BYTES = GIB

# The table of defaults that a plan is read with. One that changes a run gets a new version, and a study that was begun
# with an earlier one goes on with it (`StudyFacts.defaults`). 2: a client program has a thread for each client.
DEFAULTS_VERSION = 2

# Levels of builds that came later, those of one time together: records of earlier ones know nothing of them.
_BUILDS_LATER = (("source_commit", "patches"), ("server",))
_NEVER_DEPARTS = frozenset({"kernel.release", "filesystem.journal_device"})

# A boot costs a guest 10 to 20 s under emulation; with eight visits it is a few percent of their time.
VISITS_PER_BOOT = 8


@dataclass(frozen=True)
class DatasetScale:
    """How much is loaded: a scale (`units`), a multiple of the memory (`times_memory`), else what suits the memory."""

    units: int | None = None
    times_memory: float | None = None
    # More levels of what is loaded, whatever the scale.
    more: Levels = field(default_factory=Levels)


@dataclass(frozen=True)
class CellChoice:
    """Cells that differ from `first` in nothing but `levels`: names as in `Cell.levels`, each with what it may be.

    Unless they are named, two are no difference: the kernel, which is settled only where a cell runs, and the
    place of an external journal, which follows from there being one.
    """

    levels: tuple[tuple[str, tuple[Scalar, ...]], ...]
    first: Levels

    def takes(self, levels: Levels) -> bool:
        """Whether a cell with these levels is one of them; a level that is absent was not asked for."""
        named = dict(self.levels)
        for name in {*named, *levels, *self.first}:
            if name in named:
                if levels.get(name) not in named[name]:
                    return False
            elif name not in _NEVER_DEPARTS and levels.get(name) != self.first.get(name):
                return False
        return True


@dataclass(frozen=True)
class PlannedWorkload:
    """One `[[workload]]`: its datasets, and the runs made in order on each.

    `scales` become datasets where a cell's memory is known; `datasets` are known by themselves (a TPC-H
    scale factor). A workload has one of the two. `only` are the cells in which it runs, all of its engine if empty.
    `engines` are those that every dataset is for; empty where the type, or a dataset, says which one it is.
    """

    type: str
    scales: tuple[DatasetScale, ...]
    runs: tuple[RunSpec, ...]
    datasets: tuple[Levels, ...] = ()
    only: tuple[CellChoice, ...] = ()
    engines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Canary:
    """The visit that comes back through the study; `filesystem` None: ext4, else the first kept."""

    enabled: bool = True
    every_s: float = 7200.0
    filesystem: str | None = None


@dataclass(frozen=True)
class GuestPlan:
    """The guests of an executor that has them.

    `memory_bytes` is the guest's where a cell asks for no `memory`, None for the executor's own.
    """

    visits_per_boot: int = VISITS_PER_BOOT
    memory_bytes: int | None = None


@dataclass(frozen=True)
class EngineSetup:
    """An engine that some workload of a plan runs on: its builds and its clusters, which multiply.

    `folder` is where an own engine's programs stand; None of others, and of a plan that a study keeps.
    """

    engine: str
    builds: tuple[BuildLevels, ...]
    clusters: tuple[ClusterLevels, ...]
    folder: str | None = None


@dataclass(frozen=True)
class Plan:
    """A validated plan.

    `files` are the texts of the files that it names (own scripts and configurations), by their path
    relative to the plan: a study keeps them beside its frozen plan. `warnings` are sentences: what is
    allowed but will not give what it seems to. `journal_device` is what external journals stand on:
    `device` for cells that ask for one, `image_bytes` of memory for those that ask for RAM. `archives` are the paths of what is
    too large to be kept, by its checksum in datasets and cells: where it lies decides nothing. `dataset_by` says whether each visit
    loads its dataset, or restores it from the image of one that was loaded once. `sources` are the trees and patches that its builds
    are made of: their levels decide, where they lie does not.
    """

    title: str
    repetitions: int
    seed: int
    executor: str
    scratch_device: ScratchDevice
    devices: tuple[DeviceLevels, ...]
    kernels: tuple[KernelLevels, ...]
    filesystems: tuple[FilesystemLevels, ...]
    engines: tuple[EngineSetup, ...]
    workloads: tuple[PlannedWorkload, ...]
    canary: Canary
    files: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    journal_device: ScratchDevice | None = None
    guest: GuestPlan = field(default_factory=GuestPlan)
    fleet: Fleet | None = None
    archives: Mapping[str, str] = field(default_factory=dict)
    dataset_by: str = LOADED
    sources: PlanSources = field(default_factory=PlanSources)

    @property
    def builds(self) -> tuple[BuildLevels, ...]:
        """Those of every engine."""
        return tuple(build for setup in self.engines for build in setup.builds)

    @property
    def clusters(self) -> tuple[ClusterLevels, ...]:
        """Those of every engine."""
        return tuple(cluster for setup in self.engines for cluster in setup.clusters)

    def cells(self) -> Iterator[Cell]:
        """Every combination of levels that a workload runs in, the file system slowest within device and kernel."""
        restricted = any(workload.only for workload in self.workloads)
        for device, kernel, filesystem in product(self.devices, self.kernels, self.filesystems):
            for setup in self.engines:
                for build, cluster in product(setup.builds, setup.clusters):
                    cell = Cell(device, kernel, filesystem, build, cluster)
                    if not restricted or self.workloads_of(cell):
                        yield cell

    def workloads_of(self, cell: Cell) -> tuple[PlannedWorkload, ...]:
        """The workloads that run in a cell, each with the datasets that are for its engine."""
        found = []
        for item in self.workloads:
            if not self.runs_on(item, cell.build.engine):
                continue
            if item.only and not any(choice.takes(cell.levels) for choice in item.only):
                continue
            # A power cut has datasets of two engines.
            datasets = tuple(
                levels
                for levels in item.datasets
                if item.engines or model_of(item.type).engine_of(levels) == cell.build.engine
            )
            found.append(replace(item, datasets=datasets))
        return tuple(found)

    @staticmethod
    def runs_on(workload: PlannedWorkload, engine: str) -> bool:
        """Whether a workload is for an engine at all, in whatever cells."""
        if workload.engines:
            return engine in workload.engines
        engine_of = model_of(workload.type).engine_of
        # What has scales in place of datasets is for the engine of its type.
        return any(engine == engine_of(levels) for levels in workload.datasets or (Levels(),))

    @property
    def digest(self) -> str:
        """Digest of everything that decides a result.

        The title is not in it, nor is the order in which levels are listed; that of the runs is,
        since one run warms the cache for the next.
        """
        layers = (self.devices, self.kernels, self.filesystems, self.builds, self.clusters)
        loads = [
            (
                workload.type,
                loaded,
                workload.runs,
                *(each for each in (workload.only, workload.engines) if each),
            )
            for workload in self.workloads
            for loaded in (*workload.scales, *workload.datasets)
        ]
        # What came later stands here only where it was asked for: a study of before keeps its digest.
        later = {
            name: value
            for name, value, default in (
                ("journal_device", self.journal_device and _device_as_named(self.journal_device), None),
                ("guest", self.guest, GuestPlan()),
                ("dataset_by", self.dataset_by, LOADED),
                ("fleet", None if self.fleet is None else self.fleet.deciding, None),
            )
            if value != default
        }
        return digest(
            {
                **later,
                "layers": [sorted(dumps(_deciding(levels)) for levels in layer) for layer in layers],
                "loads": sorted(dumps(load) for load in loads),
                "repetitions": self.repetitions,
                "seed": self.seed,
                "executor": self.executor,
                "scratch_device": _device_as_named(self.scratch_device),
                "canary": self.canary,
            }
        )

    def dataset_by_of(self, *, canary: bool) -> str:
        """How the dataset of a visit comes onto its file system; a canary is as it is in every other study."""
        return LOADED if canary else self.dataset_by

    def journal_device_for(self, filesystem: FilesystemLevels) -> ScratchDevice | None:
        """What the external journal of these levels stands on; None for any other journal."""
        if filesystem.journal_device is None or self.journal_device is None:
            return None
        if filesystem.journal_device == JOURNAL_IN_RAM:
            return replace(self.journal_device, device=None)
        return replace(self.journal_device, image_bytes=None)

    def scratch_device_for(self, *, canary: bool) -> ScratchDevice:
        """The scratch device of a study's visit, or of a canary's (a small image)."""
        size = self.scratch_device.image_bytes
        if not canary or size is None:
            return self.scratch_device
        return replace(self.scratch_device, image_bytes=min(size, CANARY_IMAGE_BYTES))

    @property
    def latencies(self) -> tuple[str, ...]:
        """The devices with latency by their labels, if the plan's cells have no other scratch device: its data is in memory."""
        names = tuple(device.latency.label for device in self.devices if device.latency is not None)
        return names if len(names) == len(self.devices) else ()

    @property
    def devices_erased(self) -> tuple[str, ...]:
        """Every device that the plan erases, on whatever node, each once."""
        fleet = self.fleet
        named: list[str] = []
        for place, of_nodes in (
            (self.scratch_device, fleet.devices if fleet else {}),
            (self.journal_device, fleet.journal_devices if fleet else {}),
        ):
            if place is None or place.device is None:
                continue
            if fleet is None or set(of_nodes) != set(fleet.nodes):
                named.append(place.device)
            named += of_nodes.values()
        return tuple(dict.fromkeys(named))


@dataclass(frozen=True)
class Load:
    """One dataset and the runs on it, in order: what one visit to a cell does."""

    dataset: Dataset
    runs: tuple[RunSpec, ...]


@dataclass(frozen=True)
class PlannedCell:
    """A cell that will be visited, once per load and repetition."""

    cell: Cell
    loads: tuple[Load, ...]


@dataclass(frozen=True)
class Pruned:
    """A cell that cannot exist here."""

    cell: Cell
    """the cell"""
    reasons: tuple[Reason, ...]
    """every reason why it cannot exist here"""


def pruned_by_reasons(pruned: Iterable[Pruned]) -> tuple[tuple[tuple[str, ...], int], ...]:
    """The sets of reasons that cells were pruned for, the most frequent first, with their counts."""
    return tuple(Counter(sentences(each.reasons) for each in pruned).most_common())


def pruned_lines(pruned: Iterable[Pruned]) -> Iterator[str]:
    """The same to be read: what a plan, its run and its study say of the cells that cannot be."""
    for reasons, count in pruned_by_reasons(pruned):
        yield f"pruned: {format_count(count, 'cell')}"
        yield from (f"    {reason}" for reason in reasons)


@dataclass(frozen=True)
class Expansion:
    """What a plan comes to on a machine. `canary` is None where it is off or nothing is left to run."""

    cells: tuple[PlannedCell, ...]
    pruned: tuple[Pruned, ...]
    canary: PlannedCell | None
    warnings: tuple[str, ...] = ()

    @property
    def planned(self) -> tuple[PlannedCell, ...]:
        """Every cell that would run, the canary's as well."""
        return (*self.cells, *((self.canary,) if self.canary else ()))

    @property
    def is_timed(self) -> bool:
        """Whether any visit has a speed, which another one beside it would change."""
        return any(
            model_of(load.dataset.workload).has_speed for planned in self.planned for load in planned.loads
        )

    def find(self, cell_id: str, dataset_id: str, *, canary: bool = False) -> tuple[Cell, Load]:
        """The cell and load that a scheduled visit names; KeyError where there is none."""
        return self.by_visit[cell_id, dataset_id, canary]

    @cached_property
    def by_visit(self) -> Mapping[tuple[str, str, bool], tuple[Cell, Load]]:
        """Cell and load by cell id, dataset id and whether it is the canary's: an id is a hash, and dear."""
        found: dict[tuple[str, str, bool], tuple[Cell, Load]] = {}
        dataset_ids: dict[Dataset, str] = {}
        for canary, cells in ((False, self.cells), (True, (self.canary,) if self.canary else ())):
            for planned in cells:
                cell_id = planned.cell.id
                for load in planned.loads:
                    if load.dataset not in dataset_ids:
                        dataset_ids[load.dataset] = load.dataset.id
                    found[cell_id, dataset_ids[load.dataset], canary] = (planned.cell, load)
        return found


@dataclass(frozen=True)
class ScheduledVisit:
    """One visit at its place."""

    index: int
    """place in the order, from 0"""
    cell_id: str
    """id of the cell"""
    dataset_id: str
    """id of the dataset"""
    repetition: int
    """from 1; a canary counts its own"""
    canary: bool = False
    """whether it is a canary"""
    boot: int | None = None
    """visits of one boot of a kernel share it; null where the running system is not left"""
    node: str | None = None
    """the node of a fleet that runs it; null without a fleet"""


@dataclass(frozen=True)
class Schedule:
    """The order of all visits: randomised complete blocks, the canaries between them."""

    seed: int
    repetitions: int
    visits: tuple[ScheduledVisit, ...]


def _device_as_named(device: ScratchDevice) -> object:
    """What a digest of a device is made of: as the plan names it, whatever a study found there."""
    return {name: value for name, value in to_json(device).items() if name != "recorded"}


def _deciding(levels: DeviceLevels | KernelLevels | FilesystemLevels | BuildLevels | ClusterLevels) -> object:
    """What a digest of levels is made of: what came later stands there only where it was asked for."""
    if isinstance(levels, DeviceLevels) and levels.latency is not None and levels.latency.disk is None:
        found = to_json(levels)
        del found["latency"]["disk"]
        return found
    if not isinstance(levels, BuildLevels):
        return levels
    usual = BuildLevels()
    unasked = {
        name
        for names in _BUILDS_LATER
        for name in names
        if all(getattr(levels, each) == getattr(usual, each) for each in names)
    }
    return {name: value for name, value in to_json(levels).items() if name not in unasked}
