"""What must be there before the first visit: system packages, builds of engines, native drivers, data."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bedplate import registry
from bedplate.campaign.dataset_inputs import inputs_by_workload
from bedplate.campaign.engine_preparation import preparations
from bedplate.errors import BuildFailed
from bedplate.executors.local import LocalExecutor
from bedplate.host.cache import cache_directory
from bedplate.host.command import Commands
from bedplate.host.native_driver import LIBFUSE3, compiler_requirements, ensure_driver, library_requirement
from bedplate.host.recorder import DRIVER as RECORDER
from bedplate.host.requirement import Requirement, look
from bedplate.installation import shipped
from bedplate.model.cell import UNTORN_OFF
from bedplate.visit.untorn_writes import UNTORN_SHIM
from bedplate.visit.workload import Driver, drivers_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from bedplate.campaign.dataset_inputs import MadeAnyway
    from bedplate.campaign.display import Display
    from bedplate.campaign.engine_preparation import OwnLibrary, OwnPrograms
    from bedplate.executors.protocol import Executor
    from bedplate.host.build_progress import BuildProgress
    from bedplate.model.cell import BuildLevels, Cell, Dataset
    from bedplate.model.levels import Levels
    from bedplate.model.plan import EngineSetup, Plan
    from bedplate.model.source_commit import PlanSources
    from bedplate.model.visit import EngineBuild

# Without a pseudo terminal between them dpkg's errors stay on standard error, whose end a failure quotes.
_APT_QUIETLY = ("-qq", "-o", "Dpkg::Use-Pty=0")

# What a device with latency is.
_EMULATED = Driver(RECORDER, (LIBFUSE3,))


def requirements_of(
    cells: Iterable[Cell], workloads: Iterable[str] = (), *, executor: Executor | None = None
) -> tuple[Requirement, ...]:
    """What an executor needs of the system for these cells and types of workloads, found or not, each once.

    Without an executor: what this machine needs to run them itself.
    """
    cells, workloads = tuple(cells), tuple(workloads)
    needs = (executor or LocalExecutor()).needs((cell.filesystem.type for cell in cells), workloads)
    found: dict[tuple[str, str], Requirement] = {}
    for each in (
        *look(dict.fromkeys(needs)),
        *_needs_of_drivers(cells, workloads),
        *build_requirements_of(cells),
    ):
        found.setdefault((each.name, each.package), each)
    return tuple(found.values())


def _needs_of_drivers(cells: Iterable[Cell], workloads: Iterable[str]) -> tuple[Requirement, ...]:
    """The compiler and the libraries of drivers of these types of workloads in these cells, found or not."""
    # Cells of an engine whose library is compiled for them do without the distribution's.
    engines = (
        cell.build.engine
        for cell in cells
        if own_library_of(cell.build.engine, cell.cluster.settings) is None
    )
    drivers = (*drivers_of(workloads, engines), *_emulated_of(cells))
    libraries = {
        library: library_requirement(
            library, reason=f"the driver {driver.name} is compiled with it", commands=Commands()
        )
        for driver in drivers
        for library in driver.libraries
    }
    compiler = compiler_requirements("compiles the drivers of workloads") if drivers else ()
    return (*compiler, *libraries.values())


def _emulated_of(cells: Iterable[Cell]) -> tuple[Driver, ...]:
    return (_EMULATED,) if any(cell.device.latency is not None for cell in cells) else ()


def build_requirements_of(cells: Iterable[Cell]) -> tuple[Requirement, ...]:
    """What the builds need that these cells lack, found or not."""
    lacking: dict[str, list[BuildLevels]] = {}
    for levels in builds_to_make(cells):
        lacking.setdefault(levels.engine, []).append(levels)
    found = (preparations()[engine].requirements(of_engine) for engine, of_engine in lacking.items())
    return tuple(item for needed in found for item in needed)


def builds_of(cells: Iterable[Cell]) -> tuple[BuildLevels, ...]:
    """The different builds of these cells whose engine is prepared beforehand, in order."""
    prepared = registry.engines_with("preparation")
    return tuple(dict.fromkeys(cell.build for cell in cells if cell.build.engine in prepared))


def builds_to_make(cells: Iterable[Cell]) -> tuple[BuildLevels, ...]:
    """Those of them that the cache lacks."""
    return tuple(levels for levels in builds_of(cells) if not preparations()[levels.engine].is_there(levels))


@dataclass(frozen=True)
class PreparedBuilds:
    """Builds by their levels, and why those of somebody's own source are missing that cannot be built."""

    made: Mapping[BuildLevels, EngineBuild]
    failed: Mapping[BuildLevels, BuildFailed]


def prepare_builds(
    cells: Iterable[Cell], display: Display, *, sources: PlanSources, tarball: Path | None = None
) -> PreparedBuilds:
    """Every build of these cells, made now where the cache lacks it; `sources` are those of the plan."""
    wanted = builds_of(cells)
    builds, failed = {}, {}
    for number, levels in enumerate(wanted, start=1):
        engine = preparations()[levels.engine]
        name = f"{engine.words(levels)} ({number} of {len(wanted)})"

        def tell(progress: BuildProgress, name: str = name) -> None:
            display.preparing(f"{name}: {progress.step}", progress.done or 0, progress.total or 0)

        made_now = not engine.is_there(levels)
        try:
            builds[levels] = engine.ensure(levels, tell, tarball=tarball, sources=sources)
        except BuildFailed as error:
            failed[levels] = error
            display.note(f"{name} cannot be built: {'; '.join(error.reasons)}")
            continue
        if made_now:
            display.note(f"built {name}")
    return PreparedBuilds(builds, failed)


def prepare_inputs(
    datasets: Iterable[Dataset], display: Display, made: MadeAnyway
) -> Mapping[Dataset, Mapping[str, str]]:
    """What is made for datasets beforehand, by the name a workload knows it by; made now where the cache lacks it."""
    makers = inputs_by_workload()
    inputs = {
        dataset: makers[dataset.workload].make(dataset, made, display.preparing)
        for dataset in dict.fromkeys(datasets)
        if dataset.workload in makers
    }
    return {dataset: found for dataset, found in inputs.items() if found}


def prepare_drivers(workloads: Iterable[str], engines: Iterable[str] = ()) -> Mapping[str, str]:
    """Paths of the native drivers of these types of workloads on these engines by name, compiled now where the cache lacks them."""
    return {driver.name: _compiled(driver, driver.name) for driver in drivers_of(workloads, engines)}


@dataclass(frozen=True)
class PreparedDrivers:
    """Paths of native drivers by name, and why those of a library are missing that cannot be built, by its level in cells."""

    made: Mapping[str, str]
    failed: Mapping[str, BuildFailed]


def drivers_of_plan(plan: Plan, workloads: Iterable[str]) -> PreparedDrivers:
    """The same for all of a plan; those of an engine once for each library that its cells name."""
    workloads = tuple(workloads)
    found: dict[str, str] = {}
    failed: dict[str, BuildFailed] = {}
    # What belongs to no engine is compiled for a plan whose engines all have a library of their own, too.
    found |= prepare_drivers(workloads)
    if any(device.latency is not None for device in plan.devices):
        found[_EMULATED.name] = _compiled(_EMULATED, _EMULATED.name)
    for setup in plan.engines:
        if any(cluster.untorn_writes != UNTORN_OFF for cluster in setup.clusters):
            found[UNTORN_SHIM.name] = _compiled(UNTORN_SHIM, UNTORN_SHIM.name)
        levels = dict.fromkeys(own_library_of(setup.engine, cluster.settings) for cluster in setup.clusters)
        for level in levels:
            if level is None:
                found |= prepare_drivers(workloads, (setup.engine,))
                continue
            role: OwnLibrary = registry.engine_part(setup.engine, "own_library")
            try:
                library = role.ensure(level, plan.archives.get(level), plan.sources.trees.get(level))
            except BuildFailed as error:
                failed[level] = error
                continue
            for driver in drivers_of(workloads, (setup.engine,)):
                if driver.variant == setup.engine:
                    name = driver.name_with(level)
                    found[name] = _compiled(replace(driver, libraries=(library,)), name)
    return PreparedDrivers(found, failed)


def own_library_of(engine: str, settings: Levels) -> str | None:
    """Which library of somebody's own a cell's settings name; None for the distribution's."""
    role: OwnLibrary | None = registry.engine_part_or_none(engine, "own_library")
    return None if role is None else next(filter(None, map(settings.text, role.settings)), None)


def _compiled(driver: Driver, name: str) -> str:
    found = ensure_driver(
        name,
        source=shipped("drivers") / f"{driver.program}.c",
        variant=driver.variant,
        cache_directory=cache_directory() / "drivers",
        commands=Commands(),
        libraries=driver.libraries,
        is_preloaded=driver.is_preloaded,
    )
    return str(found)


def prepare_programs(setups: Iterable[EngineSetup]) -> Mapping[str, str]:
    """Where the programs of somebody's own engines stand, by the name that visits know."""
    found: dict[str, str] = {}
    for setup in setups:
        own: OwnPrograms | None = registry.engine_part_or_none(setup.engine, "own_programs")
        found |= {} if own is None else own.keep(setup)
    return found


def install(command: tuple[str, ...], display: Display) -> None:
    """Run the distribution's package tool; CommandFailed with its own words if it fails."""
    commands = Commands()
    display.note(f"installing: {' '.join(command)}")
    tool, *words = command
    unasked = {"DEBIAN_FRONTEND": "noninteractive"}
    quietly = _APT_QUIETLY if tool == "apt-get" else ()
    if tool == "apt-get":
        commands.run([tool, *quietly, "update"], timeout_s=600, extra_environment=unasked)
    commands.run([tool, *quietly, *words], timeout_s=3600, extra_environment=unasked)


def is_root() -> bool:
    """Whether this process may format and mount."""
    return os.geteuid() == 0
