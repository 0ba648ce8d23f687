"""How PostgreSQL is configured, compiled and installed. A change here raises `RECIPE_VERSION`."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.engines.postgresql.builds.configure_cache import CACHE_FILE, ConfigureCache
from bedplate.engines.postgresql.builds.libraries import libraries
from bedplate.engines.postgresql.builds.version import major_of
from bedplate.errors import VerifyFailed
from bedplate.host.build_progress import BuildProgress, count_objects, watched
from bedplate.host.plain_file import bytes_below
from bedplate.host.reachable import open_to_all
from bedplate.host.shut_in.building import build_command
from bedplate.host.shut_in.given_back import own_alone
from bedplate.units import KIB, MIB

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bedplate.engines.postgresql.builds.build_record import BuildIdentity
    from bedplate.host.command import Account, Commands, Completed

RECIPE_VERSION = 3
COMPILER = "cc"
_MAKEFILE = Path(__file__).with_name("recipe.mk")
_CONFIGURE_TIMEOUT_S = 1200.0
_COMPILE_TIMEOUT_S = 4 * 3600.0
_INSTALL_TIMEOUT_S = 1200.0

# Counted while each was built; only the progress display depends on them, and shows no total of another.
_OBJECTS = {15: 1259, 18: 1357}

# What a user's shell or distribution may set and what would silently become part of the build. They
# are removed, not emptied: to gcc an empty CPATH is the current folder.
_UNWANTED = (
    *("CC", "CPP", "CFLAGS", "CPPFLAGS", "LDFLAGS", "LDFLAGS_EX", "LDFLAGS_SL", "LIBS", "COPT", "PROFILE"),
    *("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "GNUMAKEFLAGS", "MAKEFILES", "DESTDIR"),
    *("CPATH", "C_INCLUDE_PATH", "LIBRARY_PATH", "LD_RUN_PATH", "GCC_EXEC_PREFIX"),
)
_CLEANED = ("env", *(f"--unset={name}" for name in _UNWANTED), "CONFIG_SITE=/dev/null")


@dataclass(frozen=True)
class RecipeWork:
    """One build to be made: out of `tree`, in `work` (empty), staged so that it fits `prefix`.

    The finished tree is expected at `staged_prefix`. With an `account` root builds it shut in: as that account, without network, writing
    nowhere but below `work` (`host/shut_in/`).
    """

    identity: BuildIdentity
    tree: Path
    work: Path
    prefix: Path
    configure_cache: ConfigureCache
    commands: Commands
    progress: Callable[[BuildProgress], None]
    account: Account | None = None

    def run(self, argv: Sequence[str], *, directory: Path, timeout_s: float) -> Completed:
        """One command of the build; CommandFailed with its whole output."""
        return build_command(
            argv,
            directory=directory,
            work=self.work,
            readable=(self.tree,),
            account=self.account,
            commands=self.commands,
            timeout_s=timeout_s,
        )

    def made_folder(self, path: Path) -> Path:
        """A folder below `work` that the build may write to. None of its processes is left that could put a link in its way."""
        path.mkdir()
        if self.account is not None:
            os.chown(path, self.account.uid, self.account.gid)
        return path

    @property
    def makefile(self) -> Path:
        """Where the recipe's own makefile lies."""
        return self.work / _MAKEFILE.name

    @property
    def stage(self) -> Path:
        """The folder that stands for / while installing."""
        return self.work / "stage"

    @property
    def staged_prefix(self) -> Path:
        """Where the prefix lies until it is renamed into place."""
        return self.stage / self.prefix.relative_to("/")


def configure_options(major: int, block_size_bytes: int, wal_block_size_bytes: int) -> tuple[str, ...]:
    """The options that decide the build: the libraries that a distribution's server has, where data and settings may need them.

    What is left out serves logins (GSSAPI, LDAP, PAM), messages (NLS), a terminal (readline) and procedural languages. There is no JIT:
    a distribution has it in a package of its own.

    `-O2` without `-g` is what configure itself would choose without debugging symbols. Checked
    against the notes of `docs/decisions/0002-postgresql-builds.md`.
    """
    return (
        f"--with-blocksize={block_size_bytes // KIB}",
        f"--with-wal-blocksize={wal_block_size_bytes // KIB}",
        *(option for library in libraries(major) if (option := library.option)),
        "--without-readline",
        f"CC={COMPILER}",
        "CFLAGS=-O2",
    )


def compile_postgresql(work: RecipeWork) -> None:
    """Configure, compile and install into the stage; `CommandFailed` carries a tool's whole output."""
    objects = work.made_folder(work.work / "objects")
    _copy_makefile(work)
    _configure(work, objects)
    _verify_configured(objects, work.identity)
    _compile(work, objects)
    _install(work, objects)


def _copy_makefile(work: RecipeWork) -> None:
    """Where every account can read it: bedplate itself may stand in somebody's home."""
    shutil.copyfile(_MAKEFILE, work.makefile)
    work.makefile.chmod(0o644)


def _configure(work: RecipeWork, objects: Path) -> None:
    work.progress(BuildProgress("configure"))
    work.configure_cache.lend(objects, work.account)
    argv = [str(work.tree / "configure"), "-q", f"--cache-file={CACHE_FILE}", f"--prefix={work.prefix}"]
    work.run(
        [*_CLEANED, *argv, *work.identity.configure_options],
        timeout_s=_CONFIGURE_TIMEOUT_S,
        directory=objects,
    )
    work.configure_cache.keep(objects)


def _verify_configured(objects: Path, identity: BuildIdentity) -> None:
    """Configure wrote what was asked: an option it does not know is only a warning to it.

    A commit may be older than a library's option. Then its header does not name the library at all, and it is built without.
    """
    try:
        header = bytes_below(objects, "src/include/pg_config.h", MIB).decode("utf-8", "replace")
    except OSError as error:
        raise VerifyFailed(f"configure wrote no {error.filename}: {error.strerror}") from None
    defined = dict(re.findall(r"^#define (\w+) (\S+)$", header, re.MULTILINE))
    wanted = {"BLCKSZ": str(identity.block_size_bytes), "XLOG_BLCKSZ": str(identity.wal_block_size_bytes)}
    for library in libraries(major_of(identity.version)):
        if not identity.commit_digits or re.search(rf"\b{library.macro}\b", header):
            wanted[library.macro] = "1"
    reasons = [
        f"PostgreSQL was configured with {name} {defined.get(name, 'undefined')}, not {value}"
        for name, value in wanted.items()
        if defined.get(name) != value
    ]
    if reasons:
        raise VerifyFailed(*reasons)


def _compile(work: RecipeWork, objects: Path) -> None:
    total = _OBJECTS.get(major_of(work.identity.version))

    def report(done: int) -> None:
        work.progress(BuildProgress("compile", min(done, total) if total else done, total))

    report(0)
    with watched(lambda: count_objects(objects), report):
        _make(work, objects, "all", timeout_s=_COMPILE_TIMEOUT_S)


def _install(work: RecipeWork, objects: Path) -> None:
    work.progress(BuildProgress("install"))
    extra = []
    work.made_folder(work.stage)
    if (work.tree / "src/include/catalog/Makefile").is_file():
        # Since 17 the bootstrap catalogue belongs to the headers, whose folder it does not make itself.
        catalogue = work.staged_prefix / "include/server/catalog"
        for folder in (*reversed(catalogue.parents), catalogue):
            if work.stage in folder.parents:
                work.made_folder(folder)
        extra = ["EXTRA_INSTALLED=src/include/catalog"]
    _make(work, objects, "install", f"DESTDIR={work.stage}", *extra, timeout_s=_INSTALL_TIMEOUT_S)
    if work.account is not None:
        own_alone(work.stage, work.staged_prefix)
    shutil.rmtree(work.staged_prefix / "include", ignore_errors=True)
    open_to_all(work.staged_prefix)


def _make(work: RecipeWork, objects: Path, *words: str, timeout_s: float) -> None:
    jobs = len(os.sched_getaffinity(0))
    argv = [
        *_CLEANED,
        "make",
        "--no-print-directory",
        "-s",
        "-j",
        str(jobs),
        "-f",
        str(work.makefile),
        *words,
    ]
    work.run(argv, timeout_s=timeout_s, directory=objects)
