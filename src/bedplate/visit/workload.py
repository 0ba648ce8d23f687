"""What a workload is, and what it stands on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from bedplate import registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
    from pathlib import Path

    from bedplate.host.command import Account, Commands
    from bedplate.host.ledger import Ledger
    from bedplate.host.native_driver import Library
    from bedplate.host.requirement import Need
    from bedplate.model.cell import Dataset, RunSpec
    from bedplate.model.levels import Levels, Scalar
    from bedplate.model.visit import RunRecord, VisitRequest
    from bedplate.probe.protocol import Probe
    from bedplate.visit.engine_server import Server


@dataclass(frozen=True)
class Driver:
    """A program of bedplate's own that a workload is driven with: `drivers/<program>.c` and its libraries.

    With a `variant` it is compiled with `drivers/<program>/<variant>` too: what one engine has of it. `library_settings` are those
    of an engine's settings that names another library than the distribution's. One that `is_preloaded` is a shared object.
    """

    program: str
    libraries: tuple[Library, ...] = ()
    variant: str = ""
    library_settings: tuple[str, ...] = ()
    is_preloaded: bool = False

    @property
    def name(self) -> str:
        """Under which a visit finds it."""
        return f"{self.program}_{self.variant}" if self.variant else self.program

    def name_with(self, library: str) -> str:
        """The same of one that is compiled with a library that cells name."""
        # Of a commit the digits alone: a subject is no name of a file.
        return f"{self.name}-{library.partition(' ')[0]}"

    def name_for(self, settings: Levels) -> str:
        """That of a cell, by its engine's settings."""
        library = next(filter(None, map(settings.text, self.library_settings)), None)
        return self.name if library is None else self.name_with(library)


@dataclass(frozen=True)
class VisitContext:
    """Everything that a workload stands on in one visit.

    `memory_bytes` is the limit of the server's group, else the machine's memory. `data_directory` lies on
    the scratch device and belongs to `account`. `enter_group` moves a child of ours into that group before
    it runs a program: one that does the I/O itself, where there is no server.
    `probes` are those of the machine and the device; a workload adds its engine's and its client's.
    `log_directory` is on tmpfs, owned by `account`: what a client writes while it is measured goes
    there and never to the scratch device. `inputs` are paths of what was made for the workloads before
    the visit. `engine_settings` are the cell's, for an engine that the workload itself opens; into
    `tool_versions` it puts the versions of the libraries and tools that do the work. `expected_answers` are digests of right answers by the question; a run adds its own, which
    later runs are held to. `answer_sources` say in which run of which visit an answer was found, where that is known. `make_cold` stops the server, mounts the file system anew and starts it again:
    nothing is cached afterwards, and every session is gone. A workload that makes file systems or servers of its own does so from the `request`, below
    `place`, and notes them in the `ledger`. `emit` tells the caller of the visit what happens now.
    """

    request: VisitRequest
    ledger: Ledger
    place: Path
    dataset: Dataset
    memory_bytes: int
    mount_point: Path
    data_directory: Path
    account: Account
    commands: Commands
    probes: Sequence[Probe]
    native_drivers: Mapping[str, str]
    log_directory: Path
    seed: int
    emit: Callable[[Mapping[str, Scalar]], None]
    server: Server | None
    engine_settings: Levels
    tool_versions: MutableMapping[str, str]
    enter_group: Callable[[], None]
    inputs: Mapping[str, str]
    expected_answers: MutableMapping[str, str]
    answer_sources: MutableMapping[str, str]
    make_cold: Callable[[], None]


class Workload(Protocol):
    """Loads a dataset and measures runs on it; one file each, named in `bedplate/registry.py`.

    `protocol` names the version of how it measures; runs of two versions are not compared. `needs` are
    programs of the system, `drivers` what is compiled beforehand for whatever engine (`drivers_of`).
    """

    name: str
    protocol: str
    needs: tuple[Need, ...]
    drivers: tuple[Driver, ...]

    def load(self, dataset: Dataset, context: VisitContext) -> None:
        """Load the dataset; the caller times it."""
        ...

    def run(self, spec: RunSpec, context: VisitContext, directory: Path) -> RunRecord:
        """Measure one run; a run that fails comes back as `failed` with reasons, not as an error."""
        ...


def workload_for(name: str) -> Workload:
    """The workload of that name; PlanError lists the known ones."""
    workload: Workload = registry.part(name, "run")
    return workload


class WorkloadEngine(Protocol):
    """What an engine has for one type of workloads: a role that is called as the type is."""

    drivers: tuple[Driver, ...]


def drivers_of(workloads: Iterable[str], engines: Iterable[str]) -> tuple[Driver, ...]:
    """What is compiled for these types of workloads on these engines, each once."""
    found: dict[Driver, None] = {}
    engines = tuple(dict.fromkeys(engines))
    for name in workloads:
        found |= dict.fromkeys(workload_for(name).drivers)
        for engine in engines:
            own: WorkloadEngine | None = registry.engine_part_or_none(engine, registry.type_today(name))
            found |= dict.fromkeys(own.drivers if own is not None else ())
    return tuple(found)
