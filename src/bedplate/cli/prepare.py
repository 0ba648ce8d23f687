"""`bedplate setup`, and the first half of every other command that measures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.cli.consent import agreed
from bedplate.cli.planning import Prospect, cells_of, datasets_of, own_plans, prospect, workloads_of
from bedplate.errors import RequirementMissing

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bedplate.executor.display import Display
    from bedplate.executor.qemu.kernels import GuestKernel
    from bedplate.host.requirement import Requirement


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
    from bedplate.executor.display import display_for_terminal  # noqa: PLC0415
    from bedplate.executor.preparation import prepare_builds, prepare_drivers, prepare_inputs  # noqa: PLC0415

    if plan is None and (kernels or zfs):
        with display_for_terminal() as display:
            fetched = _prepare_kernels(kernels or (None,), display, zfs=zfs)
        for kernel in fetched:
            print(f"kernel {kernel.release}  ({kernel.origin})")
        return
    path = plan or own_plans() / "quick.toml"
    found = prospect(path, executor=executor)
    with display_for_terminal() as display:
        ensure_requirements(found, display, yes=yes)
        if kernels or (zfs and found.choice.platform.has_guests):
            _prepare_kernels(kernels or _asked_kernels(found), display, zfs=zfs)
        # Once more: with the kernels there it is known what they take.
        found = prospect(path, executor=executor)
        if found.choice.platform.has_guests:
            from bedplate.executor.guest_preparation import prepare_guests  # noqa: PLC0415

            prepare_guests(cells_of(found), display)
        prepare_drivers(workloads_of(found))
        builds = prepare_builds(cells_of(found), display, tarball=tarball)
        inputs = prepare_inputs(datasets_of(found), display, builds.values())
    for build in builds.values():
        print(f"{build.prefix}  ({build.source_origin}, sha256 {build.source_sha256[:16]}…)")
    for paths in inputs.values():
        print(*paths.values(), sep="\n")


def _asked_kernels(found: Prospect) -> tuple[str | None, ...]:
    """Those of the whole plan: a cell with ZFS is pruned until its modules are there."""
    return tuple(dict.fromkeys(levels.release for levels in found.plan.kernels))


def _prepare_kernels(
    asked: tuple[str | None, ...], display: Display, *, zfs: bool
) -> tuple[GuestKernel, ...]:
    from bedplate.executor.guest_preparation import prepare_kernels, prepare_zfs  # noqa: PLC0415

    fetched = prepare_kernels(asked, display)
    if zfs:
        prepare_zfs(fetched, display)
    return fetched


def ensure_requirements(found: Prospect, display: Display, *, yes: bool) -> None:
    """Everything that the plan needs of the system; for guests their kernels as well.

    RequirementMissing with the exact command when nobody can be asked, or the answer is no.
    """
    from bedplate.executor.preparation import requirements_of  # noqa: PLC0415

    if found.choice.platform.has_nodes:
        from bedplate.executor.preparation import submitting_requirements_of  # noqa: PLC0415
        from bedplate.executor.slurm.controller import require_slurm  # noqa: PLC0415

        require_slurm()
        _ensure_packages(
            lambda: submitting_requirements_of(cells_of(found), workloads_of(found)), display, yes=yes
        )
        return
    if not found.choice.platform.has_guests:
        _ensure_packages(lambda: requirements_of(cells_of(found), workloads_of(found)), display, yes=yes)
        return
    from bedplate.executor.guest_preparation import (  # noqa: PLC0415
        guest_requirements_of,
        prepare_kernels,
    )

    _ensure_packages(lambda: guest_requirements_of(cells_of(found), workloads_of(found)), display, yes=yes)
    prepare_kernels(_asked_kernels(found), display)


def _ensure_packages(
    requirements: Callable[[], tuple[Requirement, ...]], display: Display, *, yes: bool
) -> None:
    """Name what is missing, and install it after a yes."""
    from bedplate.executor.preparation import install, is_root  # noqa: PLC0415
    from bedplate.host.requirement import install_command, missing, read_os_release  # noqa: PLC0415

    lacking = missing(requirements())
    if not lacking:
        return
    command = install_command(lacking, os_release=read_os_release())
    sentences = [item.sentence for item in lacking]
    if command is None:
        raise RequirementMissing(*sentences, "this distribution is not known; install these by hand")
    shown = " ".join(command)
    if not is_root():
        raise RequirementMissing(*sentences, f"install them: sudo {shown}")
    if not yes:
        for sentence in sentences:
            print(sentence)
        if not agreed(f"Install them now with `{shown}`?"):
            raise RequirementMissing(*sentences, f"install them: {shown}")
    install(command, display)
    still = missing(requirements())
    if still:
        raise RequirementMissing(*(f"after installing: {item.sentence}" for item in still))
