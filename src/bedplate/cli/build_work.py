"""What is compiled before the first visit, and what that takes: of that alone which the cache lacks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.campaign.engine_preparation import preparations
from bedplate.campaign.preparation import builds_to_make
from bedplate.model.engine import engine_model
from bedplate.units import format_count, format_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bedplate.campaign.planning import PlannedStudy
    from bedplate.model.cell import BuildLevels


@dataclass(frozen=True)
class BuildWork:
    """Builds of one source. `what` is called as in “to build 2 commits of ~/src/postgres”."""

    what: str
    builds: int
    seconds: float

    @property
    def words(self) -> str:
        """`8 min 40 s to build 2 commits of ~/src/postgres`."""
        return f"{format_duration(self.seconds)} to build {self.what}"


def build_work(found: PlannedStudy) -> tuple[BuildWork, ...]:
    """Kernels first, as a start makes them. Changes nothing."""
    return (*_of_kernels(found), *_of_engines(found))


def _of_kernels(found: PlannedStudy) -> list[BuildWork]:
    seconds = found.executor.kernels_to_build(found.plan)
    sources = found.plan.sources.kernels
    of_tree: dict[str, list[str]] = {}
    for level in seconds:
        of_tree.setdefault(sources[level].tree.tree, []).append(level)
    return [
        BuildWork(
            _of_commits(tree, len(levels), len({sources[each].digits for each in levels})),
            len(levels),
            sum(seconds[each] for each in levels),
        )
        for tree, levels in of_tree.items()
    ]


def _of_engines(found: PlannedStudy) -> list[BuildWork]:
    trees = found.plan.sources.trees
    grouped: dict[tuple[str, str | None], list[BuildLevels]] = {}
    for levels in builds_to_make(found.cells):
        tree = trees.get(levels.source_commit or "")
        grouped.setdefault((levels.engine, None if tree is None else tree.tree), []).append(levels)
    return [
        BuildWork(_of_engine(tree, group), len(group), sum(map(preparations()[engine].seconds, group)))
        for (engine, tree), group in grouped.items()
    ]


def _of_engine(tree: str | None, group: Sequence[BuildLevels]) -> str:
    if tree is not None:
        return _of_commits(tree, len(group), len({each.source_commit for each in group}))
    if len(group) == 1:
        return preparations()[group[0].engine].words(group[0])
    return f"{engine_model(group[0].engine).label}, {len(group)} builds"


def _of_commits(tree: str, builds: int, commits: int) -> str:
    words = f"{format_count(commits, 'commit')} of {tree}"
    return words if builds == commits else f"{words}, {builds} builds"
