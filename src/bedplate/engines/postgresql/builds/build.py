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
from dataclasses import dataclass
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
from bedplate.engines.postgresql.builds.configure_cache import ConfigureCache, configure_cache
from bedplate.engines.postgresql.builds.own_source import write_source
from bedplate.engines.postgresql.builds.recipe import (
    COMPILER,
    RECIPE_VERSION,
    RecipeWork,
    compile_postgresql,
    configure_options,
)
from bedplate.engines.postgresql.builds.requirements import missing_requirements
from bedplate.engines.postgresql.builds.source import Source, ensure_source, given_source
from bedplate.engines.postgresql.builds.version import major_of, parse_version
from bedplate.errors import BedplateError, BuildFailed, CommandFailed, RequirementMissing, VerifyFailed
from bedplate.host.build_progress import BuildProgress
from bedplate.host.file_lock import file_lock
from bedplate.host.reachable import require_traversable
from bedplate.host.requirement import demand, find_tool
from bedplate.host.room import places_without_room
from bedplate.host.shut_in.building import builder_account
from bedplate.host.whole_folder import lock_of, put_in_place, sweep_work_folders, work_folder
from bedplate.model.source_commit import PlanSources, commit_digits, patch_digits

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bedplate.host.command import Commands
    from bedplate.model.source_commit import SourceTree


_VERSION_TIMEOUT_S = 60.0
_SAID_LINES = 12


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
    source: Source | None = None
    if spec.source_commit is None:
        asked = parse_version(spec.version)
        if spec.tarball is not None:
            source = given_source(spec.tarball, asked)
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
    return (
        build.digest
        == _identity_of(build, build.version, build.tarball_sha256, commands, build.commit_digits).digest
    )


def ensure_build(
    spec: BuildSpec,
    *,
    cache_directory: Path,
    commands: Commands,
    progress: Callable[[BuildProgress], None],
    recipe: Callable[[RecipeWork], None] = compile_postgresql,
    sources: PlanSources | None = None,
) -> Build:
    """The build of `spec`, made now if the cache lacks it; `sources` are where its commit lies, and the texts of its patches.

    Raises `BuildFailed` where somebody's own source cannot be built, `RequirementMissing` (everything that is missing, before the first command of the
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
    demand(missing_requirements(spec, commands=commands))
    source = None
    if spec.source_commit is None:
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
        release = None
        if source is not None:
            tree_lock = source_store.sources_directory(cache_directory) / ".lock"
            with file_lock(tree_lock, on_wait=lambda: progress(waiting)):
                release = source_store.unpacked_tree(
                    source,
                    progress=lambda text: progress(BuildProgress(f"source: {text}")),
                )
        making = _Making(spec, identity, source, release, sources or PlanSources())
        return _make(making, directory=directory, commands=commands, progress=progress, recipe=recipe)


@dataclass(frozen=True)
class _Making:
    """A build to be made: of a release's tree (`source`, unpacked as `release`), or of what `sources` have of a commit; with patches."""

    spec: BuildSpec
    identity: BuildIdentity
    source: Source | None
    release: Path | None
    sources: PlanSources

    @property
    def commit(self) -> SourceTree | None:
        level = self.spec.source_commit
        return None if level is None else self.sources.trees.get(level)

    @property
    def origin(self) -> str:
        """Where the source came from, in words."""
        if self.source is not None:
            return self.source.first_origin
        tree = self.commit
        if tree is None:
            return "git"
        described = f" ({tree.commit.describe})" if tree.commit.describe else ""
        return f"git: {tree.tree}, {tree.revision}: {tree.commit.hash}{described}"


def _make(
    making: _Making,
    *,
    directory: Path,
    commands: Commands,
    progress: Callable[[BuildProgress], None],
    recipe: Callable[[RecipeWork], None],
) -> Build:
    """Build in the work folder and rename into place; the caller holds the lock of this build."""
    identity, spec = making.identity, making.spec
    prefix = directory / identity.folder_name
    work = _work_of(making, prefix, commands, progress)
    sweep_work_folders(directory, but=work.work)
    shutil.rmtree(work.work, ignore_errors=True)
    work.work.mkdir(mode=0o711)
    log = directory / f"failed-{identity.folder_name}.log"
    log.unlink(missing_ok=True)
    started, cpu_started = time.monotonic(), _children_cpu_seconds()
    try:
        if spec.is_own:
            progress(BuildProgress("source"))
            write_source(
                work.tree,
                spec,
                making.sources,
                release=making.release,
                account=work.account,
                commands=commands,
            )
        recipe(work)
        _verify_version(work)
        build = Build(
            prefix=prefix,
            version=identity.version,
            block_size_bytes=identity.block_size_bytes,
            wal_block_size_bytes=identity.wal_block_size_bytes,
            tarball_sha256=identity.tarball_sha256,
            source_origin=making.origin,
            compiler=identity.compiler,
            machine=identity.machine,
            configure_options=identity.configure_options,
            digest=identity.digest,
            build_seconds=round(time.monotonic() - started, 1),
            build_cpu_seconds=round(_children_cpu_seconds() - cpu_started, 1),
            commit=None if making.commit is None else making.commit.commit.hash,
            commit_digits=identity.commit_digits,
            patches=spec.patches,
        )
        _put_in_place(build, work.staged_prefix)
    except CommandFailed as error:
        raise _told(error, spec, log) from error
    except VerifyFailed as error:
        if spec.is_own:
            raise BuildFailed(*(f"{spec.words}: {reason}" for reason in error.reasons)) from error
        raise
    finally:
        shutil.rmtree(work.work, ignore_errors=True)
    return build


def _work_of(
    making: _Making, prefix: Path, commands: Commands, progress: Callable[[BuildProgress], None]
) -> RecipeWork:
    work = work_folder(prefix)
    # What a stranger's configure answers is not believed, and not read.
    is_strangers = making.spec.is_own or making.source is None or making.source.is_strangers
    cache = None if is_strangers else configure_cache(making.identity, prefix.parent / ".configure")
    tree = work / "source" if making.spec.is_own else making.release
    assert tree is not None  # noqa: S101 -- a release was unpacked
    return RecipeWork(
        identity=making.identity,
        tree=tree,
        work=work,
        prefix=prefix,
        configure_cache=cache or ConfigureCache(None),
        commands=commands,
        progress=progress,
        account=builder_account(is_own=is_strangers),
    )


def _told(error: CommandFailed, spec: BuildSpec, log: Path) -> BedplateError:
    """What a start says of a build that failed; its whole output goes into the log."""
    # Before what was half built is removed, which makes room again.
    full = places_without_room(error.output, log.parent)
    with contextlib.suppress(OSError):
        log.write_text(f"{' '.join(error.argv)}\n\n{error.output}\n", encoding="utf-8")
    if full:
        return RequirementMissing(
            *full, f"PostgreSQL {spec.version} is built there, and was not: {error.reasons[0]}"
        )
    said = f"building {spec.words} failed; the whole output is in {log}"
    if spec.is_own:
        # What was called stands in the log; what it said last is why.
        end = "\n".join(error.output.strip().splitlines()[-_SAID_LINES:])
        return BuildFailed(f"{said}: {end or error.reasons[0]}")
    return CommandFailed(
        f"{said}: {error.reasons[0]}", argv=error.argv, status=error.status, output=error.output
    )


def _put_in_place(build: Build, staged_prefix: Path) -> None:
    """The stamp last, then the rename: a power cut leaves a whole build or none."""
    stamp = staged_prefix / STAMP
    stamp.write_text(stamp_text(build), encoding="utf-8")
    stamp.chmod(0o644)
    put_in_place(staged_prefix, build.prefix)


def _verify_version(work: RecipeWork) -> None:
    server = [str(work.staged_prefix / "bin" / "postgres"), "--version"]
    shown = work.run(server, directory=work.work, timeout_s=_VERSION_TIMEOUT_S).stdout.strip()
    expected = f"postgres (PostgreSQL) {work.identity.version}"
    if shown != expected and not shown.startswith(f"{expected} "):
        raise VerifyFailed(f"the server that was built says {shown!r}, expected {expected!r}")


def _finished(directory: Path, identity: BuildIdentity) -> Build | None:
    build = read_build(directory / identity.folder_name)
    return build if build is not None and build.digest == identity.digest else None


def _identity(spec: BuildSpec, source: Source | None, commands: Commands) -> BuildIdentity:
    if source is not None:
        return _identity_of(spec, source.version, source.tarball_sha256, commands)
    return _identity_of(spec, spec.version, "", commands, commit_digits(spec.source_commit or ""))


def _identity_of(
    sizes: BuildSpec | Build, version: str, tarball_sha256: str, commands: Commands, commit: str = ""
) -> BuildIdentity:
    major = major_of(version)
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
        commit_digits=commit,
        patch_digits=tuple(map(patch_digits, sizes.patches)),
    )


def _children_cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
