"""What executors are: where the visits of a study run, and what that asks of this machine.

An executor has one of two abilities. It carries single visits, one after the other (`VisitRunner`), or hands
them to a fleet (`FleetNodes`); `Executor.run` uses the one that it has.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from bedplate.host.requirement import Need
    from bedplate.model.cell import Cell
    from bedplate.model.levels import Scalar
    from bedplate.model.machine import Machine, NodeFacts
    from bedplate.model.plan import Expansion, Plan, ScheduledVisit
    from bedplate.model.visit import ScratchDevice, VisitRecord, VisitRequest
    from bedplate.study.records import StudyFacts
    from bedplate.study.store import Attempt, StudyStore


@dataclass(frozen=True)
class StartOutcome:
    """How a start of a study ended; `needs_kernel` is what must be booted before it can go on.

    `left_behind` are sentences: which visits are still due although nothing more comes of this start, and why. So are `not_built`:
    those of cells that could not be built, which is no result. `stopped_after` is the repetition behind which the caller wanted no other.
    """

    completed: int
    failed: int
    seconds: float
    needs_kernel: str | None = None
    left_behind: tuple[str, ...] = ()
    not_built: tuple[str, ...] = ()
    stopped_after: int | None = None


AfterRepetition: TypeAlias = "Callable[[int, float], bool]"
"""What is done between two repetitions: with the number of the one that is over, and the seconds that its visits took in this start.
False where no other is to be begun."""


class Listener(Protocol):
    """Receives what is said while a study is prepared and run."""

    def note(self, text: str) -> None:
        """Something worth a line of its own."""

    def preparing(self, step: str, current: int, total: int) -> None:
        """A build or a download on the way."""


class VisitRunner(Protocol):
    """Carries one visit to where it runs, and brings its directory back; `name` stands in every record."""

    name: str

    def run_visit(
        self,
        request: VisitRequest,
        directory: Path,
        on_event: Callable[[Mapping[str, Scalar]], None],
        *,
        boot: int | None = None,
    ) -> None:
        """Live through one visit; afterwards `directory` holds its record.

        Visits of one `boot` share a guest where the executor has guests; None shares nothing.
        BedplateError if there is no record although nobody asked the visit to end. A
        KeyboardInterrupt ends the visit first, waits until it has given everything back, and goes on.
        """

    def close(self) -> None:
        """Give back what outlives a visit (a guest that waits for the next one); safe to repeat."""


class Start(Protocol):
    """One start of a study, as its executor sees it: the visits that are due, and all that they share."""

    @property
    def store(self) -> StudyStore:
        """The study."""

    @property
    def plan(self) -> Plan:
        """What is measured."""

    @property
    def expansion(self) -> Expansion:
        """The cells that the due visits are of."""

    @property
    def listener(self) -> Listener:
        """Where the start is watched."""

    @property
    def visits(self) -> Sequence[ScheduledVisit]:
        """What is to be visited, in order."""

    def without(self, cell_ids: Collection[str], subject: str, reasons: Sequence[str]) -> Start:
        """The same start, without the due visits of these cells, by their ids: `subject` was not built, for these reasons."""

    def allow_erasing(self, scratch: ScratchDevice) -> ScratchDevice:
        """A device as visits get it: with what may be erased."""

    def label(self, visit: ScheduledVisit) -> str:
        """What a visit is called where its study is the context."""

    def request(self, visit: ScheduledVisit, attempt: int) -> VisitRequest:
        """What is asked of one attempt at a visit, on its node where it has one."""

    def keep(
        self, attempt: Attempt, record: VisitRecord, *, seconds_before: float
    ) -> tuple[VisitRecord, str]:
        """Make the figures of a visit that has ended and put it into the study; its final record, and a line of it.

        OSError where the study cannot be written, RequirementMissing where a process of the visit still writes.
        """

    def has_ended(self, record: VisitRecord) -> None:
        """Count a visit among those that decide whether the rest would fail alike."""

    def hopeless(self, rest: Iterable[ScheduledVisit]) -> tuple[str, ...]:
        """Sentences if no visit of these is worth its time; empty if one is, or none is left."""

    def one_by_one(self, runner: VisitRunner) -> StartOutcome:
        """Run the due visits in order, and keep each as soon as it is done; closes the runner."""


class FleetNodes(Protocol):
    """Nodes that visits run on, each a machine of its own, in place of this one."""

    def machine(self, plan: Plan, nodes: Mapping[str, NodeFacts]) -> Machine | None:
        """What all nodes have; None before somebody has looked at them. PlanError if the plan names none."""

    def look(
        self, plan: Plan, study: Path, listener: Listener, *, erase_foreign: bool
    ) -> Mapping[str, NodeFacts]:
        """Find out what the nodes are; RequirementMissing with every reason against them."""

    def require_same(self, plan: Plan, store: StudyStore, listener: Listener, *, erase_foreign: bool) -> None:
        """That the nodes are those of the study; StudyError if they are other machines or run another kernel."""


class Executor(Protocol):
    """Where the visits of a study run.

    `runs_here`: visits change the system that this process runs on, which needs root. `fleet` is None where
    visits use the devices of this machine. `estimate_words` are what an estimate of time does not know.
    """

    name: str
    runs_here: bool
    estimate_words: str = ""

    @property
    def fleet(self) -> FleetNodes | None:
        """The nodes that visits run on, in place of this machine."""
        return None

    def needs(self, filesystems: Iterable[str], workloads: Iterable[str]) -> tuple[Need, ...]:
        """The programs that these types need of this machine; RequirementMissing if the executor cannot be had."""

    def kernels(self, plan: Plan) -> tuple[str | None, ...]:  # noqa: ARG002 -- of those with kernels of their own
        """The kernels that are fetched for a plan, None for the executor's own; empty where the one that runs is used."""
        return ()

    def kernels_to_build(self, plan: Plan) -> Mapping[str, float]:  # noqa: ARG002 -- as above
        """Those of them that are compiled from a commit and not there yet, by their levels: what each takes in seconds."""
        return {}

    def prepare(self, plan: Plan, listener: Listener) -> None:  # noqa: ARG002 -- most have nothing to fetch
        """Fetch what decides which cells can run, where the cache lacks it."""
        return

    def prepare_cells(self, cells: Iterable[Cell], listener: Listener) -> None:  # noqa: ARG002 -- as above
        """Fetch what the visits of these cells need beside packages, builds and data, where the cache lacks it."""
        return

    def device_reasons(self, devices: Iterable[str]) -> tuple[str, ...]:  # noqa: ARG002 -- root may do all
        """Why visits could not use these devices, beside what every executor asks of one."""
        return ()

    def another_machine(self, plan: Plan, facts: StudyFacts, machine: Machine) -> str | None:
        """Why a study that was begun so cannot go on under this machine; None where it can."""

    def run(self, start: Start) -> StartOutcome:
        """Run all visits that are due."""
