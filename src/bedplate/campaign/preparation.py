"""What must be there before the first visit: system packages, builds of engines, native drivers, data."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from bedplate import registry
from bedplate.errors import BuildFailed
from bedplate.executors.local import LocalExecutor
from bedplate.executors.protocol import Executor
from bedplate.filesystem import aged_image, kept_dataset
from bedplate.host.cache import Unused, days_since, unused_folders
from bedplate.host.command import Commands
from bedplate.host.files import cache_directory, file_lock_if_free
from bedplate.host.mount import holders
from bedplate.host.native_driver import (
    LIBFUSE3,
    BuildProgress,
    Library,
    compiler_requirements,
    ensure_driver,
    library_requirement,
)
from bedplate.host.recorder import DRIVER as RECORDER
from bedplate.host.requirement import Requirement, look
from bedplate.installation import shipped
from bedplate.model.cell import UNTORN_OFF, BuildLevels, Cell, ClusterLevels, Dataset, PlanSources, SourceTree
from bedplate.model.levels import Levels
from bedplate.model.plan import EngineSetup, Plan
from bedplate.model.visit import EngineBuild
from bedplate.visit.declaration import UNTORN_SHIM
from bedplate.visit.recording import Driver, drivers_of

if TYPE_CHECKING:
    from bedplate.campaign.display import Display


class EnginePreparation(Protocol):
    """Builds of one engine, each made once."""

    def words(self, build_levels: BuildLevels) -> str:
        """What a person calls a build."""

    def is_there(self, build_levels: BuildLevels) -> bool:
        """Whether the cache has it."""

    def seconds(self, build_levels: BuildLevels) -> float:
        """What making it takes: as long as former ones did here, else as on two idle cores."""

    def requirements(self, build_levels: Iterable[BuildLevels]) -> tuple[Requirement, ...]:
        """What making these needs of the system, found or not."""

    def ensure(
        self,
        build_levels: BuildLevels,
        progress: Callable[[BuildProgress], None],
        *,
        tarball: Path | None,
        sources: PlanSources | None = None,
    ) -> EngineBuild:
        """Made now where the cache lacks it; `tarball` is an own source, `sources` are the plan's trees and patches.

        BuildFailed where somebody's own source cannot be built: the cells of other builds can still be measured.
        """

    def unused(self, cache: Path, commands: Commands) -> Iterator[Unused]:
        """Builds of it in the cache that nothing uses any more. Changes nothing."""


class ServerChoice(Protocol):
    """The role `server_choice`: of an engine whose server may be compiled here, fetched, or there already."""

    def levels(self, server: str | None) -> BuildLevels:
        """What a plan asks for the server that is named, or where none is for the one that suits here; RequirementMissing where there is none."""

    def words(self, build_levels: BuildLevels) -> str:
        """What it is called, and why it is the one."""


def server_choice() -> ServerChoice:
    """That of the engine that a plan has where it names none."""
    choice: ServerChoice = registry.engine_part(next(iter(registry.ENGINES)), "server_choice")
    return choice


@dataclass(frozen=True)
class NamedEngine:
    """An engine in a folder of somebody's: what it is called, and `table` as a plan names it, with settings."""

    name: str
    table: str


class OwnPrograms(Protocol):
    """The role `own_programs`: of an engine whose programs somebody names in a plan."""

    def engine_in(self, folder: Path, settings: Mapping[str, Sequence[str]]) -> NamedEngine:
        """The engine in a folder; PlanError where it is none, or has no such setting or value."""

    def keep(self, engine_setup: EngineSetup) -> Mapping[str, str]:
        """Where visits find them, by the name that they know; copied now where the cache lacks them."""

    def unused(self, cache: Path, days: float) -> Iterator[Unused]:
        """Programs in the cache that nothing uses any more. Changes nothing."""


class OwnLibrary(Protocol):
    """The role `own_library`: of an engine that is a library, whose source somebody may name in a plan.

    `settings` are those of cells that say which, of which a cell has one at most; cells without take the distribution's.
    """

    settings: tuple[str, ...]

    def ensure(self, level: str, path: str | None, source_tree: SourceTree | None = None) -> Library:
        """What drivers are linked with, compiled now where the cache lacks it; `path` or `source_tree` is where the source lies, if that is known.

        BuildFailed where somebody's own source cannot be built: the cells of other libraries can still be measured.
        """


def preparations() -> Mapping[str, EnginePreparation]:
    """Those of all engines that have one, by the engine's name."""
    return registry.engine_parts("preparation")


# What is kept for the next start goes unused when nobody has asked for it for so many days.
UNUSED_DAYS = 30.0


@dataclass(frozen=True)
class MadeAnyway:
    """What a start has beside its datasets: builds by their levels, cells, and where a plan's archives lie, by checksum."""

    builds: Mapping[BuildLevels, EngineBuild] = field(default_factory=dict)
    cells: Sequence[Cell] = ()
    archives: Mapping[str, str] = field(default_factory=dict)

    def build_of(self, engine: str) -> EngineBuild | None:
        """The first build of an engine, for who asks for any."""
        return next((build for levels, build in self.builds.items() if levels.engine == engine), None)

    def clusters(self, engine: str) -> Iterator[tuple[EngineBuild, ClusterLevels]]:
        """The different clusters of an engine, each with its build."""
        asked = dict.fromkeys(
            (cell.build, cell.cluster) for cell in self.cells if cell.build.engine == engine
        )
        return ((self.builds[levels], cluster) for levels, cluster in asked)


class DatasetInputs(Protocol):
    """The role `inputs` of a workload; one that makes nothing beforehand has no such file."""

    def make(
        self,
        dataset: Dataset,
        resources: MadeAnyway,
        tell: Callable[[str, int, int], None],
    ) -> Mapping[str, str]:
        """What a dataset needs, by the name that the workload knows it by; made now where the cache lacks it.

        `tell` is given what is done, how far it is, and of how much.
        """

    def obstacle(self, dataset: Dataset, *, on_nodes: bool) -> str | None:  # noqa: ARG002 -- of those that need somebody's files
        """Why it cannot be made here for this dataset, or handed to the nodes of a fleet; None where it can. Changes nothing."""
        return None

    def unused(self, cache_directory: Path, days: float) -> Iterator[Unused]:  # noqa: ARG002 -- of those that keep folders of their own
        """What the cache holds of it that nothing uses any more, or that nobody has asked for in more than so many days. Changes nothing."""
        return iter(())


def inputs_by_workload() -> Mapping[str, DatasetInputs]:
    """Those of all workloads that have some."""
    return registry.parts("inputs")


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
    drivers = (
        *drivers_of(workloads, engines),
        *((_EMULATED,) if any(cell.device.latency is not None for cell in cells) else ()),
    )
    libraries = {
        library: library_requirement(
            library, reason=f"the driver {driver.name} is compiled with it", commands=Commands()
        )
        for driver in drivers
        for library in driver.libraries
    }
    compiler = compiler_requirements("compiles the drivers of workloads") if drivers else ()
    return (*compiler, *libraries.values())


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
            display.note(f"{'fetched' if levels.is_fetched else 'built'} {name}")
    return PreparedBuilds(builds, failed)


def prepare_inputs(
    datasets: Iterable[Dataset], display: Display, resources: MadeAnyway
) -> Mapping[Dataset, Mapping[str, str]]:
    """What is made for datasets beforehand, by the name a workload knows it by; made now where the cache lacks it."""
    makers = inputs_by_workload()
    inputs = {
        dataset: makers[dataset.workload].make(dataset, resources, display.preparing)
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


# As requirements/environment.sh names and marks them.
_ENVIRONMENT = re.compile(r"(runtime|development|package)-.+")

_COMPLETE, _REQUIREMENTS, _USED_BY = "complete", "requirements.txt", "used-by"
_BLOCK_BYTES = 512


@dataclass(frozen=True)
class Spare:
    """A folder that nothing uses, and why; `held` says who stands on it all the same.

    `lock` is held by whoever makes such a folder, `mark` is the file that makes it count.
    """

    path: Path
    reason: str
    size_bytes: int
    lock: Path
    mark: str
    held: tuple[str, ...] = ()


def find_spare(
    cache: Path, *, checkout: Path, commands: Commands, days: float = UNUSED_DAYS
) -> tuple[Spare, ...]:
    """Every folder of `cache` that nothing uses. Changes nothing.

    `checkout` is this bedplate's own, whose requirements count even where no launcher noted them. What is
    kept for the next start is unused when nothing asked for it in more than `days`.
    """
    own: Mapping[str, OwnPrograms] = registry.engine_parts("own_programs")
    unused = chain(
        _unused_environments(cache / "environments", checkout),
        *(made.unused(cache, commands) for made in preparations().values()),
        *(programs.unused(cache, days) for programs in own.values()),
        *(made.unused(cache, days) for made in inputs_by_workload().values()),
        _unused_images(
            kept_dataset.datasets_directory(cache),
            kept_dataset.RECORD,
            kept_dataset.is_whole,
            "a loaded dataset",
            days,
        ),
        _unused_images(
            aged_image.aged_directory(cache),
            aged_image.RECORD,
            aged_image.is_whole,
            "an aged file system",
            days,
        ),
    )
    return tuple(
        Spare(found.path, found.reason, _size_bytes(found.path), found.lock, found.mark, holders(found.path))
        for found in unused
    )


def remove(spare: Spare) -> str | None:
    """Remove a folder, its mark first; None when it is gone, else a sentence that says why it is not."""
    with ExitStack() as stack:
        try:
            spare.lock.touch()
            if not stack.enter_context(file_lock_if_free(spare.lock)):
                return f"{spare.path} is being made at this moment"
            held = holders(spare.path)
            if held:
                return f"{spare.path} is in use: {held[0]}"
            (spare.path / spare.mark).unlink(missing_ok=True)
            shutil.rmtree(spare.path)
        except OSError as error:
            return f"{error.filename or spare.path}: {error.strerror or error}"
    return None


def _unused_environments(directory: Path, checkout: Path) -> Iterator[Unused]:
    own = [checkout / "requirements" / f"{name}.txt" for name in ("runtime", "development", "package")]
    for path in sorted(directory.iterdir()) if directory.is_dir() else ():
        name = _ENVIRONMENT.fullmatch(path.name)
        # A link is somebody's own business.
        if name is None or not path.is_dir() or path.is_symlink() or path.samefile(sys.prefix):
            continue
        if not (path / _COMPLETE).exists():
            reason = "half made by a start that was ended"
        elif not _is_wanted(path, own):
            reason = "no checkout has the requirements that it was made from"
        else:
            continue
        yield Unused(path, reason, directory / f"{name[1]}.lock", _COMPLETE)


def _is_wanted(environment: Path, requirement_files: list[Path]) -> bool:
    made_from = _read_bytes(environment / _REQUIREMENTS)
    noted = [line for line in _read_bytes(environment / _USED_BY).split(b"\n") if line.startswith(b"/")]
    users = [*map(os.fspath, requirement_files), *map(os.fsdecode, noted)]
    return bool(made_from) and any(_read_bytes(user) == made_from for user in users)


def _unused_images(
    directory: Path, record_file: str, is_whole: Callable[[Path], bool], kind: str, at_most_days: float
) -> Iterator[Unused]:
    """Of folders that hold an image and the record that is touched by whoever uses it."""

    def reason_of(path: Path) -> str | None:
        if not is_whole(path):
            return f"not a whole image of {kind}"
        days = days_since(path / record_file)
        return f"no visit has asked for it for {days:.0f} days" if days > at_most_days else None

    return unused_folders(directory, record_file, reason_of)


def _size_bytes(directory: Path) -> int:
    """What the disk gets back: allocated blocks, a file with several names counted once."""
    seen: dict[tuple[int, int], int] = {}
    for folder, _, files in os.walk(directory):
        for name in (".", *files):
            try:
                found = os.lstat(os.path.join(folder, name))  # noqa: PTH118 -- thousands of files
            except FileNotFoundError:
                continue
            seen[found.st_dev, found.st_ino] = found.st_blocks * _BLOCK_BYTES
    return sum(seen.values())


def _read_bytes(path: Path | str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 -- a name as it was noted
            return file.read()
    except OSError:
        return b""
