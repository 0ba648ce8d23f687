"""A stranger's repository, read as data: its names for commits, its configuration as text, the folders of its objects.

git reads none of this by itself (`own_repository.py`). Every file is a plain one, opened beside the folder that it lies in and through no
link, and has a limit; so a pipe, a device or a file without end is named and not read.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import PlanError
from bedplate.units import GIB, KIB, MIB, format_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_HASH = re.compile(rb"(?:[0-9a-f]{40}|[0-9a-f]{64})(?=\s|$)")
# What git-check-ref-format(1) refuses, and git therefore passes over.
_NO_NAME = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(?:/|$)|[/.]$")
_PSEUDO = re.compile(r"[A-Z_]+_HEAD")
_SHARED_INDEX = re.compile(r"sharedindex\.[0-9a-f]{40,64}")
_NAME_BYTES_MOST, _LOOSE_BYTES_MOST, _PACKED_BYTES_MOST = 4 * KIB, 4 * KIB, 128 * MIB
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

    def _is(self, name: str, kind: int) -> bool:
        try:
            mode = os.stat(name, dir_fd=self.descriptor, follow_symlinks=False).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return False
        if stat.S_IFMT(mode) != kind:
            raise _of_another_kind(self.path / name, mode, kind)
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
    text = os.fsdecode(top.content(".git", _NAME_BYTES_MOST) or b"").rstrip("\n")
    if not text.startswith("gitdir: ") or "\0" in text:
        raise PlanError(_no_repository(top.path, ".git is a file that names no repository"))
    repository = Path(os.path.normpath(top.path / text.removeprefix("gitdir: ")))
    with _opened(repository) as folder:
        back = os.fsdecode(folder.content("gitdir", _NAME_BYTES_MOST) or b"").rstrip("\n")
    return repository, True, bool(back) and _is_same(repository / back, top.path / ".git")


def _common(folder: _Folder, *, claims_tree: bool) -> Path:
    """Where the names and objects of a repository are: of a linked work tree, two folders above."""
    named = folder.content("commondir", _NAME_BYTES_MOST)
    if named is None:
        return folder.path
    above = folder.path.parent.parent
    if (
        claims_tree
        and folder.path.parent.name == "worktrees"
        and _is_same(folder.path / os.fsdecode(named).rstrip("\n"), above)
    ):
        return above
    raise PlanError(f"{folder.path / 'commondir'} leads to another repository; name that one, or a clone")


def _heads(folder: _Folder) -> Mapping[str, bytes]:
    found = {"HEAD": _line(folder.content("HEAD", _LOOSE_BYTES_MOST))}
    if not found["HEAD"]:
        raise PlanError(_no_repository(folder.path, "its HEAD names no commit and no branch"))
    for name in folder.names():
        if _PSEUDO.fullmatch(name) and (line := _line(folder.content(name, _SMALL_BYTES_MOST))):
            found[name] = line
    return found


def _refs(folder: _Folder) -> Mapping[str, bytes]:
    packed = folder.content("packed-refs", _PACKED_BYTES_MOST) or b""
    pairs = (line.split(b" ", 1) for line in packed.splitlines() if line[:1] not in (b"#", b"^"))
    found = {os.fsdecode(pair[1]): _line(pair[0]) for pair in pairs if len(pair) == 2}
    with folder.folder("refs") as refs:
        if refs is not None:
            loose = dict(itertools.islice(_loose(refs, "refs", 0), _LOOSE_MOST + 1))
            if len(loose) > _LOOSE_MOST:
                raise PlanError(f"{refs.path} has more than {_LOOSE_MOST} files; `git pack-refs --all`")
            found |= loose
    return {name: content for name, content in found.items() if content and _is_ref(name)}


def _is_ref(name: str) -> bool:
    """Whether git takes it for the full name of a branch or tag."""
    return name.startswith("refs/") and _NO_NAME.search(name) is None


def _loose(folder: _Folder, prefix: str, depth: int) -> Iterator[tuple[str, bytes]]:
    if depth > _FOLDERS_DEEP_MOST:
        raise PlanError(f"{folder.path} lies more than {_FOLDERS_DEEP_MOST} folders deep; no name is so long")
    for name in folder.names():
        mode = os.stat(name, dir_fd=folder.descriptor, follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode):
            with folder.folder(name) as inner:
                if inner is not None:
                    yield from _loose(inner, f"{prefix}/{name}", depth + 1)
        else:
            yield f"{prefix}/{name}", _line(folder.content(name, _LOOSE_BYTES_MOST))


def _line(content: bytes | None) -> bytes:
    """What a name stands for; nothing where it is neither a hash nor another name."""
    first = (content or b"").split(b"\n", 1)[0].rstrip()
    target = first.removeprefix(b"ref:").strip()
    if target != first and _is_ref(os.fsdecode(target)):
        return b"ref: " + target
    found = _HASH.match(first)
    return b"" if found is None else found[0]


def _require_alternates(objects: _Folder, depth: int, seen: list[Path]) -> None:
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
        if path in seen:
            continue
        seen.append(path)
        if depth >= _ALTERNATES_DEEP_MOST or len(seen) > _ALTERNATES_MOST:
            raise PlanError(f"{what}; so many folders that borrow from each other are not read")
        with _opened(path) as borrowed:
            _require_plain(borrowed)
            _require_alternates(borrowed, depth + 1, seen)


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


def _mode(entry: os.DirEntry[str]) -> int:
    return entry.stat(follow_symlinks=False).st_mode


def _inner(folder: _Folder, name: str, file: str) -> bytes:
    with folder.folder(name) as inner:
        return (inner.content(file, _SMALL_BYTES_MOST) or b"") if inner is not None else b""


def _is_same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
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


def _of_another_kind(path: Path, mode: int, wanted: int) -> PlanError:
    return PlanError(
        f"{path} is {_KINDS.get(stat.S_IFMT(mode), 'of an unknown kind')}, where a repository has {_KINDS[wanted]}; "
        "it is not read; name a clone of the repository"
    )


def _no_repository(tree: Path, why: str) -> str:
    return f"{tree} is no git repository that can be read ({why}); name the top folder of a work tree, or a bare repository"
