"""Guest kernels: the distribution's packages unpacked in the cache side by side, or a self-built one.

    <cache>/kernels/6.12.95+deb12-amd64/
        kernel.json      written last: a folder without it is not a kernel
        root/boot/vmlinuz-6.12.95+deb12-amd64
        root/lib/modules/6.12.95+deb12-amd64/

A kernel in the cache stays as it is, and answers whatever it fits, so that a study begun stays on its
release; ask for a whole release to change it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import RequirementMissing
from bedplate.executors.qemu.guest_kernel import GuestKernel
from bedplate.executors.qemu.guest_tools import ensure_busybox, ensure_depmod, ensure_zstd, find_zstd
from bedplate.executors.qemu.kernel_packages import default_series, fetch_kernel
from bedplate.executors.qemu.kernel_parts import modules_of
from bedplate.executors.qemu.kernel_release import accepts, check_asked, is_path, release_key
from bedplate.executors.qemu.kernel_store import arrange, kernels_directory, read_kernel, write_record
from bedplate.executors.qemu.own_kernel.build import ensure_built, find_built
from bedplate.executors.qemu.self_built import read_self_built
from bedplate.host.apt.archives import parse_os_release
from bedplate.host.apt.private_root import read_apt_system
from bedplate.host.command import Commands
from bedplate.host.facts import build_options
from bedplate.host.file_lock import file_lock
from bedplate.host.requirement import read_os_release
from bedplate.host.whole_folder import put_in_place
from bedplate.model.source_commit import is_commit_level

if TYPE_CHECKING:
    from collections.abc import Callable

    from bedplate.model.machine import Machine
    from bedplate.model.source_commit import KernelSource

__all__ = ["GuestKernel", "ensure_kernel", "find_kernel", "guest_machine", "known_kernels"]

_FETCH = ".fetch-"


def find_kernel(asked: str | None, *, cache_directory: Path) -> GuestKernel | None:
    """The kernel that `ensure_kernel` would answer with at once; fetches and changes nothing.

    `asked` is None (the distribution's series with most file systems), the beginning of a release
    ("6.12"), an exact release, the path of a self-built kernel, or a commit's level. PlanError for a path that holds no
    kernel, and for what is neither.
    """
    if asked is not None and is_commit_level(asked):
        return find_built(asked, cache_directory=cache_directory, commands=Commands())
    if asked is not None and is_path(asked):
        return read_self_built(asked, zstd=find_zstd(cache_directory))
    wanted = _series(asked)
    fitting = [kernel for kernel in known_kernels(cache_directory) if accepts(wanted, kernel.release)]
    exact = [kernel for kernel in fitting if kernel.release == wanted]
    return replace((exact or fitting)[-1], asked=asked) if fitting else None


def ensure_kernel(
    asked: str | None,
    *,
    cache_directory: Path,
    commands: Commands,
    progress: Callable[[str], None],
    source: KernelSource | None = None,
) -> GuestKernel:
    """The kernel asked for, fetched from the distribution now if the cache lacks it; of a commit built, out of `source`.

    What its guests start with is there afterwards as well (a static busybox). RequirementMissing says
    what every suite had instead. `ensure_built` says what a build raises.
    """
    ensure_busybox(cache_directory, commands=commands, progress=progress)
    if source is not None:
        return ensure_built(
            source,
            cache_directory=cache_directory,
            commands=commands,
            progress=lambda step: progress(
                step.step if not step.done else f"{step.step}, {step.done} objects"
            ),
        )
    directory = kernels_directory(cache_directory)
    with file_lock(directory / ".lock", on_wait=lambda: progress("waits for another start of bedplate")):
        kept = find_kernel(asked, cache_directory=cache_directory)
        if kept is None:
            for left in directory.glob(f"{_FETCH}*"):
                # Whoever made it was killed: the lock is ours.
                shutil.rmtree(left, ignore_errors=True)
            with tempfile.TemporaryDirectory(prefix=_FETCH, dir=directory) as temporary:
                release = _fetch(asked, cache_directory, Path(temporary), commands, progress)
            kept = replace(read_kernel(directory / release), asked=asked)
    if kept.modules is not None and next(kept.module_directory.rglob("*.ko.zst"), None) is not None:
        ensure_zstd(cache_directory, commands=commands, progress=progress)
    return kept


def known_kernels(cache_directory: Path) -> tuple[GuestKernel, ...]:
    """Every kernel in the cache, the oldest release first; `asked` is its exact release."""
    directory = kernels_directory(cache_directory)
    folders = [record.parent for record in directory.glob("[0-9]*/kernel.json")]
    return tuple(
        sorted(map(read_kernel, folders), key=lambda item: (release_key(item.release), item.release))
    )


def guest_machine(kernel: GuestKernel, *, memory_bytes: int, host: Machine) -> Machine:
    """The guest as a machine, as far as it is known before the boot: what the rules of a plan need.

    Processor and tools are the host's; the host's tunables are not the guest's, and are left out.
    """
    config = "" if kernel.configuration is None else kernel.configuration.text
    lines = frozenset(config.splitlines())
    modules = modules_of(kernel)
    return replace(
        host,
        kernel_release=kernel.release,
        memory_bytes=memory_bytes,
        filesystems=modules.filesystems(),
        cgroup_version=2,
        pressure_available="CONFIG_PSI=y" in lines and "CONFIG_PSI_DEFAULT_DISABLED=y" not in lines,
        virtualisation="QEMU",
        boot_id="",
        is_root=True,
        tunables={
            "block.schedulers": " ".join(sorted({"none", *modules.schedulers()})),
            **build_options(config),
        },
    )


def _series(asked: str | None) -> str:
    return default_series(parse_os_release(read_os_release())) if asked is None else check_asked(asked)


def _fetch(
    asked: str | None,
    cache_directory: Path,
    work: Path,
    commands: Commands,
    progress: Callable[[str], None],
) -> str:
    """Put a whole kernel into the cache; the caller holds the lock. Gives its release."""
    wanted = _series(asked)
    depmod = ensure_depmod(cache_directory, commands=commands, progress=progress)
    try:
        unpacked = fetch_kernel(
            wanted,
            system=read_apt_system(commands),
            machine=os.uname().machine,
            directory=work,
            commands=commands,
            progress=progress,
        )
    except RequirementMissing as error:
        there = ", ".join(kernel.release for kernel in known_kernels(cache_directory)) or "none"
        raise RequirementMissing(
            f"no kernel {wanted} is in the cache (it has {there}), nor could one be fetched",
            *error.reasons,
            "ask for a kernel that is there, or for the path of a self-built one with its modules "
            "(kernel = '/usr/src/linux')",
        ) from error
    progress(f"arranges kernel {unpacked.release}")
    fresh = work / "fresh"
    arrange(unpacked, fresh, depmod=depmod, commands=commands)
    write_record(unpacked, fresh)
    put_in_place(fresh, kernels_directory(cache_directory) / unpacked.release)
    return unpacked.release
