"""`bedplate run`: what is allowed, and what is said when a start has ended, of one that adds to a study too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.campaign import running
from bedplate.campaign.display import Display, display_for_terminal
from bedplate.campaign.planning import PlannedStudy, own_plans, planned_study, work_out
from bedplate.campaign.preparation import MadeAnyway, builds_to_make, preparations
from bedplate.campaign.running import Consent, StudyOutcome, ensure_requirements
from bedplate.cli.asking import agreed, say_answer
from bedplate.cli.printing import study_at
from bedplate.errors import BuildFailed
from bedplate.executors.protocol import AfterRepetition, StartOutcome
from bedplate.model.cell import BuildLevels, engine_model
from bedplate.units import format_count, format_duration

if TYPE_CHECKING:
    from bedplate.executors.qemu.kernels import GuestKernel


def consent(erase: Sequence[str] = (), *, erase_foreign: bool = False, yes: bool = False) -> Consent:
    """What the command line allows; the rest is asked."""
    return Consent(tuple(erase), erase_foreign, yes, ask=agreed)


def run(
    plan: Path,
    study: Path,
    *,
    consent: Consent,
    executor: str | None = None,
    retry_failed: bool = False,
    answers: bool = True,
    doubts: bool = True,
    after_repetition: AfterRepetition | None = None,
) -> int:
    """Run a plan into a study, or go on with it; without `answers` the caller says what the study answers, without `doubts` it told them."""
    outcome = running.run(
        plan,
        study,
        consent=consent,
        executor=executor,
        retry_failed=retry_failed,
        doubts=doubts,
        watch=display_for_terminal,
        after_repetition=after_repetition,
    )
    chosen = f" --executor {executor}" if executor else ""
    return tell(outcome, f"bedplate run {plan} --study {outcome.study}{chosen}", answers=answers)


def add_to_study(
    study: Path,
    *,
    repetitions: int | None,
    add: Path | None,
    consent: Consent,
    executor: str | None,
    retry_failed: bool,
) -> int:
    """Add repetitions, or what a plan adds, to a study, and run what is due."""
    outcome = running.extend(
        study_at(study),
        repetitions=repetitions,
        plan=add,
        consent=consent,
        executor=executor,
        retry_failed=retry_failed,
        watch=display_for_terminal,
    )
    return tell(outcome, f"bedplate run {outcome.study} --repetitions {outcome.plan.repetitions}")


def tell(outcome: StudyOutcome, go_on: str, *, answers: bool = True) -> int:
    """What a person wants to know at the end of a start, what the study answers last; its exit code."""
    start = outcome.start
    if start is None:
        print(f"{outcome.study} is complete: {format_count(outcome.visits, 'visit')}")
    else:
        tell_start(start, outcome.kernel_release, go_on)
        if start.needs_kernel is not None:
            return outcome.exit_code
    if outcome.failed:
        print(
            f"{outcome.failed} of {format_count(outcome.visits, 'visit')} failed: `bedplate show {outcome.study} --status` says why. When that is mended, "
            f"`{go_on} --retry-failed` does them again"
        )
    if answers:
        say_answer(outcome.study)
    return outcome.exit_code


def tell_start(start: StartOutcome, kernel_release: str, go_on: str) -> None:
    """What a start did, and how to go on where it did not do all; `kernel_release` is the running one."""
    print(
        f"{format_count(start.completed, 'visit')} completed, {start.failed} failed, in {format_duration(start.seconds)}"
    )
    if start.needs_kernel is not None:
        print(
            f"the next visit needs kernel {start.needs_kernel}, this is {kernel_release}; "
            f"boot that one, then go on with: {go_on}"
        )
        return
    if start.stopped_after is not None:
        print(
            f"no repetition was begun behind number {start.stopped_after}, as it would have ended beyond the budget; the rest of the plan: {go_on}"
        )
    for sentence in (*start.not_built, *start.left_behind):
        print(sentence)
    if start.not_built:
        print(f"visits of what was not built did not run; when it builds they are due: {go_on}")
    elif start.left_behind:
        print(f"visits that did not run are due again: {go_on}")


def setup(
    plan: Path | None,
    *,
    yes: bool,
    tarball: Path | None,
    executor: str | None = None,
    kernels: tuple[str, ...] = (),
    zfs: bool = False,
) -> None:
    """Install what is missing, build every PostgreSQL that the plan needs, fetch what its guests need.

    `kernels` are fetched whatever the plan asks for. `zfs` builds ZFS's modules for them, else for the
    kernels of the plan's guests.
    """
    from bedplate.campaign.preparation import drivers_of_plan, prepare_builds, prepare_inputs  # noqa: PLC0415

    if plan is None and (kernels or zfs):
        with display_for_terminal() as display:
            fetched = _prepare_kernels(kernels or (None,), display, zfs=zfs)
        for kernel in fetched:
            print(f"kernel {kernel.release}  ({kernel.origin})")
        return
    path = plan or own_plans() / "quick.toml"
    found = planned_study(path, executor=executor)
    with display_for_terminal() as display:
        ensure_requirements(found, display, consent(yes=yes))
        asked = kernels or (found.executor.kernels(found.plan) if zfs else ())
        if asked:
            _prepare_kernels(asked, display, zfs=zfs)
        # Once more: with the kernels there it is known what they take.
        found = work_out(found)
        found.executor.prepare_cells(found.cells, display)
        drivers = drivers_of_plan(found.plan, found.workloads)
        builds = prepare_builds(found.cells, display, sources=found.plan.sources, tarball=tarball)
        made = MadeAnyway(builds.made, found.cells, found.plan.archives)
        inputs = prepare_inputs(found.datasets, display, made)
    for build in builds.made.values():
        sha256 = f", sha256 {build.source_sha256[:16]}…" if build.source_sha256 else ""
        print(f"{build.prefix}  ({build.source_origin}{sha256})")
    for paths in inputs.values():
        print(*paths.values(), sep="\n")
    failed = (*builds.failed.values(), *drivers.failed.values())
    if failed:
        raise BuildFailed(*(reason for error in failed for reason in error.reasons))


def _prepare_kernels(
    asked: tuple[str | None, ...], display: Display, *, zfs: bool
) -> tuple[GuestKernel, ...]:
    from bedplate.executors.qemu.executor import prepare_kernels, prepare_zfs  # noqa: PLC0415

    fetched = prepare_kernels(asked, display).kernels
    if zfs:
        prepare_zfs(fetched, display)
    return fetched


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


class FetchWork(BuildWork):
    """What somebody else compiled, and packages bring."""

    @property
    def words(self) -> str:
        """`30 s to fetch PostgreSQL 17 of the distribution's packages`."""
        return f"{format_duration(self.seconds)} to fetch {self.what}"


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
        (FetchWork if all(each.is_fetched for each in group) else BuildWork)(
            _of_engine(tree, group), len(group), sum(map(preparations()[engine].seconds, group))
        )
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
