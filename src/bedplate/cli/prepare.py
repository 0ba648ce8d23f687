"""`bedplate setup`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.campaign.dataset_inputs import MadeAnyway
from bedplate.campaign.display import display_for_terminal
from bedplate.campaign.planning import own_plans, planned_study, work_out
from bedplate.campaign.requirements import ensure_requirements
from bedplate.cli.running import consent
from bedplate.errors import BuildFailed

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.campaign.display import Display
    from bedplate.executors.qemu.kernels import GuestKernel


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
    from bedplate.executors.qemu.preparation import prepare_kernels, prepare_zfs  # noqa: PLC0415

    fetched = prepare_kernels(asked, display).kernels
    if zfs:
        prepare_zfs(fetched, display)
    return fetched
