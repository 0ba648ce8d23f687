"""ZFS for guests: modules built once per kernel, and the userland of the very same version.

    <cache>/zfs/6.12.95+deb12-amd64-2.3.2-2~bpo12+2/
        zfs.json         written last: a folder without a fitting one is not a build
        modules/         spl.ko, zfs.ko, without debugging symbols
        userland/        zpool, zfs and their libraries, unpacked and never configured

The licence keeps ZFS out of kernels, so it is built here from the distribution's source package: an
explicit step (`bedplate setup --zfs`), as it takes minutes. A build is made in a work folder beside
it and renamed into place whole; what an interrupted start left behind is removed by the next.
"""

from __future__ import annotations

import hashlib
import json
import resource
import shutil
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bedplate.errors import CommandFailed
from bedplate.executors.qemu.zfs_recipe import ZfsWork, compile_modules, load_order, module_facts
from bedplate.executors.qemu.zfs_source import SourceArchive, fetch_headers, fetch_source
from bedplate.host.apt.package_tree import PackageTree
from bedplate.host.build_progress import BuildProgress
from bedplate.host.file_lock import file_lock
from bedplate.host.shut_in.building import builder_account
from bedplate.host.whole_folder import put_in_place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from bedplate.executors.qemu.kernels import GuestKernel
    from bedplate.host.command import Commands
    from bedplate.model.machine import Machine

_STAMP = "zfs.json"
_STAMP_FORMAT = 1
_WORK = ".work-"
TYPE = "zfs"


@dataclass(frozen=True)
class ZfsTree:
    """A finished build: `modules` in the order in which insmod takes them.

    `kernel_modules` are names of the kernel's own, for modprobe, before them. `digest` changes with
    any byte of a module. `build_seconds` is wall time of configure, compile and strip,
    `build_cpu_seconds` the CPU time of their processes.
    """

    release: str
    kernel_digest: str
    version: str
    origin: str
    modules: tuple[Path, ...]
    kernel_modules: tuple[str, ...]
    userland: PackageTree
    digest: str
    build_seconds: float
    build_cpu_seconds: float

    @property
    def path(self) -> tuple[Path, ...]:
        """Entries for the front of PATH."""
        return self.userland.path

    @property
    def library_path(self) -> tuple[Path, ...]:
        """Entries for LD_LIBRARY_PATH."""
        return self.userland.library_path


def zfs_directory(cache_directory: Path) -> Path:
    """Where the builds lie in a cache."""
    return cache_directory / "zfs"


def find_zfs(kernel: GuestKernel, cache_directory: Path) -> ZfsTree | None:
    """The finished build for this very kernel; None when `ensure_zfs` would have to work."""
    for folder in sorted(zfs_directory(cache_directory).glob(f"{kernel.release}-*"), reverse=True):
        try:
            tree = _read(folder)
        except (OSError, ValueError, TypeError, KeyError):
            continue
        is_whole = all(path.is_file() for path in tree.modules) and tree.userland.program("zpool") is not None
        if is_whole and (tree.release, tree.kernel_digest) == (kernel.release, kernel.digest):
            return tree
    return None


def ensure_zfs(
    kernel: GuestKernel,
    *,
    cache_directory: Path,
    commands: Commands,
    progress: Callable[[BuildProgress], None],
    recipe: Callable[[ZfsWork], None] = compile_modules,
) -> ZfsTree:
    """ZFS for this kernel, built now if the cache lacks it; needs no root.

    RequirementMissing with everything that is missing, or that no version fits; CommandFailed when a
    tool fails: its whole output is kept beside the builds.
    """
    directory = zfs_directory(cache_directory)
    waiting = BuildProgress("waits for another start of bedplate that builds ZFS")
    with file_lock(directory / ".lock", on_wait=lambda: progress(waiting)):
        kept = find_zfs(kernel, cache_directory)
        if kept is not None:
            return kept
        for left in directory.glob(f"{_WORK}*"):
            # Whoever made it was killed: the lock is ours.
            shutil.rmtree(left, ignore_errors=True)
        archive = SourceArchive(cache_directory, commands, lambda text: progress(BuildProgress(text)))
        source = fetch_source(kernel, archive)
        headers = fetch_headers(kernel, archive)
        work = ZfsWork(
            release=kernel.release,
            source=source,
            headers=headers,
            directory=directory / f"{_WORK}{kernel.release}",
            modules=directory / f"{_WORK}{kernel.release}" / "tree" / "modules",
            commands=commands,
            progress=progress,
            # Of a kernel of somebody's own the makefiles are.
            account=builder_account(is_own=kernel.origin.startswith("/")),
        )
        target = directory / f"{kernel.release}-{source.version}"
        _make(work, kernel, target=target, recipe=recipe)
        made = find_zfs(kernel, cache_directory)
        assert made is not None  # noqa: S101 -- it was just put in place, under the lock
        return made


def with_zfs(machine: Machine, kernel: GuestKernel, cache_directory: Path) -> Machine:
    """A guest's machine, with zfs among its file systems if its modules are built."""
    if TYPE in machine.filesystems or find_zfs(kernel, cache_directory) is None:
        return machine
    return replace(machine, filesystems=(*machine.filesystems, TYPE))


def _make(work: ZfsWork, kernel: GuestKernel, *, target: Path, recipe: Callable[[ZfsWork], None]) -> None:
    """Build in the work folder and rename into place; the caller holds the lock."""
    fresh = work.modules.parent
    fresh.mkdir(parents=True)
    # The account that builds passes through it.
    work.directory.chmod(0o711)
    log = target.with_name(f"failed-{target.name}.log")
    log.unlink(missing_ok=True)
    started, cpu_started = time.monotonic(), _children_cpu_seconds()
    try:
        recipe(work)
        userland = fresh / "userland"
        shutil.copytree(work.source.userland.root, userland, symlinks=True)
        facts = {path: module_facts(path.read_bytes()) for path in sorted(work.modules.glob("*.ko"))}
        needed = {path.stem: _depends(found) for path, found in facts.items()}
        order = load_order(needed)
        foreign = dict.fromkeys(name for names in needed.values() for name in names if name not in needed)
        source = work.source
        record = {
            "format": _STAMP_FORMAT,
            "release": work.release,
            "kernel_digest": kernel.digest,
            "version": source.version,
            "origin": f"zfs-dkms {source.version} ({source.suite or 'own suite'})",
            "modules": [f"{name}.ko" for name in order],
            "kernel_modules": list(foreign),
            "userland": {
                "packages": dict(source.userland.packages),
                "checksums": dict(source.userland.checksums),
            },
            "digest": _digest(facts),
            "build_seconds": round(time.monotonic() - started, 1),
            "build_cpu_seconds": round(_children_cpu_seconds() - cpu_started, 1),
        }
        (fresh / _STAMP).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        put_in_place(fresh, target)
    except CommandFailed as error:
        log.write_text(f"{' '.join(error.argv)}\n\n{error.output}\n", encoding="utf-8")
        raise CommandFailed(
            f"building ZFS {work.source.version} for {work.release} failed; "
            f"the whole output is in {log}: {error.reasons[0]}",
            argv=error.argv,
            status=error.status,
            output=error.output,
        ) from error
    finally:
        shutil.rmtree(work.directory, ignore_errors=True)


def _read(folder: Path) -> ZfsTree:
    fields = json.loads((folder / _STAMP).read_text(encoding="utf-8"))
    if fields.pop("format") != _STAMP_FORMAT:
        raise ValueError("of another version of bedplate")
    tools = fields["userland"]
    return ZfsTree(
        **{
            **fields,
            "modules": tuple(folder / "modules" / name for name in fields["modules"]),
            "kernel_modules": tuple(fields["kernel_modules"]),
            "userland": PackageTree(folder / "userland", dict(tools["packages"]), dict(tools["checksums"])),
        }
    )


def _depends(facts: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(name for name in facts.get("depends", "").split(",") if name)


def _digest(modules: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in modules:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _children_cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
