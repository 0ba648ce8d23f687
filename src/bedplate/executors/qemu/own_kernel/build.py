"""Kernels that are built from a tree, once for each commit and configuration, and kept in the cache.

    <cache>/kernels/commit-0123456789ab-89abcdef0123/
        bzImage, config
        kernel.json          the stamp: a folder without a fitting one is no kernel
    <cache>/kernels/trees/linux-89abcdef0123/
        source/, objects/    the files of the last commit of a tree, and what was compiled of them

One build folder serves all commits of a tree and configuration, so that the next commit compiles what it changed and what depends on that. The
user's tree is read through git and never written.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import resource
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from bedplate.errors import CommandFailed, OutputNotUnderstood, RequirementMissing, VerifyFailed
from bedplate.executors.qemu.guest_kernel import GuestKernel
from bedplate.executors.qemu.kernel_store import kernels_directory
from bedplate.executors.qemu.own_kernel.configuration import read_configuration
from bedplate.executors.qemu.own_kernel.fragment import WantedConfiguration
from bedplate.executors.qemu.own_kernel.image import release_in_image
from bedplate.executors.qemu.own_kernel.recipe import (
    COMPILER,
    RECIPE_VERSION,
    KernelWork,
    build_kernel,
    copy_result,
)
from bedplate.executors.qemu.own_kernel.requirements import missing_requirements
from bedplate.host.build_progress import BuildProgress
from bedplate.host.command import Account
from bedplate.host.file_lock import file_lock
from bedplate.host.files import sha256_of
from bedplate.host.git.checkout import give
from bedplate.host.git.export import forget, refresh
from bedplate.host.git.patches import apply_patch, paths_in_patch
from bedplate.host.requirement import demand, find_tool
from bedplate.host.room import places_without_room
from bedplate.host.shut_in.building import builder_account
from bedplate.host.whole_folder import put_in_place, sweep_work_folders, work_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bedplate.host.command import Commands
    from bedplate.model.source_commit import KernelSource

STAMP = "kernel.json"
_STAMP_FORMAT = 1
_PREFIX = "commit-"
# A kernel says when it was built. Two builds of a commit are equal byte for byte.
_BUILT_AT = "Thu Jan  1 00:00:00 UTC 1970"
# Linux 6.12 with the shipped configuration takes 12 min of CPU time, a few changed files half a minute: on two idle cores.
_FIRST_BUILD_S = 6 * 60.0
_NEXT_BUILD_S = 15.0
_ROOT = Account("root", 0, 0)


@dataclass(frozen=True)
class KernelBuild:
    """A kernel to be built, or one that was: everything that decides what comes out."""

    level: str
    digits: str
    configuration: str
    compiler: str

    @property
    def digest(self) -> str:
        """Of the configuration, the compiler and the recipe; the commit stands beside it."""
        text = f"{RECIPE_VERSION}\0{self.configuration}\0{self.compiler}"
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def folder_name(self) -> str:
        """`commit-0123456789ab-89abcdef0123`."""
        return f"{_PREFIX}{self.digits}-{self.digest[:12]}"


def find_built(level: str, *, cache_directory: Path, commands: Commands) -> GuestKernel | None:
    """The kernel of a level (`KernelSource.level`) that `ensure_built` would answer with at once; changes nothing.

    By the compiler that is here now where there are several, and by any of them where that is not known.
    """
    found = [
        (record, folder)
        for folder in sorted(kernels_directory(cache_directory).glob(f"{_PREFIX}*"))
        if (record := _read_stamp(folder)) is not None and record["level"] == level
    ]
    compiler = _compiler(commands)
    same = [pair for pair in found if pair[0]["compiler"] == compiler and pair[0]["recipe"] == RECIPE_VERSION]
    if not same and compiler is not None:
        return None
    pairs = same or found
    return _kernel(*pairs[-1]) if pairs else None


def build_seconds(
    sources: Mapping[str, KernelSource], *, cache_directory: Path, commands: Commands
) -> Mapping[str, float]:
    """Seconds of those of these kernels, by their levels, that the cache lacks. Changes nothing.

    The first of a tree and configuration compiles all, which the longest of the former builds did. The next ones compile what changed: their median.
    """
    stamps = [_read_stamp(folder) for folder in kernels_directory(cache_directory).glob(f"{_PREFIX}*")]
    former = sorted(
        float(took) for each in stamps if each and isinstance(took := each.get("build_seconds"), int | float)
    )
    first_s = former[-1] if former else _FIRST_BUILD_S
    next_s = median(former[:-1] or [_NEXT_BUILD_S])
    compiler, begun, seconds = _compiler(commands) or "unknown", set[Path](), {}
    for level, source in sources.items():
        if find_built(level, cache_directory=cache_directory, commands=commands) is not None:
            continue
        place = _build_folder(source, _build_of(source, compiler), cache_directory)
        seconds[level] = next_s if place in begun or place.exists() else first_s
        begun.add(place)
    return seconds


def ensure_built(
    source: KernelSource,
    *,
    cache_directory: Path,
    commands: Commands,
    progress: Callable[[BuildProgress], None],
    recipe: Callable[[KernelWork], None] = build_kernel,
) -> GuestKernel:
    """The kernel of a commit, built now if the cache lacks it.

    RequirementMissing with every tool that is missing, by its package, before anything is done; VerifyFailed with every option that the
    kernel's configuration lost; CommandFailed with the end of the build's log, whose whole is kept beside the kernels.
    """
    kept = find_built(source.level, cache_directory=cache_directory, commands=commands)
    if kept is not None:
        return kept
    demand(missing_requirements())
    wanted = WantedConfiguration(source.fragment)
    build = _build_of(source, _compiler(commands) or "unknown")
    place = _build_folder(source, build, cache_directory)
    waiting = BuildProgress("waits for another start of bedplate that builds of this tree")
    with file_lock(place.with_name(f".{place.name}.lock"), on_wait=lambda: progress(waiting)):
        kept = find_built(source.level, cache_directory=cache_directory, commands=commands)
        if kept is not None:
            return kept
        # What the account that builds must pass through; what it writes is a folder further down.
        place.mkdir(mode=0o755, parents=True, exist_ok=True)
        work = KernelWork(
            source=place / "source",
            work=place,
            wanted=wanted,
            label=f"-g{source.digits.replace('+', '-')}",
            built_at=_BUILT_AT,
            confined=os.geteuid() == 0,
            commands=commands,
            progress=progress,
        )
        started, cpu_started = time.monotonic(), _children_cpu_seconds()
        _make(
            build,
            source,
            work,
            recipe,
            log=kernels_directory(cache_directory) / f"failed-{build.folder_name}.log",
        )
        costs = (time.monotonic() - started, _children_cpu_seconds() - cpu_started)
        return _keep(build, source, work, kernels_directory(cache_directory), costs)


def _make(
    build: KernelBuild,
    source: KernelSource,
    work: KernelWork,
    recipe: Callable[[KernelWork], None],
    *,
    log: Path,
) -> None:
    """The caller holds the lock of the build folder."""
    log.unlink(missing_ok=True)
    work.progress(BuildProgress("source"))
    try:
        _refresh(source, work.work, work.commands)
        recipe(work)
    except CommandFailed as error:
        full = places_without_room(error.output, work.work)
        with contextlib.suppress(OSError):
            log.write_text(f"{' '.join(error.argv)}\n\n{error.output}\n", encoding="utf-8")
        if full:
            raise RequirementMissing(*full, f"kernel {build.level} is built there, and was not") from error
        raise CommandFailed(
            f"building kernel {build.level} failed; the whole output is in {log}: {error.reasons[0]}",
            argv=error.argv,
            status=error.status,
            output=error.output,
        ) from error
    except VerifyFailed as error:
        raise VerifyFailed(f"kernel {build.level} was not built", *error.reasons) from error


def _refresh(source: KernelSource, place: Path, commands: Commands) -> None:
    """The files of the commit, with what was not committed beside it."""
    tree = source.tree
    manifest = place / "source.files"
    refresh(Path(tree.path), tree.commit.hash, place / "source", manifest)
    if not tree.changes:
        return
    folder, builder = place / "source", builder_account()
    # First: also what a patch that was interrupted has written is written again.
    forget(manifest, paths_in_patch(tree.changes, folder, commands=commands, account=builder))
    # What reads a stranger's patch writes nowhere else.
    give(folder, builder)
    try:
        apply_patch(tree.changes, folder, commands=commands, account=builder)
    finally:
        give(folder, None if builder is None else _ROOT)


def _keep(
    build: KernelBuild, source: KernelSource, work: KernelWork, directory: Path, costs: tuple[float, float]
) -> GuestKernel:
    """The image and its configuration put into the cache, the stamp last."""
    folder = directory / build.folder_name
    fresh = work_folder(folder)
    sweep_work_folders(directory, but=fresh)
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(mode=0o755)
    copy_result(work, fresh)
    record = {
        "format": _STAMP_FORMAT,
        "level": build.level,
        "commit": source.tree.commit.hash,
        "release": release_in_image(fresh / "bzImage"),
        "compiler": build.compiler,
        "recipe": RECIPE_VERSION,
        "left_out": list(work.wanted.left_out(work.configuration)),
        "digest": sha256_of(fresh / "bzImage"),
        "build_seconds": round(costs[0], 1),
        "build_cpu_seconds": round(costs[1], 1),
    }
    (fresh / STAMP).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    put_in_place(fresh, folder)
    stamp = _read_stamp(folder)
    if stamp is None:
        raise OutputNotUnderstood(
            str(folder / STAMP), expected="the record that was just written", found="another"
        )
    return _kernel(stamp, folder)


def _build_of(source: KernelSource, compiler: str) -> KernelBuild:
    return KernelBuild(source.level, source.digits, WantedConfiguration(source.fragment).digest, compiler)


def _build_folder(source: KernelSource, build: KernelBuild, cache_directory: Path) -> Path:
    key = hashlib.sha256(
        f"{source.tree.path}\0{build.digest}".encode("utf-8", "surrogateescape")
    ).hexdigest()[:12]
    name = re.sub(r"[^\w.-]", "_", source.tree.path.rstrip("/").rpartition("/")[2], flags=re.ASCII)[:40]
    return kernels_directory(cache_directory) / "trees" / f"{name}-{key}"


def _compiler(commands: Commands) -> str | None:
    """What the compiler calls itself; None where there is none."""
    if find_tool(COMPILER) is None:
        return None
    lines = commands.run([COMPILER, "--version"]).stdout.strip().splitlines()
    return lines[0] if lines else "unknown"


def _read_stamp(folder: Path) -> dict[str, object] | None:
    """The record of a kernel in the cache; None for a folder that is not whole, or of another format."""
    try:
        found = json.loads((folder / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(found, dict) or found.get("format") != _STAMP_FORMAT:
        return None
    words = all(
        isinstance(found.get(name), str) for name in ("level", "release", "compiler", "digest", "commit")
    )
    return found if words and (folder / "bzImage").is_file() else None


def _kernel(record: dict[str, object], folder: Path) -> GuestKernel:
    return GuestKernel(
        asked=str(record["level"]),
        release=str(record["release"]),
        image=folder / "bzImage",
        modules=None,
        origin=f"commit {record['commit']}, built by {record['compiler']}",
        digest=str(record["digest"]),
        configuration=read_configuration(folder / "config"),
    )


def _children_cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
