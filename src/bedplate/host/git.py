"""Git repositories of others: a commit by its name, the files of a commit, patches. Read only; nothing of theirs is executed."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import itertools
import os
import re
import shutil
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple, TypeVar

from bedplate.errors import (
    BedplateError,
    BuildFailed,
    CommandFailed,
    CommandNotStarted,
    PlanError,
    RequirementMissing,
)
from bedplate.host.account import server_account
from bedplate.host.command import Account, Commands, Completed, bare_environment, environment
from bedplate.host.interruption import defer_interruptions
from bedplate.model.cell import UNTRACKED, WORKING_TREE, SourceCommit, SourceTree
from bedplate.near_names import did_you_mean, of_near_paths, quoted
from bedplate.units import GIB, KIB, MIB, format_size, one_line

_T = TypeVar("_T")

# setgroups(2), by the machine's name; glibc's function changes all threads.
_SETGROUPS = {"x86_64": 116, "aarch64": 159, "riscv64": 159}

_UNCHANGED = 0xFFFFFFFF


def read_as(account: Account | None, reader: Callable[[], _T]) -> _T:
    """What `reader` returns, in a thread that opens files with the rights of an account; with the caller's own for None.

    The kernel asks for the rights of the thread alone (setfsuid(2)), and takes root's right to pass them with the change.
    """
    if account is None:
        return reader()
    results: list[_T] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            _become(account)
            results.append(reader())
        except BaseException as error:  # noqa: BLE001 -- it is the caller's
            errors.append(error)

    thread = threading.Thread(target=work, name="reads as an account")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def _become(account: Account) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    setgroups = _SETGROUPS.get(os.uname().machine)
    if setgroups is not None:
        libc.syscall(setgroups, 0, None)
    libc.setfsgid(account.gid)
    libc.setfsuid(account.uid)
    # Each returns what was there before, and never an error.
    if (libc.setfsuid(_UNCHANGED), libc.setfsgid(_UNCHANGED)) != (account.uid, account.gid):
        raise PermissionError(f"files cannot be read as account {account.name}")


_HASH_BYTES = re.compile(rb"(?:[0-9a-f]{40}|[0-9a-f]{64})(?=\s|$)")

# What git-check-ref-format(1) refuses, and git therefore passes over.
_NO_NAME = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(?:/|$)|[/.]$")

_PSEUDO = re.compile(r"[A-Z_]+_HEAD")
_SHARED_INDEX = re.compile(r"sharedindex\.[0-9a-f]{40,64}")
_TREE_NAME_BYTES_MOST, _LOOSE_BYTES_MOST, _PACKED_BYTES_MOST = 4 * KIB, 4 * KIB, 128 * MIB
_SMALL_BYTES_MOST, _SHALLOW_BYTES_MOST, _INDEX_BYTES_MOST = MIB, 64 * MIB, GIB
_LOOSE_MOST, _FOLDERS_DEEP_MOST = 200_000, 64
_OBJECTS_MOST = 5_000_000

# git follows as many, too.
_ALTERNATES_DEEP_MOST, _ALTERNATES_MOST = 5, 64

_WORK_TREE_FILES_MOST = 5_000_000

# What git opens in a work tree by its name alone, its own folders in other repositories there among them.
_OPENED_BY_NAME = frozenset([".git", ".gitattributes", ".gitignore", ".gitmodules", "HEAD", "commondir"])

_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFBLK: "a block device",
    stat.S_IFCHR: "a character device",
    stat.S_IFDIR: "a folder",
    stat.S_IFREG: "a file",
}


@dataclass(frozen=True)
class TreeFiles:
    """What was found at a tree. `refs` and `heads` are the contents of names: a hash, or `ref: ` and another name."""

    repository: Path
    has_git: bool
    """whether it is the .git of a work tree"""
    claims_tree: bool | None
    """whether a repository that lies elsewhere names the tree as a linked work tree; None for one that lies in it"""
    heads: Mapping[str, bytes]
    refs: Mapping[str, bytes]
    configuration: bytes
    objects: Path
    shallow: bytes
    exclude: bytes


class _Folder:
    """A folder by its descriptor."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path, self.descriptor = path, descriptor

    @contextlib.contextmanager
    def folder(self, name: str) -> Iterator[_Folder | None]:
        """A folder in it; None where there is none."""
        if not self._is(name, stat.S_IFDIR):
            yield None
            return
        with _opened(self.path / name, name, self.descriptor) as folder:
            yield folder

    def content(self, name: str, most: int) -> bytes | None:
        """All of a file in it; None where there is none."""
        descriptor = self.open(name, most)
        if descriptor is None:
            return None
        with os.fdopen(descriptor, "rb") as file:
            content = file.read(most + 1)
        if len(content) > most:
            raise self._too_large(name, most)
        return content

    def open(self, name: str, most: int) -> int | None:
        """A descriptor of a file in it."""
        if not self._is(name, stat.S_IFREG):
            return None
        descriptor = os.open(
            name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW, dir_fd=self.descriptor
        )
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode) and status.st_size <= most:
            return descriptor
        os.close(descriptor)
        raise self._too_large(name, most)

    def names(self) -> list[str]:
        """Of what is in it."""
        return os.listdir(self.descriptor)  # noqa: PTH208 -- a descriptor has no path

    def _is(self, name: str, expected_kind: int) -> bool:
        try:
            mode = os.stat(name, dir_fd=self.descriptor, follow_symlinks=False).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return False
        if stat.S_IFMT(mode) != expected_kind:
            raise _of_another_kind(self.path / name, mode, expected_kind)
        return True

    def _too_large(self, name: str, most: int) -> PlanError:
        return PlanError(
            f"{self.path / name} is larger than {format_size(most)}, which is the most that is read of it; "
            "`git gc` or a fresh clone makes it smaller"
        )


def read_tree(tree: Path) -> TreeFiles:
    """What lies at a work tree or a bare repository. PlanError names what is not as in a repository; OSError where it cannot be read."""
    with _opened(tree) as top:
        repository, has_git, claims_tree = _repository_of(top)
    with _opened(repository) as folder:
        common = _common(folder, claims_tree=claims_tree is True)
        heads = _heads(folder)
    with _opened(common) as folder:
        with folder.folder("objects") as objects:
            if objects is None:
                raise PlanError(_no_repository(tree, f"{common} has no objects"))
            _require_plain(objects)
            _require_alternates(objects, 0, [])
        return TreeFiles(
            repository,
            has_git,
            claims_tree,
            heads,
            _refs(folder),
            folder.content("config", _SMALL_BYTES_MOST) or b"",
            common / "objects",
            folder.content("shallow", _SHALLOW_BYTES_MOST) or b"",
            _inner(folder, "info", "exclude"),
        )


def open_index(repository: Path) -> Mapping[str, int]:
    """Descriptors of the files that the index consists of, by their names; they are the caller's to close."""
    with _opened(repository) as folder:
        names = ["index", *(name for name in folder.names() if _SHARED_INDEX.fullmatch(name))]
        return {name: found for name in names if (found := folder.open(name, _INDEX_BYTES_MOST)) is not None}


def require_plain_rules(tree: Path) -> None:
    """PlanError where one of the names that git opens in a work tree is a pipe or a device."""
    left = _WORK_TREE_FILES_MOST
    waiting = [tree]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                left -= 1
                if entry.is_dir(follow_symlinks=False):
                    if entry.path != f"{tree}/.git":
                        waiting.append(Path(entry.path))
                elif entry.name in _OPENED_BY_NAME and not (entry.is_symlink() or entry.is_file()):
                    raise _of_another_kind(
                        Path(entry.path), entry.stat(follow_symlinks=False).st_mode, stat.S_IFREG
                    )
        if left < 0:
            raise PlanError(
                f"{tree} has more than {_WORK_TREE_FILES_MOST} files; commit what is to be measured, and name the commit"
            )


def _repository_of(top: _Folder) -> tuple[Path, bool, bool | None]:
    """Where it lies, whether it is a .git, and `claims_tree`."""
    try:
        mode = os.stat(".git", dir_fd=top.descriptor, follow_symlinks=False).st_mode
    except FileNotFoundError:
        if "HEAD" not in top.names() or "objects" not in top.names():
            raise PlanError(_no_repository(top.path, "it has no .git, and no HEAD and objects")) from None
        return top.path, False, None
    if stat.S_ISDIR(mode):
        return top.path / ".git", True, None
    text = os.fsdecode(top.content(".git", _TREE_NAME_BYTES_MOST) or b"").rstrip("\n")
    if not text.startswith("gitdir: ") or "\0" in text:
        raise PlanError(_no_repository(top.path, ".git is a file that names no repository"))
    repository = Path(os.path.normpath(top.path / text.removeprefix("gitdir: ")))
    with _opened(repository) as folder:
        back = os.fsdecode(folder.content("gitdir", _TREE_NAME_BYTES_MOST) or b"").rstrip("\n")
    return repository, True, bool(back) and _is_same(repository / back, top.path / ".git")


def _common(directory: _Folder, *, claims_tree: bool) -> Path:
    """Where the names and objects of a repository are: of a linked work tree, two folders above."""
    named = directory.content("commondir", _TREE_NAME_BYTES_MOST)
    if named is None:
        return directory.path
    above = directory.path.parent.parent
    if (
        claims_tree
        and directory.path.parent.name == "worktrees"
        and _is_same(directory.path / os.fsdecode(named).rstrip("\n"), above)
    ):
        return above
    raise PlanError(f"{directory.path / 'commondir'} leads to another repository; name that one, or a clone")


def _heads(directory: _Folder) -> Mapping[str, bytes]:
    found = {"HEAD": _line(directory.content("HEAD", _LOOSE_BYTES_MOST))}
    if not found["HEAD"]:
        raise PlanError(_no_repository(directory.path, "its HEAD names no commit and no branch"))
    for name in directory.names():
        if _PSEUDO.fullmatch(name) and (line := _line(directory.content(name, _SMALL_BYTES_MOST))):
            found[name] = line
    return found


def _refs(directory: _Folder) -> Mapping[str, bytes]:
    packed = directory.content("packed-refs", _PACKED_BYTES_MOST) or b""
    pairs = (line.split(b" ", 1) for line in packed.splitlines() if line[:1] not in (b"#", b"^"))
    found = {os.fsdecode(pair[1]): _line(pair[0]) for pair in pairs if len(pair) == 2}
    with directory.folder("refs") as refs:
        if refs is not None:
            loose = dict(itertools.islice(_loose(refs, "refs", 0), _LOOSE_MOST + 1))
            if len(loose) > _LOOSE_MOST:
                raise PlanError(f"{refs.path} has more than {_LOOSE_MOST} files; `git pack-refs --all`")
            found |= loose
    return {name: content for name, content in found.items() if content and _is_ref(name)}


def _is_ref(name: str) -> bool:
    """Whether git takes it for the full name of a branch or tag."""
    return name.startswith("refs/") and _NO_NAME.search(name) is None


def _loose(directory: _Folder, prefix: str, depth: int) -> Iterator[tuple[str, bytes]]:
    if depth > _FOLDERS_DEEP_MOST:
        raise PlanError(
            f"{directory.path} lies more than {_FOLDERS_DEEP_MOST} folders deep; no name is so long"
        )
    for name in directory.names():
        mode = os.stat(name, dir_fd=directory.descriptor, follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode):
            with directory.folder(name) as inner:
                if inner is not None:
                    yield from _loose(inner, f"{prefix}/{name}", depth + 1)
        else:
            yield f"{prefix}/{name}", _line(directory.content(name, _LOOSE_BYTES_MOST))


def _line(content: bytes | None) -> bytes:
    """What a name stands for; nothing where it is neither a hash nor another name."""
    first = (content or b"").split(b"\n", 1)[0].rstrip()
    target = first.removeprefix(b"ref:").strip()
    if target != first and _is_ref(os.fsdecode(target)):
        return b"ref: " + target
    found = _HASH_BYTES.match(first)
    return b"" if found is None else found[0]


def _require_alternates(objects: _Folder, depth: int, paths: list[Path]) -> None:
    """PlanError where git would read anything but the folders of objects that a repository borrows."""
    with objects.folder("info") as info:
        content = info.content("alternates", _SMALL_BYTES_MOST) if info is not None else None
    for line in (content or b"").splitlines():
        if not line or line.startswith(b"#"):
            continue
        path = Path(os.path.normpath(objects.path / os.fsdecode(line)))
        what = f"{objects.path}/info/alternates names {str(path)[:200]!r}"
        if line.startswith(b'"') or b"\0" in line or not path.is_dir():
            raise PlanError(f"{what}, where there is no folder of objects; `git fsck` says what is missing")
        if path in paths:
            continue
        paths.append(path)
        if depth >= _ALTERNATES_DEEP_MOST or len(paths) > _ALTERNATES_MOST:
            raise PlanError(f"{what}; so many folders that borrow from each other are not read")
        with _opened(path) as borrowed:
            _require_plain(borrowed)
            _require_alternates(borrowed, depth + 1, paths)


def _require_plain(objects: _Folder) -> None:
    """PlanError where something among the objects is neither a file nor a folder."""
    left = _OBJECTS_MOST
    with os.scandir(objects.descriptor) as entries:
        names = []
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                names.append(entry.name)
            elif not entry.is_file(follow_symlinks=False):
                raise _of_another_kind(objects.path / entry.name, _mode(entry), stat.S_IFDIR)
    for name in names:
        with objects.folder(name) as folder:
            if folder is None:
                continue
            with os.scandir(folder.descriptor) as entries:
                for entry in entries:
                    left -= 1
                    if not (entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)):
                        raise _of_another_kind(folder.path / entry.name, _mode(entry), stat.S_IFREG)
        if left < 0:
            raise PlanError(f"{objects.path} has more than {_OBJECTS_MOST} files; `git gc` packs them")


def _mode(leaf: os.DirEntry[str]) -> int:
    return leaf.stat(follow_symlinks=False).st_mode


def _inner(directory: _Folder, name: str, file_name: str) -> bytes:
    with directory.folder(name) as inner:
        return (inner.content(file_name, _SMALL_BYTES_MOST) or b"") if inner is not None else b""


def _is_same(path: Path, twin: Path) -> bool:
    try:
        return path.samefile(twin)
    except OSError:
        return False


@contextlib.contextmanager
def _opened(path: Path, name: str | None = None, within: int | None = None) -> Iterator[_Folder]:
    """A folder; one that is named within another is no link."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | (0 if name is None else os.O_NOFOLLOW)
    descriptor = os.open(path if name is None else name, flags, dir_fd=within)
    try:
        yield _Folder(path, descriptor)
    finally:
        os.close(descriptor)


def _of_another_kind(path: Path, mode: int, expected_kind: int) -> PlanError:
    return PlanError(
        f"{path} is {_KINDS.get(stat.S_IFMT(mode), 'of an unknown kind')}, where a repository has {_KINDS[expected_kind]}; "
        "it is not read; name a clone of the repository"
    )


def _no_repository(tree: Path, reason: str) -> str:
    return f"{tree} is no git repository that can be read ({reason}); name the top folder of a work tree, or a bare repository"


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
        _give_repository(repository)
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
    _give_repository(repository)
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


def _configuration(tree: Path, files: TreeFiles, repository: Repository) -> Mapping[str, str]:
    """What the tree's configuration has, as data: git parses the text, follows no include, and obeys nothing of it."""
    words = ("config", "--file", "-", "--no-includes", "--list", "-z")
    done = repository.run(*words, stdin=files.configuration.decode("utf-8", "replace"), check=False)
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


def _has_work_tree(tree: Path, files: TreeFiles, settings: Mapping[str, str]) -> bool:
    """Whether the tree has files beside the repository; PlanError where its .git leads to a repository that has others."""
    named = settings.get("core.worktree")
    is_named = named is not None and os.path.realpath(files.repository / named) == os.path.realpath(tree)
    if files.claims_tree is False and not is_named:
        raise PlanError(
            f"{tree}/.git leads to {files.repository}, which does not have {tree} as its work tree; name that repository"
        )
    is_bare = _boolean(settings.get("core.bare", "false")) == "true"
    return files.claims_tree is True or (files.has_git and not is_bare and (named is None or is_named))


def _boolean(text: str) -> str:
    return "true" if text.lower() in _TRUE else "false"


def _give_repository(repository: Repository) -> None:
    if repository.account is None or os.geteuid() != 0:
        return
    uid, gid = repository.account.uid, repository.account.gid
    for where, folders, names in os.walk(repository.folder):
        for name in (*folders, *names):
            os.chown(Path(where, name), uid, gid, follow_symlinks=False)
    os.chown(repository.folder, uid, gid)


_LONGEST_REVISION = 300
_NAMES_MOST = 20_000
_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")

# Of a tree's reflogs, and of the branches that others follow, git is not told either.
_BY_THE_PAST = re.compile(r"@\{")


@dataclass(frozen=True)
class WorkingChanges:
    """What a work tree has that its HEAD has not: a patch, and how many files git does not know."""

    commit: SourceCommit
    patch: str
    untracked: int


def is_full_hash(name: str) -> bool:
    """Whether it is the whole hash of an object, and no other name or option."""
    return _HASH.fullmatch(name) is not None


def resolve(tree: Path, revision: str) -> SourceCommit:
    """The commit that a name stands for: a branch, a tag, `master~1`, a hash.

    PlanError says why there is none: no such folder, no repository, no such name with those that are near, a shallow clone.
    RequirementMissing without git.
    """
    with borrow(tree) as repository:
        return commit_in(repository, revision)


def commit_in(repository: Repository, revision: str) -> SourceCommit:
    """The same in a repository that is open."""
    if not revision.isprintable() or not 0 < len(revision) <= _LONGEST_REVISION or revision.startswith("-"):
        raise PlanError(
            f"{quoted(revision)} names no commit; allowed is what git takes for one: a branch, a tag, `master~1`, a hash"
        )
    if _BY_THE_PAST.search(revision):
        raise PlanError(
            f"{quoted(revision)} names a commit by the clone's past or settings, which bedplate does not read; "
            "name a branch, a tag or a hash (`git rev-parse` says which)"
        )
    found = repository.text("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}", check=False)
    name = found.strip()
    if not is_full_hash(name):
        raise PlanError(_unknown(repository, revision))
    return SourceCommit(name, _subject(repository, name), _described(repository, name))


def text_of(repository: Repository, commit: str, path: str) -> str | None:
    """A file of a commit, by the commit's hash; None where it has none of that path."""
    name = f"{commit}:{path}"
    if repository.text("cat-file", "-t", name, check=False).strip() != "blob":
        return None
    if int(repository.text("cat-file", "-s", name)) > TEXT_BYTES_MOST:
        raise PlanError(f"{path} of {commit[:12]} in {repository.tree} is too large to be read")
    return repository.text("cat-file", "blob", name)


def working_changes(repository: Repository) -> WorkingChanges:
    """The changes of tracked files, staged or not, as a patch against HEAD; PlanError for a bare repository.

    The repository is one with an index (`borrow`).
    """
    tree, commit = repository.tree, commit_in(repository, "HEAD")
    if not repository.has_work_tree:
        raise PlanError(f"{tree} has no work tree of its own (a bare repository?); name a commit")
    read_as(repository.owner, lambda: require_plain_rules(tree))
    patch = repository.text(
        *("diff", "--no-ext-diff", "--no-textconv", "--no-color", "--binary", "--full-index", "--no-renames"),
        *("--src-prefix=a/", "--dst-prefix=b/", "--ignore-submodules=all", "HEAD", "--"),
        work_tree=tree,
    )
    if "\ufffd" in patch:
        raise PlanError(f"{tree} has changes that are not UTF-8 text; commit them, and name the commit")
    others = repository.text("ls-files", "--others", "--exclude-standard", "-z", work_tree=tree)
    return WorkingChanges(commit, patch, others.count("\0"))


def _unknown(repository: Repository, revision: str) -> str:
    said = f"{repository.tree} has no commit {quoted(revision)}"
    if repository.text("rev-parse", "--is-shallow-repository", check=False).strip() == "true":
        said += "; it is a shallow clone (`git fetch --unshallow` brings the rest)"
    names = repository.text(
        *("for-each-ref", f"--count={_NAMES_MOST}", "--format=%(refname:short)"),
        *("refs/heads", "refs/tags", "refs/remotes"),
        check=False,
    ).splitlines()
    asked = re.split(r"[~^@]", revision, maxsplit=1)[0]
    if asked != revision and asked in names:
        return f"{said}: {asked} is there, its history does not go back so far"
    listed = ", ".join(names[:5])
    hint = did_you_mean(
        asked, names, otherwise=f"it has {listed}" if listed else "it has no branch and no tag"
    )
    return f"{said}; {hint}"


def _subject(repository: Repository, commit: str) -> str:
    """By itself from the commit: git's own formatting obeys the repository's configuration."""
    _, _, message = repository.text("cat-file", "commit", commit).partition("\n\n")
    paragraph = message.lstrip("\n").partition("\n\n")[0]
    return one_line(" ".join(paragraph.split()))


def _described(repository: Repository, commit: str) -> str | None:
    return repository.text("describe", "--tags", "--abbrev=12", commit, check=False).strip() or None


_FILE, _PROGRAM, _LINK, _MODULE = "100644", "100755", "120000", "160000"

# What old trees have besides, which git reads as a plain file.
_FILES = (_FILE, _PROGRAM, "100664")

# In a manifest, the object of a file that may hold anything.
_UNKNOWN = "-"

_PIECE_BYTES = 1 << 20
_SAID_BYTES = 4000

# Linux has 90,000 files in 7 MB of names and 1.5 GB; a commit's objects may be many times that, and take nothing in the repository.
_LISTING_BYTES_MOST, _BYTES_MOST = 256 * MIB, 16 * GIB

# A link's own path on most file systems, a name on nearly all; the folder that it is written to is not counted.
_PATH_BYTES_MOST, _NAME_BYTES_MOST = 3000, 255


class _Entry(NamedTuple):
    mode: str
    name: str
    path: str


def export(tree: Path, commit: str, into: Path) -> None:
    """Write the files of a commit, named by its hash, into the folder `into`, which is made. Submodules are empty folders.

    PlanError where a path or a symbolic link of the commit leads out of the folder, or is no UTF-8; CommandFailed with git's own
    words where objects are missing; OSError where it cannot be written.
    """
    with borrow(tree) as repository:
        entries = _entries(repository, commit)
        into.mkdir()
        _write_entries(repository, commit, entries, into)


def refresh(tree: Path, commit: str, into: Path, manifest: Path) -> tuple[str, ...]:
    """Make the folder `into` the files of a commit, and write only what differs from what it holds: the paths that changed.

    What it holds stands in `manifest`, a file beside it that only this function writes; without one all is written. So what is made of the
    files by their times, as make(1) does, is made anew only where a file changed. Errors are those of `export`; after any of them, and after
    a kill, the next call mends the folder. `forget` says which files somebody else changed.
    """
    with borrow(tree) as repository:
        entries = _entries(repository, commit)
        known = _read_manifest(manifest) if into.is_dir() else {}
        gone = sorted(known.keys() - {entry.path for entry in entries})
        changed = [entry for entry in entries if known.get(entry.path) != (entry.mode, entry.name)]
        # First: what is killed from here on is written again, or taken away, by the next call.
        under_way = dict.fromkeys((*gone, *(entry.path for entry in changed)), (_FILE, _UNKNOWN))
        _write_manifest(manifest, {**known, **under_way})
        into.mkdir(exist_ok=True)
        for path in (*gone, *(entry.path for entry in changed)):
            _clear(into, path)
        _write_entries(repository, commit, changed, into)
    _write_manifest(manifest, {entry.path: (entry.mode, entry.name) for entry in entries})
    return tuple(sorted((*gone, *(entry.path for entry in changed))))


def forget(manifest: Path, paths: Iterable[str]) -> None:
    """Files below a refreshed folder that somebody else writes from now on: the next `refresh` writes them again, or takes them away."""
    _write_manifest(manifest, {**_read_manifest(manifest), **dict.fromkeys(paths, (_FILE, _UNKNOWN))})


def _write_entries(repository: Repository, commit: str, leaves: Iterable[_Entry], into: Path) -> None:
    leaves = tuple(leaves)
    for folder in dict.fromkeys(PurePosixPath(entry.path).parent for entry in leaves):
        (into / folder).mkdir(parents=True, exist_ok=True)
    for entry in leaves:
        if entry.mode == _MODULE:
            (into / entry.path).mkdir(exist_ok=True)
    # Links last: nothing is ever written through one.
    files = [entry for entry in leaves if entry.mode in _FILES]
    links = [entry for entry in leaves if entry.mode == _LINK]
    left = _BYTES_MOST
    with contextlib.closing(_contents(repository, [entry.name for entry in (*files, *links)])) as contents:
        for entry in files:
            size, pieces = next(contents)
            left -= size
            if left < 0:
                raise PlanError(
                    f"{repository.tree} at {commit[:12]} has more than {format_size(_BYTES_MOST)} of files, and is not written"
                )
            _write(into / entry.path, pieces, mode=0o755 if entry.mode == _PROGRAM else 0o644)
        for entry in links:
            size, pieces = next(contents)
            target = b"".join(pieces).decode("utf-8", "surrogateescape") if size <= _PATH_BYTES_MOST else ""
            if leads_out(entry.path, target):
                raise PlanError(
                    f"{repository.tree} at {commit[:12]}: the symbolic link {entry.path!r} leads out of the tree, "
                    f"to {target[:200]!r}"
                )
            (into / entry.path).symlink_to(target)


def _read_manifest(manifest: Path) -> dict[str, tuple[str, str]]:
    try:
        lines = manifest.read_text(encoding="utf-8").split("\0")
    except FileNotFoundError:
        return {}
    found = {}
    for line in lines[:-1]:
        mode, name, path = line.split(" ", 2)
        found[path] = (mode, name)
    return found


def _write_manifest(manifest: Path, held_by_path: Mapping[str, tuple[str, str]]) -> None:
    fresh = manifest.with_name(f".{manifest.name}")
    text = "".join(f"{mode} {name} {path}\0" for path, (mode, name) in held_by_path.items())
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(manifest)


def _clear(into: Path, path: str) -> None:
    """Take away what stands in the place of a file, and folders that are empty then; a link among its folders is none of ours."""
    place = into / path
    parents = [into / parent for parent in PurePosixPath(path).parents][:-1]
    for parent in reversed(parents):
        if parent.is_symlink() or (parent.exists() and not parent.is_dir()):
            parent.unlink()
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
    for parent in parents:
        with contextlib.suppress(OSError):
            parent.rmdir()


def _entries(repository: Repository, commit: str) -> Sequence[_Entry]:
    """All files of a commit; PlanError where some cannot be written below a folder."""
    where = f"{repository.tree} at {commit[:12]}"
    if not is_full_hash(commit):
        raise PlanError(f"{quoted(commit)} is no hash of a commit of {repository.tree}")
    with _started(repository, "ls-tree", "-r", "-z", "--full-tree", commit) as listing:
        assert listing.stdout is not None  # noqa: S101 -- Popen was given a pipe
        # A tree of a few hundred bytes may name more files than a disk can hold.
        listed = listing.stdout.read(_LISTING_BYTES_MOST + 1)
        if len(listed) > _LISTING_BYTES_MOST:
            raise PlanError(
                f"{where} has more files than {format_size(_LISTING_BYTES_MOST)} can name, and is not written"
            )
    found = []
    for line in listed.split(b"\0")[:-1]:
        about, _, path = line.partition(b"\t")
        mode, _, name = about.decode("ascii").split(" ")
        found.append(_Entry(mode, name, path.decode("utf-8", "surrogateescape")))
    reasons = [reason for entry in found if (reason := _misplaced(entry))]
    if reasons:
        raise PlanError(*(f"{where}: {reason}" for reason in reasons[:10]))
    return found


def _misplaced(leaf: _Entry) -> str | None:
    parts = leaf.path.split("/")
    try:
        leaf.path.encode("utf-8")
    except UnicodeEncodeError:
        return f"the path {leaf.path.encode('utf-8', 'surrogateescape')!r} is no UTF-8"
    if any(part in ("", ".", "..") or part.lower() == ".git" for part in parts):
        return f"the path {leaf.path[:200]!r} leads out of the tree"
    if len(os.fsencode(leaf.path)) > _PATH_BYTES_MOST or any(
        len(os.fsencode(part)) > _NAME_BYTES_MOST for part in parts
    ):
        return f"the path {leaf.path[:80]!r}… is longer than a file system takes"
    if leaf.mode not in (*_FILES, _LINK, _MODULE):
        return f"{leaf.path[:200]!r} is of the unknown mode {leaf.mode}"
    return None


def leads_out(path: str, target: str) -> bool:
    """Whether the target of a symbolic link at `path` is no place of the folder that the path begins in."""
    where = os.path.normpath(f"{PurePosixPath(path).parent}/{target}")
    return target.startswith("/") or where == ".." or where.startswith("../") or not target


def _write(path: Path, pieces: Iterator[bytes], *, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as file:
        for piece in pieces:
            file.write(piece)
        # Whatever the caller's umask is.
        os.fchmod(descriptor, mode)


def _contents(
    repository: Repository, names: Sequence[str]
) -> Generator[tuple[int, Iterator[bytes]], None, None]:
    """The size and the content of each object in order, in pieces; each is to be read to its end before the next."""
    with _started(repository, "cat-file", "--batch", "--buffer", asks=True) as reader:
        assert reader.stdin is not None  # noqa: S101 -- Popen was given pipes
        assert reader.stdout is not None  # noqa: S101
        asking = threading.Thread(target=_ask, args=(reader.stdin, names), name="asks git", daemon=True)
        asking.start()
        for name in names:
            head = reader.stdout.readline().split()
            if len(head) != 3 or head[1] != b"blob":
                raise BedplateError(
                    f"{repository.tree}: the object {name} cannot be read ({b' '.join(head).decode('ascii', 'replace') or 'git ended'}); "
                    "is the clone whole? `git fsck` says what it lacks"
                )
            yield int(head[2]), _pieces(reader.stdout, int(head[2]))
            reader.stdout.read(1)
        asking.join()


def _ask(stdin: IO[bytes], names: Sequence[str]) -> None:
    # A reader that ended is found by what it did not answer.
    with contextlib.suppress(OSError), stdin:
        for name in names:
            stdin.write(f"{name}\n".encode("ascii"))


def _pieces(stdout: IO[bytes], size: int) -> Iterator[bytes]:
    left = size
    while left:
        piece = stdout.read(min(left, _PIECE_BYTES))
        if not piece:
            raise BedplateError("git ended within an object")
        left -= len(piece)
        yield piece


@contextlib.contextmanager
def _started(repository: Repository, *words: str, asks: bool = False) -> Iterator[subprocess.Popen[bytes]]:
    """A git whose output is bytes, to its end; CommandFailed with its own words where it failed."""
    argv = repository.argv(*words)
    process: subprocess.Popen[bytes] | None = None
    try:
        with defer_interruptions():
            process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE if asks else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd="/",
                env=environment(),
                start_new_session=True,
            )
        yield process
        assert process.stderr is not None  # noqa: S101 -- Popen was given a pipe
        said = process.stderr.read(_SAID_BYTES).decode("utf-8", "replace").strip()
        if process.wait() != 0:
            raise CommandFailed(
                f"git {words[0]} of {repository.tree} ended with status {process.returncode}: {said}",
                argv=argv,
                status=process.returncode,
                output=said,
            )
    finally:
        if process is not None:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
        process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()


_PATCH_TIME_LIMIT_S = 300.0

_A_PATCH = re.compile(
    r"^(?:diff --git |--- (?:a/|/dev/null|\S)[^\n]*\n\+\+\+ |GIT binary patch$)", re.MULTILINE
)

_A_LINK = re.compile(r"^(?:new(?: file)? mode 12|index .* 120000$)", re.MULTILINE)

# `git format-patch`, and a mail that was saved: the patch may be encoded, and there may be several.
_MAIL = re.compile(r"\A(?:From [^\n]*\n|(?:[A-Za-z-]+: [^\n]*\n)+\n)")

_ENCODED = re.compile(
    r"^Content-Transfer-Encoding: *(?:quoted-printable|base64)", re.MULTILINE | re.IGNORECASE
)


def is_patch(text: str) -> bool:
    """Whether a text has a unified diff, plain or encoded as a mail is."""
    return bool(_A_PATCH.search(text)) or bool(_MAIL.match(text) and _ENCODED.search(text))


def apply_patch(text: str, folder: Path, *, commands: Commands, account: Account | None = None) -> None:
    """Apply a patch to the files below `folder`, all of it or nothing; CommandFailed with git's own words.

    git refuses one that names a file outside of the folder, or behind a symbolic link. PlanError where the patch made a symbolic link
    that leads out of it, which is then applied. `account` is who git runs as: it owns the folder's files.
    """
    with _laid_out(text, folder, commands, account) as (repository, patches):
        for patch in patches:
            repository.run(
                *("apply", "--whitespace=nowarn", str(patch)),
                work_tree=folder,
                timeout_s=_PATCH_TIME_LIMIT_S,
                commands=commands,
            )
    if _A_LINK.search(text) or _MAIL.match(text):
        _require_links_within(folder)


def paths_in_patch(
    text: str, folder: Path, *, commands: Commands, account: Account | None = None
) -> tuple[str, ...]:
    """The files below `folder` that a patch would change, make or take away; CommandFailed where it is none."""
    with _laid_out(text, folder, commands, account) as (repository, patches):
        words = ("apply", "--numstat", "-z", *map(str, patches))
        listed = repository.run(*words, work_tree=folder, commands=commands).stdout
    return tuple(entry.split("\t", 2)[2] for entry in listed.split("\0") if entry)


@contextlib.contextmanager
def _laid_out(
    text: str, folder: Path, commands: Commands, account: Account | None
) -> Iterator[tuple[Repository, Sequence[Path]]]:
    """The diffs of a text as files beside `folder`, and what git reads them with."""
    with tempfile.TemporaryDirectory(prefix=".patch-", dir=folder.parent) as temporary:
        place = Path(temporary)
        place.chmod(0o711)
        repository = plain_repository(folder, place / "own.git", account)
        work = place / "texts"
        work.mkdir()
        source = work / "patch"
        source.write_text(text, encoding="utf-8")
        _give_file(work, account)
        _give_file(source, account)
        yield repository, _plain(repository, source, work, commands) if _MAIL.match(text) else [source]


def _plain(repository: Repository, source: Path, work: Path, commands: Commands) -> list[Path]:
    """The diffs of the mails in a file, decoded, in their order."""
    parts = work / "mails"
    parts.mkdir()
    _give_file(parts, repository.account)
    repository.run("mailsplit", "-b", f"-o{parts}", str(source), commands=commands)
    found = []
    for mail in sorted(parts.iterdir()):
        message, patch = work / f"{mail.name}.message", work / f"{mail.name}.patch"
        text = mail.read_text(encoding="utf-8", errors="replace")
        repository.run("mailinfo", str(message), str(patch), stdin=text, commands=commands)
        found.append(patch)
    return found


def _require_links_within(folder: Path) -> None:
    for where, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = Path(where, name)
            target = str(path.readlink()) if path.is_symlink() else "."
            if leads_out(place := str(path.relative_to(folder)), target):
                raise PlanError(
                    f"the patch makes {place!r} a symbolic link that leads out of the tree, to {target[:200]!r}"
                )


def _give_file(path: Path, account: Account | None) -> None:
    if account is not None:
        os.chown(path, account.uid, account.gid)


_SAID_LINES = 12


def write_tree(folder: Path, source_tree: SourceTree, *, account: Account | None, commands: Commands) -> None:
    """Write a commit into `folder`, which is made and given to `account`, with the changes of the work tree where it has some.

    BuildFailed says what of the tree cannot be read, or does not apply.
    """
    try:
        # It says what a tree that was moved or cut down lacks.
        resolve(Path(source_tree.path), source_tree.commit.hash)
        export(Path(source_tree.path), source_tree.commit.hash, folder)
    except (PlanError, CommandFailed) as error:
        raise BuildFailed(*error.reasons) from error
    give(folder, account)
    if source_tree.changes is not None:
        apply_named(
            "the changes of the work tree", source_tree.changes, folder, account=account, commands=commands
        )


def apply_named(name: str, text: str, folder: Path, *, account: Account | None, commands: Commands) -> None:
    """Apply a patch to `folder`; BuildFailed has its `name` and git's own words."""
    try:
        apply_patch(text, folder, commands=commands, account=account)
    except CommandFailed as error:
        said = "\n".join(error.output.strip().splitlines()[-_SAID_LINES:]) or error.reasons[0]
        raise BuildFailed(f"{name} does not apply; git says: {said}") from error
    except PlanError as error:
        raise BuildFailed(f"{name}: {error.reasons[0]}") from error


def give(folder: Path, account: Account | None) -> None:
    """Give a folder and all below it to an account; links are given themselves."""
    if account is None:
        return
    os.chown(folder, account.uid, account.gid)
    for where, folders, names in os.walk(folder):
        for name in (*folders, *names):
            os.chown(Path(where, name), account.uid, account.gid, follow_symlinks=False)


class GitRevisions:
    """Of repositories on this machine."""

    def find(
        self,
        path: Path,
        revision: str,
        read_facts: Callable[[Callable[[str], str | None]], Mapping[str, str]],
    ) -> tuple[SourceCommit, Mapping[str, str], str | None]:
        """The commit, what `read_facts` makes of its files, and the changes beside it where the work tree is asked for.

        PlanError says what is not there.
        """
        with borrow(path, with_index=revision == WORKING_TREE) as repository:
            if revision != WORKING_TREE:
                commit = commit_in(repository, revision)
                return commit, read_facts(partial(text_of, repository, commit.hash)), None
            found = working_changes(repository)
            known = dict(read_facts(partial(text_of, repository, found.commit.hash)))
        if found.untracked:
            known[UNTRACKED] = str(found.untracked)
        return found.commit, known, found.patch or None

    def is_patch(self, text: str) -> bool:
        """Whether a text has a patch that can be applied."""
        return is_patch(text)
