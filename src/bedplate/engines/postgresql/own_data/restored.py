"""Databases restored from archives, once for each build and layout of a cluster, and kept in the cache to be copied.

    <cache>/databases/0123456789abcdef/
        data/            of a server that was shut down cleanly
        restored.json    what it was made of: a folder without it is not one

It holds somebody's data: no account but the owner of the cache reads it. A visit copies the files (`Cluster.take_over`), so
every visit begins with the same bytes, and with the fragmentation of a fresh copy.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections import deque
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.engines.postgresql.builds.extensions import lacking_sentence
from bedplate.engines.postgresql.own_data.archive import read_archive, restored_bytes
from bedplate.engines.postgresql.own_data.restoring import DATA, LOG, PLACES, RestoringJob
from bedplate.engines.postgresql.pgbench_script import read_script
from bedplate.errors import BedplateError, CommandFailed, PlanError, PrintedTooMuch, RequirementMissing
from bedplate.host.account import server_account
from bedplate.host.command import Commands, started_apart
from bedplate.host.file_lock import file_lock
from bedplate.host.interruption import held
from bedplate.host.reachable import require_traversable
from bedplate.host.shut_in.confinement import Confinement
from bedplate.host.whole_folder import lock_of, put_in_place, sweep_work_folders, work_folder
from bedplate.model import codec
from bedplate.model.cell import digest
from bedplate.units import MIB, format_size

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator, Mapping

    from bedplate.engines.postgresql.own_data.foreign_data import ClusterLayout
    from bedplate.host.command import Account
    from bedplate.model.visit import EngineBuild

RECORD = "restored.json"
# Raised when the way changes in which one is made.
_VERSION = 1
_JOBS_MAX = 4
# `12; 3079 16386 EXTENSION - pg_trgm` (pg_restore --list); a name has no blank where it needs no quotes.
_EXTENSION = re.compile(r"^\d+; \d+ \d+ EXTENSION - (\S+)", re.MULTILINE)
_TRUSTED = re.compile(r"^\s*trusted\s*=\s*'?(true|on|yes|1)", re.MULTILINE)
# Some 100 bytes are an entry.
_LIST_LIMIT_S, _LIST_BYTES_MOST = 600.0, 64 * MIB
_SAID_LINES = 6


@dataclass(frozen=True)
class DatabaseSource:
    """What is restored: an archive by its checksum, and the scripts that run behind it, texts by what they are for."""

    name: str
    sha256: str
    scripts: Mapping[str, str]


def databases_directory(cache_directory: Path) -> Path:
    """Where they lie in a cache."""
    return cache_directory / "databases"


def ensure_restored(
    source: DatabaseSource,
    layout: ClusterLayout,
    *,
    archive: Path | None,
    cache_directory: Path,
    tell: Callable[[str], None],
) -> Path:
    """The data directory to be copied, made now where the cache lacks it.

    `archive` is where it was last seen. PlanError where it is another one by now, or needs an extension that the build does
    not have; RequirementMissing without room or root; else BedplateError with the words of pg_restore or of a script.
    """
    # They may come from a study that somebody else wrote, and no plan.
    if problems := [
        f"{name}: {problem}"
        for name, text in source.scripts.items()
        for problem in read_script(text).problems
    ]:
        raise PlanError(*problems)
    folder = _folder(source, layout, cache_directory)
    folder.parent.mkdir(parents=True, exist_ok=True)
    if not is_whole_database(folder):
        with file_lock(lock_of(folder), on_wait=lambda: tell("waits for another start that restores it")):
            if not is_whole_database(folder):
                _make(folder, source, layout, archive, tell)
    # When it was last asked for.
    os.utime(folder / RECORD)
    return folder / "data"


def is_whole_database(folder: Path) -> bool:
    """Whether a folder of the cache is a restored database."""
    return (folder / RECORD).is_file() and (folder / "data" / "PG_VERSION").is_file()


def needs_root(name: str) -> str | None:
    """Why this process cannot restore an archive of that name; None for root."""
    if os.geteuid() == 0:
        return None
    return f"restoring {name} needs root: what a dump says runs in a server of an account without rights; run bedplate as root"


def needed_extensions(archive: Path, build: EngineBuild, account: Account) -> tuple[str, ...]:
    """The extensions that an archive names in its list; PlanError where pg_restore does not take it for one.

    pg_restore is confined to the archive's folder: it reads what somebody else wrote, byte by byte.
    """
    program = str(Path(build.prefix) / "bin" / "pg_restore")
    confined = Confinement((program, "--list", str(archive)), archive.parent, Path(build.prefix), account)
    try:
        listed = Commands().run(
            confined.argv, timeout_s=_LIST_LIMIT_S, most_bytes=_LIST_BYTES_MOST, confinement=confined
        )
    except PrintedTooMuch as error:
        raise PlanError(
            f"its list has more than {format_size(_LIST_BYTES_MOST)}: it is damaged, or dump fewer objects (pg_dump --schema)"
        ) from error
    except CommandFailed as error:
        said = " ".join(error.output.split())[-500:] or error.reasons[0]
        raise PlanError(f"pg_restore of PostgreSQL {build.version} cannot read it: {said}") from error
    return tuple(dict.fromkeys(_EXTENSION.findall(listed.stdout)))


def missing_extensions(names: tuple[str, ...], build: EngineBuild) -> tuple[str, ...]:
    """Those of them that a build does not have."""
    return tuple(name for name in names if not _control_file(name, build).is_file())


def made_by_a_superuser(names: tuple[str, ...], build: EngineBuild) -> tuple[str, ...]:
    """Those that the owner of a database may not make: not marked as trusted."""
    texts = {name: _control_file(name, build).read_text(encoding="utf-8") for name in names}
    return tuple(name for name, text in texts.items() if not _TRUSTED.search(text))


def _control_file(name: str, build: EngineBuild) -> Path:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,63}", name):
        raise PlanError(f"it names an extension {name!r:.80}, which is no name of one")
    return Path(build.prefix) / "share" / "extension" / f"{name}.control"


def _folder(source: DatabaseSource, layout: ClusterLayout, cache_directory: Path) -> Path:
    made_of = {
        "version": _VERSION,
        "sha256": source.sha256,
        "scripts": dict(source.scripts),
        "build": layout.build.digest,
        "data_checksums": layout.data_checksums,
    }
    return databases_directory(cache_directory) / digest(made_of)


def _make(
    folder: Path,
    source: DatabaseSource,
    layout: ClusterLayout,
    archive: Path | None,
    tell: Callable[[str], None],
) -> None:
    """The caller holds the lock."""
    if reason := needs_root(source.name):
        raise RequirementMissing(reason)
    if archive is None or not archive.exists():
        raise PlanError(
            f"{source.name} is needed to restore it, and is not there; begin with the plan beside it: bedplate run PLAN"
        )
    require_traversable(folder.parent, own=folder.parent.parent)
    account, work, build = server_account(), work_folder(folder), layout.build
    sweep_work_folders(folder.parent, but=work)
    shutil.rmtree(work, ignore_errors=True)
    # Its names are nobody's to list: the archive and the data are the account's for now, and others run as it.
    folder.parent.chmod(0o711)
    # Root's: whoever owns a folder may put a link in the place of one that root then follows.
    work.mkdir(mode=0o711)
    work.chmod(0o711)
    try:
        for name in (*PLACES, LOG):
            (work / name).mkdir(mode=0o700)
        for name in PLACES:
            os.chown(work / name, account.uid, account.gid)
        tell("copies the archive")
        found = _copied(archive, work / "archive", source, work)
        _give(work / "archive", account)
        names = needed_extensions(work / "archive", build, account)
        missing = missing_extensions(names, build)
        if missing:
            raise PlanError(lacking_sentence(source.name, missing))
        scripts = []
        for name, text in source.scripts.items():
            scripts.append(str(work / f"{name}.sql"))
            Path(scripts[-1]).write_text(text, encoding="utf-8")
            _give(Path(scripts[-1]), account)
        job = RestoringJob(
            work=str(work),
            archive=str(work / "archive"),
            build=build,
            data_checksums=layout.data_checksums,
            extensions=made_by_a_superuser(names, build),
            scripts=tuple(scripts),
            jobs=min(_JOBS_MAX, os.cpu_count() or 1),
        )
        codec.write(work / "job.json", job)
        _run(work / "job.json", source.name, tell)
        size_bytes = _own_alone(work / DATA)
        fresh = work / "fresh"
        fresh.mkdir(mode=0o700)
        (work / DATA).rename(fresh / "data")
        record = {**asdict(source), "archive_bytes": found, "size_bytes": size_bytes, "build": build.digest}
        (fresh / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        tell("brings it to the disk")
        put_in_place(fresh, folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _copied(archive: Path, target: Path, source: DatabaseSource, work: Path) -> int:
    """A copy that nobody changes meanwhile, and only the server's account reads; the bytes of it."""
    try:
        before = read_archive(archive)
    except ValueError as error:
        raise PlanError(f"{source.name}: {error}") from None
    wanted = before.size_bytes + restored_bytes(before.size_bytes, before.compression)
    free = shutil.disk_usage(work).free
    if free < wanted:
        raise RequirementMissing(
            f"restoring {source.name} may take {format_size(round(wanted))} in {work.parent}, which has {format_size(free)} "
            "free; make room (`bedplate release --cache` tells what can go), or set BEDPLATE_CACHE to a larger disk"
        )
    if archive.is_dir():
        shutil.copytree(archive, target, symlinks=True)
    else:
        shutil.copyfile(archive, target)
    # Of the copy: what was read may have been another file by then.
    if read_archive(target).sha256 != source.sha256:
        raise PlanError(
            f"{source.name} is not what it was when the plan was read (SHA-256 {source.sha256[:16]}…)"
        )
    return before.size_bytes


def _give(path: Path, account: Account) -> None:
    for each in (path, *(path.iterdir() if path.is_dir() else ())):
        os.chown(each, account.uid, account.gid)
        each.chmod(0o700 if each.is_dir() else 0o600)


def _own_alone(tree: Path) -> int:
    """Give it to root, for nobody else to read; the bytes of it."""
    size = 0
    for place, folders, names in os.walk(tree):
        for name in (*folders, *names):
            path = Path(place, name)
            os.chown(path, 0, 0, follow_symlinks=False)
            size += path.lstat().st_size
    os.chown(tree, 0, 0)
    return size


def _run(job: Path, name: str, tell: Callable[[str], None]) -> None:
    """The worker to its end; its steps are told. It dies with this process, and all that it started with it."""
    argv = [
        *("setpriv", "--pdeathsig", "KILL"),
        *("unshare", "--pid", "--ipc", "--mount", "--mount-proc", "--fork", "--kill-child"),
        *(sys.executable, "-S", "-m", "bedplate.engines.postgresql.own_data.restoring", str(job)),
    ]
    errors = job.with_suffix(".err")
    process: subprocess.Popen[bytes] | None = None
    try:
        with errors.open("wb") as said, held():
            process = started_apart(argv, said)
        for line in _lines(process):
            tell(line)
        status = process.wait()
    finally:
        if process is not None:
            _end(process)
    if status != 0:
        raise BedplateError(f"{name} cannot be restored: {_last_words(errors) or f'status {status}'}")


def _lines(process: subprocess.Popen[bytes]) -> Iterator[str]:
    assert process.stdout is not None  # noqa: S101 -- Popen was given a pipe
    for line in process.stdout:
        yield line.decode(errors="replace").strip()


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _last_words(errors: Path) -> str:
    with errors.open(encoding="utf-8", errors="replace") as file:
        return " | ".join(line.strip() for line in deque(file, maxlen=_SAID_LINES) if line.strip())
