"""Which executor lives a plan's visits, under which kernels, and why.

Looks at the machine and at the kernels in the cache; fetches nothing, starts nothing, needs no root.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from bedplate.host.cache import cache_directory
from bedplate.model.filesystem import TRAITS
from bedplate.model.source_commit import is_commit_level
from bedplate.model.template import first_of
from bedplate.plan.platforms import LOCAL, QEMU, SLURM, Platform
from bedplate.plan.rules import kernel_refusals
from bedplate.units import format_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from bedplate.model.cell import Cell, FilesystemLevels, KernelLevels
    from bedplate.model.machine import Machine
    from bedplate.model.plan import Plan

AUTO = "auto"
_MOST_NAMES = 6


class GuestKernels(Protocol):
    """What is known of guests before one runs."""

    def machine(self, asked: str | None) -> Machine | None:
        """The guest as a machine under the kernel that is asked for; None if that is not in the cache."""
        ...

    def releases(self) -> tuple[str, ...]:
        """Every kernel in the cache, the newest first."""
        ...


@dataclass(frozen=True)
class Chosen:
    """What was chosen (`executor`, `kernel`), which one, and why; a sentence of neither has no `what`."""

    words: str
    what: str = ""
    which: str = ""

    def __str__(self) -> str:
        return f"{self.what} {self.which}: {self.words}" if self.what else self.words


@dataclass(frozen=True)
class ExecutorChoice:
    """Where the cells of a plan run, and why."""

    platform: Platform
    reasons: tuple[Chosen, ...]

    @property
    def executor(self) -> str:
        """`local`, `qemu` or `slurm`."""
        return self.platform.executor


class CachedKernels:
    """The kernels that are in the cache; ZFS counts where its modules have been built."""

    def __init__(self, cache: Path, *, host: Machine, memory_bytes: int) -> None:
        self._cache = cache
        self._host = host
        self._memory_bytes = memory_bytes

    def machine(self, asked: str | None) -> Machine | None:
        """The guest as a machine; PlanError for a path that holds no kernel."""
        from bedplate.executors.qemu.kernels import find_kernel, guest_machine  # noqa: PLC0415
        from bedplate.executors.qemu.zfs_modules import with_zfs  # noqa: PLC0415

        kernel = find_kernel(asked, cache_directory=self._cache)
        if kernel is None:
            return None
        found = guest_machine(kernel, memory_bytes=self._memory_bytes, host=self._host)
        return with_zfs(found, kernel, self._cache)

    def releases(self) -> tuple[str, ...]:
        """Those in the cache, the newest first."""
        from bedplate.executors.qemu.kernels import known_kernels  # noqa: PLC0415

        return tuple(kernel.release for kernel in reversed(known_kernels(self._cache)))


def choose(plan: Plan, machine: Machine, *, kernels: GuestKernels) -> ExecutorChoice:
    """Where this plan would run now.

    `local`, `qemu` and `slurm` are taken at their word. `auto` is local for root under a kernel that has every
    file system of the plan, else qemu. A guest's kernel is the one that the plan names, else the
    executor's own if it takes every file system, else the newest that does, else one per cell.
    """
    executor, words = _executor(plan, machine)
    why = Chosen(words, "executor", executor)
    if executor in {LOCAL, SLURM}:
        return ExecutorChoice(Platform(executor), (why,))
    asked = tuple(levels.release for levels in plan.kernels)
    if asked != (None,):
        guests = _known(asked, kernels)
        return ExecutorChoice(Platform(QEMU, guests), (why, *_not_fetched(asked, guests)))
    guests = _known((None,), kernels)
    if None not in guests:
        return ExecutorChoice(Platform(QEMU), (why, *_not_fetched((None,), guests)))
    chosen, sentences = _kernels(plan, guests[None], kernels)
    guests |= _known(tuple(chosen.values()), kernels)
    return ExecutorChoice(Platform(QEMU, guests, chosen), (why, *sentences))


def recorded_choice(
    plan: Plan, machine: Machine, *, executor: str, cells: Iterable[Cell], kernels: GuestKernels
) -> ExecutorChoice:
    """The choice that a study was begun with; file systems that are new to it are chosen for now.

    `cells` are those that the study keeps, `executor` its own.
    """
    kept = {cell.filesystem: cell.kernel.release for cell in cells}
    now = choose(replace(plan, executor=executor), machine, kernels=kernels)
    chosen = {levels: release for levels, release in now.platform.chosen.items() if levels not in kept}
    if executor not in {LOCAL, SLURM}:
        chosen |= {levels: release for levels, release in kept.items() if release is not None}
    guests = now.platform.guests if executor in {LOCAL, SLURM} else _known((None, *chosen.values()), kernels)
    platform = Platform(executor, {**now.platform.guests, **guests}, chosen)
    begun_with_it = Chosen("the study was begun with it", "executor", executor)
    return ExecutorChoice(platform, (begun_with_it, *now.reasons[1:]))


def _executor(plan: Plan, machine: Machine) -> tuple[str, str]:
    if plan.executor != AUTO:
        # A plan may leave it out, and --executor may replace it. All three look alike here.
        asked = (
            "nothing else is asked for" if plan.executor == LOCAL else "the plan or --executor asks for it"
        )
        return plan.executor, asked
    if not machine.is_root:
        return QEMU, "this is not root, and a guest needs none"
    named = [levels.release for levels in plan.kernels if not levels.takes(machine.kernel_release)]
    if named:
        return QEMU, (
            f"the plan asks for kernel {_listed(map(str, named))}, this is {machine.kernel_release}"
        )
    here = set(machine.filesystems)
    types = dict.fromkeys(levels.type for levels in plan.filesystems)
    lacking = [kind for kind in types if not set(TRAITS[kind].kernel_types) & here]
    if lacking:
        return QEMU, f"the running kernel {machine.kernel_release} has no {_listed(lacking)}"
    return LOCAL, f"this is root, and kernel {machine.kernel_release} has every file system of the plan"


def _kernels(
    plan: Plan, own: Machine, kernels: GuestKernels
) -> tuple[dict[FilesystemLevels, str], tuple[Chosen, ...]]:
    """The kernel of each variant where it is not the executor's own, and why."""
    refused_by_own = _refused(plan, own)
    if not refused_by_own:
        return {}, (Chosen("it has every file system of the plan", "kernel", own.kernel_release),)
    others = {
        release: found
        for release in kernels.releases()
        if release != own.kernel_release and (found := kernels.machine(release)) is not None
    }
    refused = {release: _refused(plan, found) for release, found in others.items()}
    # What no kernel at hand takes is pruned under any, and decides nothing.
    hopeless = refused_by_own.intersection(*refused.values())
    if refused_by_own == hopeless:
        return {}, (Chosen("no kernel at hand takes more of the plan", "kernel", own.kernel_release),)
    for release, one in refused.items():
        if one == hopeless:
            why = "the newest at hand that has every file system of the plan"
            words = f"{why} ({own.kernel_release} lacks one)"
            return dict.fromkeys(plan.filesystems, release), (Chosen(words, "kernel", release),)
    chosen: dict[FilesystemLevels, str] = {}
    for levels in plan.filesystems:
        if levels in refused_by_own and levels not in hopeless:
            chosen[levels] = next(release for release, found in refused.items() if levels not in found)
    return chosen, (
        Chosen(
            f"no kernel at hand has every file system of the plan: {own.kernel_release}, and for what it lacks"
        ),
        *(
            Chosen(
                _listed(_variants(levels for levels, one in chosen.items() if one == release)),
                "kernel",
                release,
            )
            for release in dict.fromkeys(chosen.values())
        ),
    )


def _refused(plan: Plan, guest: Machine) -> frozenset[FilesystemLevels]:
    return frozenset(levels for levels in plan.filesystems if kernel_refusals(levels, guest))


def _known(asked: Iterable[str | None], kernels: GuestKernels) -> dict[str | None, Machine]:
    found = {release: kernels.machine(release) for release in dict.fromkeys(asked)}
    return {release: machine for release, machine in found.items() if machine is not None}


def _not_fetched(asked: tuple[str | None, ...], guests: Mapping[str | None, Machine]) -> tuple[Chosen, ...]:
    names = [release or "of guests" for release in asked if release not in guests]
    if not names:
        return tuple(
            Chosen(f"the plan asks for {release}", "kernel", guests[release].kernel_release)
            for release in asked
            if release is not None
        )
    which = _listed((names[0], *(f"kernel {name}" for name in names[1:])))
    built = any(is_commit_level(name) for name in names)
    done, does = ("built", "builds") if built else ("fetched", "fetches")
    words = f"not {done} yet, so what it lacks is not known; `bedplate setup PLAN` {does} it"
    return (Chosen(words, "kernel", which),)


def _variants(levels: Iterable[FilesystemLevels]) -> dict[str, None]:
    return dict.fromkeys(
        f"{one.type} with {format_size(one.block_size_bytes)} blocks" if one.block_size_bytes else one.type
        for one in levels
    )


def _listed(names: Iterable[str]) -> str:
    return first_of(list(names), _MOST_NAMES)


def runs_here(levels: KernelLevels) -> bool:
    """Whether this machine runs the kernel; one of the user's own is known by the release in its folder, or by that of its build."""
    running = os.uname().release
    if not levels.is_path and not levels.is_built:
        return levels.takes(running)
    from bedplate.executors.qemu.kernels import find_kernel  # noqa: PLC0415

    kernel = find_kernel(levels.release, cache_directory=cache_directory())
    return kernel is not None and kernel.release == running
