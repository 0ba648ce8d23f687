"""One build of PostgreSQL per block size, made once and kept in the cache.

    <cache>/builds/postgresql-18.6-block8k-wal8k-0123456789ab/
        bin/ lib/ share/
        build.json       the stamp: a folder without a fitting one is not a build

A build is made in a work folder beside it and renamed into place whole. Two starts that want the
same build share it: the second waits. What an interrupted start left behind is removed by the next.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import time
from typing import TYPE_CHECKING

from bedplate.engines.postgresql.builds import source_store
from bedplate.engines.postgresql.builds.build_record import (
    STAMP,
    Build,
    BuildIdentity,
    BuildSpec,
    read_build,
    stamp_text,
)
from bedplate.engines.postgresql.builds.configure_cache import configure_cache
from bedplate.engines.postgresql.builds.recipe import (
    COMPILER,
    RECIPE_VERSION,
    RecipeWork,
    compile_postgresql,
    configure_options,
)
from bedplate.engines.postgresql.builds.requirements import missing_requirements
from bedplate.engines.postgresql.builds.source import Source, ensure_source, given_source
from bedplate.engines.postgresql.builds.version import parse_version
from bedplate.errors import CommandFailed, RequirementMissing, VerifyFailed
from bedplate.host.build_progress import BuildProgress
from bedplate.host.file_lock import file_lock
from bedplate.host.reachable import require_traversable
from bedplate.host.requirement import demand, find_tool
from bedplate.host.room import places_without_room
from bedplate.host.whole_folder import lock_of, put_in_place, sweep_work_folders, work_folder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bedplate.host.command import Commands

__all__ = ["Build", "BuildSpec", "ensure_build", "find_build", "read_build"]


def builds_directory(cache_directory: Path) -> Path:
    """Where the builds lie in a cache."""
    return cache_directory / "builds"


def find_build(spec: BuildSpec, *, cache_directory: Path, commands: Commands) -> Build | None:
    """The finished build that `ensure_build` would answer with at once; None when it has to work.

    Fetches and changes nothing. Without a compiler or without the source in the cache the answer
    is None, as what the build would be made of is not known then.
    """
    if find_tool(COMPILER) is None:
        return None
    asked = parse_version(spec.version)
    if spec.tarball is not None:
        source: Source | None = given_source(spec.tarball, asked)
    else:
        source = source_store.find(asked, cache_directory)
    if source is None:
        return None
    return _finished(builds_directory(cache_directory), _identity(spec, source, commands))


def is_current(build: Build, *, commands: Commands) -> bool:
    """Whether this bedplate would answer with this build where its source is asked for.

    False where the compiler, the options or the recipe have changed since: nothing asks for it any more.
    True where there is no compiler to compare with.
    """
    if find_tool(COMPILER) is None:
        return True
    return build.digest == _identity_of(build, build.version, build.tarball_sha256, commands).digest


def ensure_build(
    spec: BuildSpec,
    *,
    cache_directory: Path,
    commands: Commands,
    progress: Callable[[BuildProgress], None],
    recipe: Callable[[RecipeWork], None] = compile_postgresql,
) -> Build:
    """The build of `spec`, made now if the cache lacks it.

    Raises `RequirementMissing` (everything that is missing, before the first command of the
    build; or a cache that the server's account cannot reach), `PlanError` for a wrong tarball,
    `CommandFailed` when a tool fails: its whole output is kept beside the builds.
    """
    directory = builds_directory(cache_directory)
    directory.mkdir(parents=True, exist_ok=True)
    if os.geteuid() == 0:
        # Only root's servers run as somebody else.
        require_traversable(directory, own=cache_directory)
    kept = find_build(spec, cache_directory=cache_directory, commands=commands)
    if kept is not None:
        return kept
    demand(missing_requirements(spec.version, commands=commands))
    source = ensure_source(
        spec.version,
        cache_directory=cache_directory,
        commands=commands,
        tarball=spec.tarball,
        progress=lambda text: progress(BuildProgress(f"source: {text}")),
    )
    identity = _identity(spec, source, commands)
    lock = lock_of(directory / identity.folder_name)
    waiting = BuildProgress("waits for another start of bedplate that makes this build")
    with file_lock(lock, on_wait=lambda: progress(waiting)):
        kept = _finished(directory, identity)
        if kept is not None:
            return kept
        tree_lock = source_store.sources_directory(cache_directory) / ".lock"
        with file_lock(tree_lock, on_wait=lambda: progress(waiting)):
            tree = source_store.unpacked_tree(
                source, commands=commands, progress=lambda text: progress(BuildProgress(f"source: {text}"))
            )
        return _make(
            identity, source, tree, directory=directory, commands=commands, progress=progress, recipe=recipe
        )


def _make(
    identity: BuildIdentity,
    source: Source,
    tree: Path,
    *,
    directory: Path,
    commands: Commands,
    progress: Callable[[BuildProgress], None],
    recipe: Callable[[RecipeWork], None],
) -> Build:
    """Build in the work folder and rename into place; the caller holds the lock of this build."""
    prefix = directory / identity.folder_name
    work = RecipeWork(
        identity=identity,
        tree=tree,
        work=work_folder(directory / identity.folder_name),
        prefix=prefix,
        configure_cache=configure_cache(identity, directory / ".configure"),
        commands=commands,
        progress=progress,
    )
    sweep_work_folders(directory, but=work.work)
    shutil.rmtree(work.work, ignore_errors=True)
    work.work.mkdir()
    log = directory / f"failed-{identity.folder_name}.log"
    log.unlink(missing_ok=True)
    started, cpu_started = time.monotonic(), _children_cpu_seconds()
    try:
        recipe(work)
        _verify_version(work)
        build = Build(
            prefix=prefix,
            version=identity.version,
            block_size_bytes=identity.block_size_bytes,
            wal_block_size_bytes=identity.wal_block_size_bytes,
            tarball_sha256=identity.tarball_sha256,
            source_origin=source.first_origin,
            compiler=identity.compiler,
            machine=identity.machine,
            configure_options=identity.configure_options,
            digest=identity.digest,
            build_seconds=round(time.monotonic() - started, 1),
            build_cpu_seconds=round(_children_cpu_seconds() - cpu_started, 1),
        )
        _put_in_place(build, work.staged_prefix)
    except CommandFailed as error:
        # Before what was half built is removed, which makes room again.
        full = places_without_room(error.output, log.parent)
        with contextlib.suppress(OSError):
            log.write_text(f"{' '.join(error.argv)}\n\n{error.output}\n", encoding="utf-8")
        if full:
            raise RequirementMissing(
                *full, f"PostgreSQL {identity.version} is built there, and was not: {error.reasons[0]}"
            ) from error
        raise CommandFailed(
            f"building PostgreSQL {identity.version} failed; the whole output is in {log}: {error.reasons[0]}",
            argv=error.argv,
            status=error.status,
            output=error.output,
        ) from error
    finally:
        shutil.rmtree(work.work, ignore_errors=True)
    return build


def _put_in_place(build: Build, staged_prefix: Path) -> None:
    """The stamp last, then the rename: a power cut leaves a whole build or none."""
    stamp = staged_prefix / STAMP
    stamp.write_text(stamp_text(build), encoding="utf-8")
    stamp.chmod(0o644)
    put_in_place(staged_prefix, build.prefix)


def _verify_version(work: RecipeWork) -> None:
    shown = work.commands.run([str(work.staged_prefix / "bin" / "postgres"), "--version"]).stdout.strip()
    expected = f"postgres (PostgreSQL) {work.identity.version}"
    if shown != expected and not shown.startswith(f"{expected} "):
        raise VerifyFailed(f"the server that was built says {shown!r}, expected {expected!r}")


def _finished(directory: Path, identity: BuildIdentity) -> Build | None:
    build = read_build(directory / identity.folder_name)
    return build if build is not None and build.digest == identity.digest else None


def _identity(spec: BuildSpec, source: Source, commands: Commands) -> BuildIdentity:
    return _identity_of(spec, source.version, source.tarball_sha256, commands)


def _identity_of(
    sizes: BuildSpec | Build, version: str, tarball_sha256: str, commands: Commands
) -> BuildIdentity:
    major = parse_version(version).major
    compiler = commands.run([COMPILER, "--version"]).stdout.strip().splitlines()
    return BuildIdentity(
        version=version,
        block_size_bytes=sizes.block_size_bytes,
        wal_block_size_bytes=sizes.wal_block_size_bytes,
        tarball_sha256=tarball_sha256,
        compiler=compiler[0] if compiler else "unknown",
        machine=os.uname().machine,
        configure_options=configure_options(major, sizes.block_size_bytes, sizes.wal_block_size_bytes),
        recipe_version=RECIPE_VERSION,
    )


def _children_cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
