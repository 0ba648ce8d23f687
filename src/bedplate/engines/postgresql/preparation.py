"""What must be there before a PostgreSQL is started: a build for each version and its block sizes."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from bedplate.campaign.dataset_inputs import Unused
from bedplate.engines.postgresql.builds.build import (
    builds_directory,
    ensure_build,
    find_build,
    is_current,
    read_build,
)
from bedplate.engines.postgresql.builds.build_record import STAMP, BuildSpec
from bedplate.engines.postgresql.builds.requirements import build_requirements
from bedplate.host.cache import cache_directory
from bedplate.host.command import Commands
from bedplate.host.whole_folder import is_work_folder, lock_of
from bedplate.units import KIB

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from bedplate.campaign.engine_preparation import EnginePreparation
    from bedplate.host.build_progress import BuildProgress
    from bedplate.host.requirement import Requirement
    from bedplate.model.cell import BuildLevels
    from bedplate.model.source_commit import PlanSources
    from bedplate.model.visit import EngineBuild

# About 515 CPU seconds, on two idle cores.
_BUILD_S = 260.0


class PostgresqlPreparation:
    """Builds in the cache."""

    def words(self, levels: BuildLevels) -> str:
        """`PostgreSQL 18, 8 kB blocks`; the commit and the patches of somebody's own."""
        return f"{BuildSpec.of(levels).words}, {levels.block_size_bytes // KIB} kB blocks"

    def is_there(self, levels: BuildLevels) -> bool:
        """As a finished build."""
        found = find_build(BuildSpec.of(levels), cache_directory=cache_directory(), commands=Commands())
        return found is not None

    def seconds(self, levels: BuildLevels) -> float:  # noqa: ARG002 -- sizes and commits take alike
        """The median of those in the cache."""
        directory = builds_directory(cache_directory())
        stamps = map(read_build, sorted(directory.iterdir()) if directory.is_dir() else ())
        return median([build.build_seconds for build in stamps if build is not None] or [_BUILD_S])

    def requirements(self, levels: Iterable[BuildLevels]) -> tuple[Requirement, ...]:
        """Compilers and generators, which are the version's."""
        specs = dict.fromkeys(
            BuildSpec(each.version, source_commit=each.source_commit, patches=each.patches[:1])
            for each in levels
        )
        return tuple(dict.fromkeys(item for spec in specs for item in build_requirements(spec)))

    def ensure(
        self,
        levels: BuildLevels,
        progress: Callable[[BuildProgress], None],
        *,
        tarball: Path | None,
        sources: PlanSources | None = None,
    ) -> EngineBuild:
        """Fetched and compiled, minutes each."""
        return ensure_build(
            BuildSpec.of(levels, tarball),
            cache_directory=cache_directory(),
            commands=Commands(),
            progress=progress,
            sources=sources,
        ).for_visit

    def unused(self, cache: Path, commands: Commands) -> Iterator[Unused]:
        """Half made ones, and those that this bedplate would make in another way now."""
        directory = builds_directory(cache)
        for path in sorted(directory.iterdir()) if directory.is_dir() else ():
            # A link is somebody's own business.
            if path.is_dir() and not path.is_symlink() and (reason := _why_unused(path, commands)):
                yield Unused(path, reason, lock_of(path), STAMP)


def _why_unused(path: Path, commands: Commands) -> str | None:
    if is_work_folder(path):
        return "half made by a start that was ended"
    if not path.name.startswith("postgresql-"):
        return None
    build = read_build(path)
    if build is None:
        return "not a whole build"
    if is_current(build, commands=commands):
        return None
    return f"another compiler, other options or another recipe would be used now; it is by {build.compiler}"


PREPARATION: EnginePreparation = PostgresqlPreparation()
