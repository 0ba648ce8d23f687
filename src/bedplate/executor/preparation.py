"""What must be there before the first visit: system packages, PostgreSQL builds, native drivers, data."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.engine.native import ensure_driver, library_requirement
from bedplate.engine.postgresql.build import BuildProgress, BuildSpec, ensure_build, find_build
from bedplate.engine.postgresql.requirements import build_requirements
from bedplate.executor.tpch_data import TpchProgress, ensure_tpch_data
from bedplate.filesystem.registry import filesystem_for
from bedplate.host.cache import cache_directory
from bedplate.host.command import Commands
from bedplate.host.requirement import Need, Requirement, look, missing
from bedplate.model.raw import PG_TEST_FSYNC
from bedplate.model.tpch import WORKLOAD as TPCH
from bedplate.workload.registry import workload_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bedplate.executor.display import Display
    from bedplate.model.cell import BuildLevels, Cell, Dataset
    from bedplate.model.visit import EngineBuild

_ALWAYS = (
    Need("mount", "mount", "mounts the file systems"),
    Need("losetup", "mount", "puts an image file behind a block device"),
    Need("blkid", "util-linux", "recognises what is on a scratch device"),
)
# Without a pseudo terminal between them dpkg's errors stay on standard error, whose end a failure quotes.
_APT_QUIETLY = ("-qq", "-o", "Dpkg::Use-Pty=0")


def requirements_of(cells: Iterable[Cell], workloads: Iterable[str] = ()) -> tuple[Requirement, ...]:
    """Everything that these cells and types of workloads need of the system, found or not, each once."""
    cells = tuple(cells)
    needs: list[Need] = list(_ALWAYS)
    for kind in dict.fromkeys(cell.filesystem.type for cell in cells):
        needs += filesystem_for(kind).needs
    return tuple(
        dict.fromkeys(
            (
                *look(dict.fromkeys(needs)),
                *workload_requirements_of(workloads),
                *build_requirements_of(cells),
            )
        )
    )


def workload_requirements_of(workloads: Iterable[str]) -> tuple[Requirement, ...]:
    """The programs and libraries that these types of workloads need, found or not."""
    known = [workload_for(name) for name in dict.fromkeys(workloads)]
    libraries = {
        library: library_requirement(
            library, reason=f"the driver {driver.name} is compiled with it", commands=Commands()
        )
        for workload in known
        for driver in workload.drivers
        for library in driver.libraries
    }
    return (*look(dict.fromkeys(need for workload in known for need in workload.needs)), *libraries.values())


def build_requirements_of(cells: Iterable[Cell]) -> tuple[Requirement, ...]:
    """What the builds need that these cells lack, found or not."""
    unbuilt = [levels for levels in builds_of(cells) if _find(levels) is None]
    versions = dict.fromkeys(levels.version for levels in unbuilt)
    return tuple(item for version in versions for item in build_requirements(version))


def submitting_requirements_of(
    cells: Iterable[Cell], workloads: Iterable[str] = ()
) -> tuple[Requirement, ...]:
    """What the machine needs that builds for a fleet and submits to it: no program that only a visit starts."""
    kinds = tuple(dict.fromkeys(workloads))
    programs = {need.name for name in kinds for need in workload_for(name).needs}
    found = (*workload_requirements_of(kinds), *build_requirements_of(cells))
    return tuple(item for item in found if item.name not in programs)


def missing_of(cells: Iterable[Cell], workloads: Iterable[str] = ()) -> tuple[Requirement, ...]:
    """Those that are not there."""
    return missing(requirements_of(cells, workloads))


def builds_of(cells: Iterable[Cell]) -> tuple[BuildLevels, ...]:
    """The different builds of these cells, in order."""
    return tuple(dict.fromkeys(cell.build for cell in cells if cell.build.has_postgresql))


def prepare_builds(
    cells: Iterable[Cell], display: Display, *, tarball: Path | None = None
) -> Mapping[BuildLevels, EngineBuild]:
    """Every build of these cells, made now where the cache lacks it."""
    wanted = builds_of(cells)
    builds = {}
    for number, levels in enumerate(wanted, start=1):
        name = f"PostgreSQL {levels.version}, {levels.block_size_bytes // 1024} kB blocks ({number} of {len(wanted)})"

        def tell(progress: BuildProgress, name: str = name) -> None:
            display.preparing(f"{name}: {progress.step}", progress.done or 0, progress.total or 0)

        made_now = _find(levels) is None
        builds[levels] = ensure_build(
            _spec(levels, tarball),
            cache_directory=cache_directory(),
            commands=Commands(),
            progress=tell,
        ).for_visit
        if made_now:
            display.note(f"built {name}")
    return builds


def prepare_inputs(
    datasets: Iterable[Dataset], display: Display, builds: Iterable[EngineBuild] = ()
) -> Mapping[Dataset, Mapping[str, str]]:
    """What is made for datasets beforehand, by the name a workload knows it by; made now where the cache lacks it.

    A dataset that asks for a program of PostgreSQL gets those of the first of `builds`.
    """
    found: dict[Dataset, Mapping[str, str]] = {}
    programs = next((str(Path(build.prefix) / "bin") for build in builds), None)
    for dataset in dict.fromkeys(datasets):
        if dataset.levels.get(PG_TEST_FSYNC) is True and programs is not None:
            found[dataset] = {PG_TEST_FSYNC: programs}
        scale_factor = dataset.levels.number("scale_factor")
        if dataset.workload != TPCH or scale_factor is None:
            continue
        name = f"TPC-H data, scale factor {scale_factor:g}"

        def tell(progress: TpchProgress, name: str = name) -> None:
            display.preparing(f"{name}: {progress.step}", progress.done, progress.total)

        data = ensure_tpch_data(
            scale_factor, cache_directory=cache_directory(), commands=Commands(), progress=tell
        )
        found[dataset] = {TPCH: str(data.directory)}
    return found


def prepare_drivers(workloads: Iterable[str]) -> Mapping[str, str]:
    """Paths of the native drivers of these types of workloads by name, compiled now where the cache lacks them."""
    sources = Path(__file__).resolve().parents[3] / "drivers"
    drivers = dict.fromkeys(driver for name in workloads for driver in workload_for(name).drivers)
    return {
        driver.name: str(
            ensure_driver(
                driver.name,
                source=sources / f"{driver.name}.c",
                cache_directory=cache_directory() / "drivers",
                commands=Commands(),
                libraries=driver.libraries,
            )
        )
        for driver in drivers
    }


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


def _spec(levels: BuildLevels, tarball: Path | None = None) -> BuildSpec:
    return BuildSpec(
        version=levels.version,
        block_size_bytes=levels.block_size_bytes,
        wal_block_size_bytes=levels.wal_block_size_bytes,
        tarball=tarball,
    )


def _find(levels: BuildLevels) -> object | None:
    return find_build(_spec(levels), cache_directory=cache_directory(), commands=Commands())
