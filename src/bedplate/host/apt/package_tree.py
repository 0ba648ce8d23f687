"""Tools that the machine has not installed, unpacked into the cache: no root, nothing of the machine changed.

    <cache>/packages/busybox-static-0123456789ab/
        tree.json        written last: a folder without it is not a tree
        root/            what the packages hold, never configured: no script of theirs has run

A tree is named by what was asked for and by the release that the machine runs. It stays as it is
until somebody removes it, so that a study keeps its tools.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import CommandFailed, OutputNotUnderstood, RequirementMissing, VerifyFailed
from bedplate.host.apt.archives import code_name, own_archives, parse_os_release, security_archives
from bedplate.host.apt.private_root import (
    AptSystem,
    PrivateRoot,
    apt_reason,
    is_unreachable,
    read_apt_system,
    source_line,
)
from bedplate.host.file_lock import file_lock
from bedplate.host.files import sha256_of
from bedplate.host.requirement import read_os_release
from bedplate.host.whole_folder import put_in_place

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from bedplate.host.apt.packages import BinaryPackage
    from bedplate.host.command import Commands

_RECORD = "tree.json"
# Part of a tree's name: what is made of the same packages.
_FORM_VERSION = 1
_FETCH = ".fetch-"
_UNPACK_TIMEOUT_S = 600.0
# Folders of programs, those for root first, as in the system's own search path.
_PROGRAM_FOLDERS = ("usr/local/sbin", "usr/local/bin", "usr/sbin", "usr/bin", "sbin", "bin")
_LIBRARY_FOLDERS = ("usr/lib", "lib")
# A program that is started with another C library than its own loader's crashes at once.
_C_LIBRARY = "libc6"


@dataclass(frozen=True)
class PackageTree:
    """Unpacked packages; `packages` maps each name to its version, `checksums` to its SHA-256."""

    root: Path
    packages: Mapping[str, str]
    checksums: Mapping[str, str]

    @property
    def path(self) -> tuple[Path, ...]:
        """Entries for the front of PATH: those folders of programs that the tree has."""
        return tuple(
            folder
            for name in _PROGRAM_FOLDERS
            if (folder := self.root / name).is_dir() and any(folder.iterdir())
        )

    @property
    def library_path(self) -> tuple[Path, ...]:
        """Entries for LD_LIBRARY_PATH: the folders of the loader's that hold shared libraries here."""
        tops = [self.root / name for name in _LIBRARY_FOLDERS]
        # usr/lib/x86_64-linux-gnu, where Debian has its libraries; programs know deeper folders themselves.
        folders = [folder for top in tops for folder in (top, *sorted(top.glob("*-linux-gnu*")))]
        return tuple(folder for folder in folders if any(folder.glob("*.so*")))

    @property
    def environment(self) -> Mapping[str, str]:
        """PATH (before the caller's own) and LD_LIBRARY_PATH, for `Commands.run(extra_environment=)`."""
        found = {"PATH": os.pathsep.join([*map(str, self.path), os.environ.get("PATH", os.defpath)])}
        if self.library_path:
            found["LD_LIBRARY_PATH"] = os.pathsep.join(map(str, self.library_path))
        return found

    def program(self, name: str) -> Path | None:
        """The program `name` of the tree."""
        found = shutil.which(name, path=os.pathsep.join(map(str, self.path))) if self.path else None
        return Path(found) if found else None

    def demand_program(self, name: str) -> Path:
        """The program `name` of the tree; RequirementMissing where its packages have none."""
        found = self.program(name)
        if found is None:
            names = ", ".join(self.packages)
            raise RequirementMissing(f"the packages {names} were unpacked and have no program {name}")
        return found


@dataclass(frozen=True)
class _Asked:
    """What decides a tree; its digest names it."""

    packages: tuple[str, ...]
    suite: str | None
    components: tuple[str, ...]
    with_dependencies: bool
    distribution: str
    architecture: str

    def folder(self, cache_directory: Path) -> Path:
        asked = json.dumps([_FORM_VERSION, asdict(self)], sort_keys=True)
        digest = hashlib.sha256(asked.encode()).hexdigest()
        return packages_directory(cache_directory) / f"{self.packages[0].partition('=')[0]}-{digest[:12]}"


def packages_directory(cache_directory: Path) -> Path:
    """Where the trees lie in a cache."""
    return cache_directory / "packages"


def find_package_tree(
    packages: Sequence[str],
    *,
    cache_directory: Path,
    suite: str | None = None,
    components: Sequence[str] = ("main",),
    with_dependencies: bool = True,
) -> PackageTree | None:
    """The tree that `ensure_package_tree` would answer with at once; needs no network."""
    asked = _asked(packages, suite, components, with_dependencies=with_dependencies)
    return _read(asked.folder(cache_directory))


def ensure_package_tree(
    packages: Sequence[str],
    *,
    cache_directory: Path,
    commands: Commands,
    progress: Callable[[str], None],
    suite: str | None = None,
    components: Sequence[str] = ("main",),
    with_dependencies: bool = True,
) -> PackageTree:
    """These binary packages (`name` or `name=version`) unpacked in the cache, made now if it lacks them.

    They come from the machine's own suite with its updates, or, where `suite` names one more
    (`bookworm-backports`), from that one first. `components` are `main`, `contrib`, …
    `with_dependencies` adds what the machine lacks of their dependencies, as apt would install it.
    RequirementMissing says what apt said, and the way out.
    """
    asked = _asked(packages, suite, components, with_dependencies=with_dependencies)
    folder = asked.folder(cache_directory)
    lock = packages_directory(cache_directory) / ".lock"
    with file_lock(lock, on_wait=lambda: progress("waits for another start of bedplate")):
        kept = _read(folder)
        if kept is not None:
            return kept
        for left in folder.parent.glob(f"{_FETCH}*"):
            # Whoever made it was killed: the lock is ours.
            shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix=_FETCH, dir=folder.parent) as temporary:
            try:
                _make(asked, folder, work=Path(temporary), commands=commands, progress=progress)
            except CommandFailed as error:
                raise _unavailable(asked, apt_reason(error)) from error
    made = _read(folder)
    assert made is not None  # noqa: S101 -- it was just written, and nobody removes trees
    return made


def unpack_packages(
    root: PrivateRoot, packages: Sequence[BinaryPackage], *, work: Path, target: Path, commands: Commands
) -> None:
    """Download into a folder of `work`, hold every checksum against the index, unpack into `target`.

    CommandFailed with the tool's words; VerifyFailed for a file that is not what the index promises.
    """
    downloads = work / "downloads"
    downloads.mkdir()
    target.mkdir(exist_ok=True)
    files = root.download(packages, downloads)
    for package, file in zip(packages, files, strict=True):
        found = sha256_of(file)
        if found != package.sha256:
            raise VerifyFailed(f"{file.name} has the checksum {found}, the index promises {package.sha256}")
        commands.run(["dpkg-deb", "--extract", str(file), str(target)], timeout_s=_UNPACK_TIMEOUT_S)
        file.unlink()
    _keep_links_inside(target)


def _keep_links_inside(root: Path) -> None:
    """Make absolute links relative where their target is in the tree: /sbin/depmod names /bin/kmod."""
    for folder, folders, files in os.walk(root):
        for link in (Path(folder, name) for name in (*folders, *files)):
            if not link.is_symlink() or not link.readlink().is_absolute():
                continue
            inside = root / link.readlink().relative_to("/")
            if inside.exists() or inside.is_symlink():
                link.unlink()
                link.symlink_to(os.path.relpath(inside, link.parent))


def _asked(
    packages: Sequence[str], suite: str | None, components: Sequence[str], *, with_dependencies: bool
) -> _Asked:
    if not packages or any(not name or name.startswith("-") for name in packages):
        raise ValueError(f"not a list of packages: {packages!r}")
    release = parse_os_release(read_os_release())
    return _Asked(
        packages=tuple(sorted(packages)),
        suite=suite,
        components=tuple(components),
        with_dependencies=with_dependencies,
        distribution=f"{release.get('ID', '')} {code_name(release) or release.get('VERSION_ID', '')}",
        architecture=os.uname().machine,
    )


def _make(
    asked: _Asked, folder: Path, *, work: Path, commands: Commands, progress: Callable[[str], None]
) -> None:
    names = " ".join(asked.packages)
    root = PrivateRoot(work / "apt", commands)
    _add_suites(root, asked, read_apt_system(commands), progress)
    if asked.with_dependencies:
        packages = root.installation(asked.packages, preferred_suite=asked.suite)
    else:
        packages = root.binary_packages(asked.packages, preferred_suite=asked.suite)
    there = {name for item in packages for name in (item.name, f"{item.name}={item.version}")}
    lacking = [name for name in asked.packages if name not in there]
    if lacking:
        raise _unavailable(asked, f"the archive has no package {', '.join(lacking)}")
    if any(item.name == _C_LIBRARY for item in packages):
        raise _unavailable(asked, f"they need a newer C library ({_C_LIBRARY}) than this machine has")
    progress(f"fetches {names}: {len(packages)} packages")
    fresh = work / "tree"
    fresh.mkdir(mode=0o755)
    unpack_packages(root, packages, work=work, target=fresh / "root", commands=commands)
    record = {
        "asked": asdict(asked),
        "packages": {item.name: item.version for item in packages},
        "checksums": {item.name: item.sha256 for item in packages},
    }
    (fresh / _RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    put_in_place(fresh, folder)


def _add_suites(root: PrivateRoot, asked: _Asked, system: AptSystem, progress: Callable[[str], None]) -> None:
    """Everything that the machine itself would install from, and the suite that was asked for."""
    archives = own_archives(system.archives, system.os_release)
    own = code_name(system.os_release)
    if not archives:
        raise _unavailable(asked, "apt's sources name no archive of this distribution's own suite")
    main, reasons = archives[0], []
    security = security_archives(system.archives)
    wanted = [(main, own or main.suite, True), (main, f"{own}-updates", False)]
    wanted += [(item, f"{own}-security", False) for item in security]
    if asked.suite is not None:
        is_security = asked.suite.endswith("-security") and security
        wanted.append((security[0] if is_security else main, asked.suite, True))
    lines = {
        suite: source_line(archive, suite, system, kind="deb", components=asked.components)
        for archive, suite, _ in wanted
    }
    progress(f"reads the distribution's {', '.join(lines)}")
    with contextlib.suppress(CommandFailed):
        root.add(*lines.values())
        return
    # One of them is not there: not every distribution has every suite.
    for _, suite, needed in wanted:
        try:
            root.add(lines[suite])
        except CommandFailed as error:
            reasons.append(f"{suite}: {apt_reason(error)}")
            if needed or is_unreachable(error):
                raise _unavailable(asked, *reasons) from error


def _unavailable(asked: _Asked, *reasons: str) -> RequirementMissing:
    names = " ".join(asked.packages)
    return RequirementMissing(
        *(f"{names}: {reason}" for reason in reasons),
        f"install them by hand ({names}), or start bedplate where the distribution's mirror can be reached",
    )


def _read(folder: Path) -> PackageTree | None:
    try:
        text = (folder / _RECORD).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        fields = json.loads(text)
        return PackageTree(folder / "root", dict(fields["packages"]), dict(fields["checksums"]))
    except (ValueError, TypeError, KeyError) as error:
        raise OutputNotUnderstood(
            str(folder / _RECORD),
            expected="the record of a tree (remove its folder to fetch it again)",
            found=text,
        ) from error
