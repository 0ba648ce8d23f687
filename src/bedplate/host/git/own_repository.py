"""A repository of bedplate's own that borrows the objects of a tree: git reads no configuration, attribute or hook but those written here.

It holds the tree's names for commits as `tree_files.py` read them, and lies in a folder for temporary files until it is done with. So
there is no list of keys that a tree's configuration may not have: git is never told where that configuration is.

As whom git runs: the owner of the tree where bedplate is root and the owner is not; an account without rights where the tree is root's, which
is then given the right to read what root alone may read, and none to write; else the caller.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import CommandFailed, CommandNotStarted, PlanError, RequirementMissing
from bedplate.host.account import server_account
from bedplate.host.command import Account, Commands, bare_environment
from bedplate.host.git.tree_files import open_index, read_tree
from bedplate.host.reading_as import read_as
from bedplate.near_names import of_near_paths
from bedplate.units import GIB, MIB

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bedplate.host.command import Completed
    from bedplate.host.git.tree_files import TreeFiles

_TIME_LIMIT_S = 120.0
# Of one file that is read into memory, and of the changes in a work tree.
TEXT_BYTES_MOST = 8 * MIB
# An object may claim any size: of one allocation, and of the whole process.
_ALLOCATION_BYTES_MOST, _MEMORY_BYTES_MOST = GIB, 6 * GIB
_SAID_CHARACTERS = 500
_ENVIRONMENT = (
    *("GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0"),
    # No transport is called `none`: what a partial clone lacks is not fetched.
    *("GIT_ALLOW_PROTOCOL=none", "GIT_NO_LAZY_FETCH=1", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_REPLACE_OBJECTS=1"),
    *("HOME=/nonexistent", "XDG_CONFIG_HOME=/nonexistent", f"GIT_ALLOC_LIMIT={_ALLOCATION_BYTES_MOST}"),
)
_SETTINGS = (
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false"),
    # A list of commits beside the objects may say anything of their parents.
    *("-c", "core.commitGraph=false", "-c", "core.pager=cat", "-c", "protocol.allow=never"),
    *("-c", "core.attributesFile=/dev/null", "-c", "core.excludesFile=/dev/null", "-c", "safe.directory=*"),
)
# It wins over every .gitattributes: a file is its bytes.
_ATTRIBUTES = (
    "* -text -eol -crlf -ident -filter -working-tree-encoding -export-subst !diff !merge !whitespace\n"
)
# What of a configuration says how the repository is to be read, and is passed on: with what it may be.
_PASSED_ON = {"core.filemode": "true", "core.symlinks": "true", "core.ignorecase": "false"}
_FORMATS = {"extensions.objectformat": ("sha1", "sha256"), "extensions.refstorage": ("files",)}
# These change nothing for a reader of objects and names.
_EXTENSIONS = frozenset(
    f"extensions.{name}"
    for name in (
        *("noop", "noop-v1", "partialclone", "preciousobjects", "worktreeconfig", "relativeworktrees"),
        "compatobjectformat",
    )
)
_TRUE = ("true", "yes", "on", "1", "")
# linux/capability.h: CAP_DAC_READ_SEARCH is what is given, and CAP_SETPCAP the right to give it.
_CAPS_TO_GIVE = 1 << 2 | 1 << 8
_EFFECTIVE = re.compile(r"^CapEff:\s*([0-9a-f]+)$", re.MULTILINE)
# env(1): the program was not found; setpriv(1) and prlimit(1) say the same of the one after them.
_ENV_FOUND_NONE = 127
_PACKAGES = {"git": "git", "setpriv": "util-linux", "prlimit": "util-linux"}
_FOLDER_PREFIX = "bedplate-git-"
# Nobody has made a folder and not yet locked it for so long.
_LOCKED_BY_NOW_S = 60.0


@dataclass(frozen=True)
class Repository:
    """One of bedplate's own at `folder`, to read `tree` by."""

    tree: Path
    folder: Path
    account: Account | None
    """as whom git runs"""
    owner: Account | None = None
    """as whom the tree's files are read without git"""
    reads_all: bool = False
    has_work_tree: bool = False

    def argv(self, *words: str, directory: Path | None = None, is_work_tree: bool = False) -> list[str]:
        """A call of git in `directory`; that is the work tree of the repository if it is one of files."""
        environment = [f"{name}={value}" for name, value in bare_environment().items()]
        place = [f"GIT_DIR={self.folder}", f"GIT_COMMON_DIR={self.folder}"]
        if is_work_tree:
            place.append(f"GIT_WORK_TREE={directory}")
        limited = ("prlimit", f"--data={_MEMORY_BYTES_MOST}", "--core=0")
        # Nothing of the caller's: one that is a hook itself, or run by `git bisect`, has variables for another repository.
        return [
            *(
                "env",
                "--ignore-environment",
                *environment,
                *_ENVIRONMENT,
                *place,
                *self._as_account(),
                *limited,
            ),
            *("git", *_SETTINGS, "-C", str(directory or self.folder), *words),
        ]

    def run(
        self,
        *words: str,
        check: bool = True,
        timeout_s: float = _TIME_LIMIT_S,
        work_tree: Path | None = None,
        stdin: str | None = None,
        commands: Commands | None = None,
    ) -> Completed:
        """A call of git, in the work tree if one is named. CommandFailed with its own words where it failed and may not, RequirementMissing without git."""
        try:
            done = (commands or Commands()).run(
                self.argv(*words, directory=work_tree, is_work_tree=work_tree is not None),
                timeout_s=timeout_s,
                check=False,
                stdin=stdin,
                most_bytes=TEXT_BYTES_MOST if stdin is None else None,
            )
        except CommandNotStarted as error:
            raise RequirementMissing(f"{self.tree} is read with git: {error.reasons[0]}") from error
        if done.status == _ENV_FOUND_NONE:
            absent = [
                f"{name} (package {package})"
                for name, package in _PACKAGES.items()
                if shutil.which(name, path=bare_environment()["PATH"]) is None
            ]
            raise RequirementMissing(
                f"{self.tree} is read with git, under limits: {', '.join(absent) or done.output.strip()} is not installed"
            )
        if check and done.status != 0:
            raise CommandFailed(
                f"git {words[0]} of {self.tree} ended with status {done.status}: {done.output[:_SAID_CHARACTERS]}",
                argv=done.argv,
                status=done.status,
                output=done.output,
            )
        return done

    def text(self, *words: str, check: bool = True, work_tree: Path | None = None) -> str:
        """What git printed; with `check=False` nothing where it failed. Paths and messages may be in any encoding."""
        done = self.run(*words, check=check, work_tree=work_tree)
        return done.stdout if done.status == 0 else ""

    def _as_account(self) -> tuple[str, ...]:
        if self.account is None:
            return ()
        account = (f"--reuid={self.account.uid}", f"--regid={self.account.gid}", "--clear-groups")
        # access(2) asks for rights that are given so as well.
        rights = (
            *("--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search"),
            "--securebits=+no_setuid_fixup",
        )
        return ("setpriv", *account, "--no-new-privs", *(rights if self.reads_all else ()))


@contextlib.contextmanager
def borrow(tree: Path, *, with_index: bool = False) -> Iterator[Repository]:
    """A repository that has the commits of a tree and its names for them; with the index where the files of its work tree are compared.

    PlanError says why there is none: no such folder, no repository, something in it that is none of a repository's. The account that
    git runs as may write to it.
    """
    try:
        if not tree.is_dir():
            there = of_near_paths(tree, FileNotFoundError())
            raise PlanError(
                f"{tree} is no folder" if tree.exists() else f"{tree}: there is no such folder{there}"
            )
        owner = _other_owner(tree)
        account = owner or (server_account() if os.geteuid() == 0 else None)
        files = read_as(owner, lambda: read_tree(tree))
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        raise PlanError(f"{tree} is no git repository that can be read: {error.strerror}{where}") from None
    reads_all = account is not None and owner is None and _may_give_reading()
    with _temporary_folder() as place:
        place.chmod(0o700 if reads_all else 0o711)
        known = _configuration(
            tree, files, plain_repository(tree, place / "plain.git", account, reads_all=reads_all)
        )
        has_work_tree = _has_work_tree(tree, files, known)
        repository = Repository(tree, place / "own.git", account, owner, reads_all, has_work_tree)
        settings = {name: known.get(name, otherwise) for name, otherwise in _PASSED_ON.items()}
        _write_repository(
            repository.folder,
            object_format=known.get("extensions.objectformat", "sha1"),
            settings={name: _boolean(value) for name, value in settings.items()},
        )
        _fill(repository.folder, files)
        if with_index:
            _copy_index(repository, files.repository)
        _give(repository)
        yield repository


@contextlib.contextmanager
def _temporary_folder() -> Iterator[Path]:
    """One that is locked while it is used; those that killed processes of ours left are removed, as nobody holds their lock."""
    for left in Path(tempfile.gettempdir()).glob(f"{_FOLDER_PREFIX}*"):
        with contextlib.suppress(OSError):
            lock = os.open(left, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                status = os.fstat(lock)
                if status.st_uid == os.geteuid() and time.time() - status.st_mtime > _LOCKED_BY_NOW_S:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(left, ignore_errors=True)
            finally:
                os.close(lock)
    with tempfile.TemporaryDirectory(prefix=_FOLDER_PREFIX) as temporary:
        lock = os.open(temporary, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield Path(temporary)
        finally:
            os.close(lock)


def plain_repository(
    tree: Path, folder: Path, account: Account | None, *, reads_all: bool = False
) -> Repository:
    """A repository without commits, made at `folder` and given to the account: for what needs the files of `tree` alone."""
    repository = Repository(tree, folder, account if os.geteuid() == 0 else None, reads_all=reads_all)
    _write_repository(folder)
    _give(repository)
    return repository


def _other_owner(tree: Path) -> Account | None:
    """The owner of a tree where bedplate is root and the owner is not."""
    status = tree.stat()
    if os.geteuid() != 0 or status.st_uid == 0:
        return None
    return Account(str(status.st_uid), status.st_uid, status.st_gid)


def _may_give_reading() -> bool:
    """Whether root has the right to read everything, which a container may lack, to give it away."""
    found = _EFFECTIVE.search(Path("/proc/self/status").read_text(encoding="ascii", errors="replace"))
    return found is not None and int(found[1], 16) & _CAPS_TO_GIVE == _CAPS_TO_GIVE


def _write_repository(
    folder: Path, *, object_format: str = "sha1", settings: Mapping[str, str] | None = None
) -> None:
    for name in ("objects/info", "objects/pack", "refs", "info", "borrowed"):
        (folder / name).mkdir(parents=True)
    lines = ["[core]", "bare = true", "repositoryformatversion = 1"]
    lines += [f"{name.removeprefix('core.')} = {value}" for name, value in (settings or {}).items()]
    lines += ["[extensions]", f"objectformat = {object_format}"]
    (folder / "config").write_text("\n".join(lines) + "\n", encoding="ascii")
    (folder / "HEAD").write_text("ref: refs/heads/none\n", encoding="ascii")
    (folder / "info" / "attributes").write_text(_ATTRIBUTES, encoding="ascii")


def _fill(folder: Path, files: TreeFiles) -> None:
    """The names for commits, and the way to the objects: by a link of ours, as the folder's own name may hold anything."""
    (folder / "borrowed" / "objects").symlink_to(files.objects)
    (folder / "objects" / "info" / "alternates").write_text(f"{folder}/borrowed/objects\n", encoding="utf-8")
    packed = [
        b"%s %s\n" % (content, os.fsencode(name))
        for name, content in sorted(files.refs.items())
        if not content.startswith(b"ref: ")
    ]
    (folder / "packed-refs").write_bytes(b"".join(packed))
    symbolic = {name: content for name, content in files.refs.items() if content.startswith(b"ref: ")}
    for name, content in {**symbolic, **files.heads}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content + b"\n")
    if files.shallow:
        (folder / "shallow").write_bytes(files.shallow)
    (folder / "info" / "exclude").write_bytes(files.exclude)


def _copy_index(repository: Repository, source: Path) -> None:
    try:
        index = read_as(repository.owner, lambda: open_index(source))
        with contextlib.ExitStack() as stack:
            files = {name: stack.enter_context(os.fdopen(found, "rb")) for name, found in index.items()}
            for name, file in files.items():
                with (repository.folder / name).open("xb") as copy:
                    shutil.copyfileobj(file, copy)
                # By its time git knows files that were changed right after it, and compares what they hold.
                written_ns = os.fstat(file.fileno()).st_mtime_ns
                os.utime(repository.folder / name, ns=(written_ns, written_ns))
    except OSError as error:
        raise PlanError(f"{repository.tree}: the index cannot be read: {error.strerror}") from None


def _configuration(tree: Path, files: TreeFiles, plain: Repository) -> Mapping[str, str]:
    """What the tree's configuration has, as data: git parses the text, follows no include, and obeys nothing of it."""
    words = ("config", "--file", "-", "--no-includes", "--list", "-z")
    done = plain.run(*words, stdin=files.configuration.decode("utf-8", "replace"), check=False)
    if done.status != 0:
        raise PlanError(
            f"{tree} is no git repository that can be read (its config: {done.stderr.strip()[:200]})"
        )
    pairs = (line.partition("\n") for line in done.stdout.split("\0") if line)
    known = {name: value for name, _, value in pairs}
    reasons = [
        f"{tree} has {name} = {known[name][:40]!r}, which is not read; allowed is {' or '.join(allowed)}"
        for name, allowed in _FORMATS.items()
        if known.get(name, allowed[0]).lower() not in allowed
    ]
    unknown = sorted(
        name
        for name in known
        if name.startswith("extensions.") and name not in _EXTENSIONS and name not in _FORMATS
    )
    reasons += [f"{tree} has {name[:80]}, which bedplate does not know" for name in unknown]
    if reasons:
        raise PlanError(*reasons, "name a clone of it")
    return known


def _has_work_tree(tree: Path, files: TreeFiles, known: Mapping[str, str]) -> bool:
    """Whether the tree has files beside the repository; PlanError where its .git leads to a repository that has others."""
    named = known.get("core.worktree")
    is_named = named is not None and os.path.realpath(files.repository / named) == os.path.realpath(tree)
    if files.claims_tree is False and not is_named:
        raise PlanError(
            f"{tree}/.git leads to {files.repository}, which does not have {tree} as its work tree; name that repository"
        )
    is_bare = _boolean(known.get("core.bare", "false")) == "true"
    return files.claims_tree is True or (files.has_git and not is_bare and (named is None or is_named))


def _boolean(text: str) -> str:
    return "true" if text.lower() in _TRUE else "false"


def _give(repository: Repository) -> None:
    if repository.account is None or os.geteuid() != 0:
        return
    uid, gid = repository.account.uid, repository.account.gid
    for where, folders, names in os.walk(repository.folder):
        for name in (*folders, *names):
            os.chown(Path(where, name), uid, gid, follow_symlinks=False)
    os.chown(repository.folder, uid, gid)
