"""Guest kernels: the distribution's packages unpacked in the cache side by side, or a self-built one.

    <cache>/kernels/6.12.95+deb12-amd64/
        kernel.json      written last: a folder without it is not a kernel
        root/boot/vmlinuz-6.12.95+deb12-amd64
        root/lib/modules/6.12.95+deb12-amd64/

A kernel in the cache stays as it is, and answers whatever it fits, so that a study begun stays on its
release; ask for a whole release to change it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import struct
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from statistics import median

from bedplate.errors import CommandFailed, OutputNotUnderstood, PlanError, RequirementMissing, VerifyFailed
from bedplate.executors.qemu.own_kernel import (
    COMPILER,
    EVERY_GUEST,
    RECIPE_VERSION,
    AllBuiltIn,
    Configuration,
    ImageUnread,
    KernelWork,
    NotUnpacked,
    WantedConfiguration,
    build_kernel,
    copy_result,
    embedded_configuration,
    has_pvh_entry,
    is_vmlinux,
    lacking,
    missing_requirements,
    read_configuration,
    release_in_image,
    unpack,
)
from bedplate.host.apt import (
    AptSystem,
    BinaryPackage,
    PackageArchive,
    PrivateRoot,
    apt_reason,
    code_name,
    ensure_package_tree,
    find_package_tree,
    is_ubuntu,
    is_unreachable,
    own_archives,
    parse_os_release,
    read_apt_system,
    security_archives,
    source_line,
    suites_to_try,
    unpack_packages,
)
from bedplate.host.cache import lock_of, make_once, put_in_place, work_place
from bedplate.host.command import Account, Commands
from bedplate.host.facts import SCHEDULER_MODULES, build_options
from bedplate.host.files import file_lock, sha256_of, text_of
from bedplate.host.git import apply_patch, forget, give, paths_in_patch, refresh
from bedplate.host.native_driver import BuildProgress, build_clock, build_failure
from bedplate.host.requirement import demand, find_tool, read_os_release
from bedplate.host.shut_in import builder_account
from bedplate.model.cell import KernelLevels, KernelSource, is_commit_level
from bedplate.model.limits import MODULE_LIMIT, read_at_most
from bedplate.model.machine import Machine
from bedplate.units import MIB

# `alias fs-ext3 ext4`: the type that makes the kernel load the module.
_TYPE_ALIAS = re.compile(r"^alias fs-(\S+) ", re.MULTILINE)

_BUILT_IN_TYPE_ALIAS = re.compile(rb"\.alias=fs-([^\0]+)\0")
_ELF = b"\x7fELF"

# Of a distribution they have 2 MB, and its modules depend on each other some ten deep.
_LIST_BYTES_MOST, _DEEPEST = 64 * MIB, 100


def module_name(path: str) -> str:
    """`nls_utf8` of `kernel/fs/nls/nls-utf8.ko.xz`: what lsmod calls it; - and _ are the same."""
    return PurePosixPath(path).name.partition(".ko")[0].replace("-", "_")


class ModuleTree:
    """A folder `lib/modules/<release>`; read when asked, never written."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @cached_property
    def dependencies(self) -> Mapping[str, tuple[str, ...]]:
        """Every loadable module to those that it needs, as paths within the folder (modules.dep)."""
        lines = self._text("modules.dep").splitlines()
        found = {}
        for line in lines:
            path, colon, needed = line.partition(":")
            if not colon:
                raise OutputNotUnderstood(
                    str(self.directory / "modules.dep"), expected="`module: modules`", found=line
                )
            found[path] = tuple(needed.split())
        return found

    @cached_property
    def built_in(self) -> tuple[str, ...]:
        """Modules that are part of the image, as paths that they would have (modules.builtin)."""
        return tuple(self._text("modules.builtin").split())

    def filesystems(self) -> tuple[str, ...]:
        """Types that the kernel has or can load, by module and by the names that modules answer to."""
        paths = [path for path in (*self.dependencies, *self.built_in) if "kernel/fs/" in path]
        # Tables of characters (nls) live there as well.
        modules = {module_name(path) for path in paths if "kernel/fs/nls/" not in path}
        aliases = set(_TYPE_ALIAS.findall(self._text("modules.alias")))
        information = self.directory / "modules.builtin.modinfo"
        if information.is_file():
            found = _BUILT_IN_TYPE_ALIAS.findall(self._bytes(information.name))
            aliases |= {name.decode("ascii", "replace") for name in found}
        return tuple(sorted(modules | aliases))

    def schedulers(self) -> tuple[str, ...]:
        """Schedulers of I/O that the kernel has or can load, `none` apart."""
        names = {module_name(path) for path in (*self.dependencies, *self.built_in)}
        return tuple(sorted(word for name, word in SCHEDULER_MODULES.items() if module_name(name) in names))

    def load_order(self, names: Iterable[str]) -> tuple[Path, ...]:
        """The files of these modules and all that they need, each after what it needs.

        What is built in is left out. RequirementMissing with one reason per module that the kernel
        does not have at all.
        """
        loadable = {module_name(path): path for path in self.dependencies}
        built_in = {module_name(path) for path in self.built_in}
        wanted = list(dict.fromkeys(module_name(name) for name in names))
        lacking = [name for name in wanted if name not in loadable and name not in built_in]
        if lacking:
            raise RequirementMissing(
                *(
                    f"the kernel of {self.directory} has no module {name}, built in or loadable"
                    for name in lacking
                )
            )
        order: dict[str, None] = {}
        for name in wanted:
            if name in loadable:
                self._visit(loadable[name], order, under_way=())
        return tuple(self.directory / path for path in order)

    def _visit(self, path: str, order: dict[str, None], *, under_way: tuple[str, ...]) -> None:
        if path in order:
            return
        if path in under_way or len(under_way) > _DEEPEST:
            raise OutputNotUnderstood(
                str(self.directory / "modules.dep"),
                expected=f"dependencies without a circle, at most {_DEEPEST} deep",
                found=" → ".join((*under_way, path)),
            )
        if path not in self.dependencies:
            raise OutputNotUnderstood(
                str(self.directory / "modules.dep"), expected=f"a line for {path}", found="none"
            )
        # The last stands nearest to the kernel: modprobe(8) loads from the end.
        for needed in reversed(self.dependencies[path]):
            self._visit(needed, order, under_way=(*under_way, path))
        order[path] = None

    def _text(self, name: str) -> str:
        return self._bytes(name).decode(errors="replace")

    def _bytes(self, name: str) -> bytes:
        try:
            return read_at_most(self.directory / name, _LIST_BYTES_MOST)
        except OSError as error:
            raise RequirementMissing(
                f"{self.directory / name} cannot be read ({error.strerror}); "
                f"`make modules_install` and depmod(8) write it"
            ) from error


def read_module(path: Path, *, commands: Commands, zstd: Tool | None = None) -> bytes:
    """The module itself, unpacked from any of the forms of `own_kernel.py`.

    `zstd` is the program for one of them, by default the one in the search path. RequirementMissing
    where a file is damaged or cannot be unpacked.
    """
    try:
        with path.open("rb") as file:
            packed = file.read(MODULE_LIMIT.most_bytes + 1)
        data = b"".join(unpack(packed, MODULE_LIMIT, commands, zstd))
    except (OSError, NotUnpacked) as error:
        raise RequirementMissing(f"the module {path} cannot be read: {error}") from error
    if not data.startswith(_ELF):
        raise RequirementMissing(f"{path} is no kernel module: it begins with {data[:4]!r}")
    return data


def modules_of(kernel: GuestKernel) -> ModuleTree | AllBuiltIn:
    """Its modules and what is built in; both answer the same questions."""
    if kernel.modules is None:
        return AllBuiltIn(kernel.configuration)
    return ModuleTree(kernel.module_directory)


# `6.12`, `6.1.0-56`, `6.12.95+deb12-amd64`
_RELEASE = re.compile(r"\d+\.\d+[\w.+~-]*", re.ASCII)


def is_path(kernel_name: str) -> bool:
    """Whether a path of a self-built kernel was asked for, and no release."""
    return "/" in kernel_name


def check_asked(kernel_name: str) -> str:
    """The beginning of a release, as it was asked for; PlanError says what is allowed."""
    if _RELEASE.fullmatch(kernel_name) is None:
        raise PlanError(
            f"{kernel_name!r} names no kernel; ask for the beginning of a release ('6.12'), a whole one "
            f"('6.12.95+deb12-amd64') or the path of a kernel ('/usr/src/linux')"
        )
    return kernel_name


def accepts(kernel_name: str, release: str) -> bool:
    """Whether `release` begins with what was asked, and no number is cut: 6.1 is not 6.12."""
    return KernelLevels(kernel_name).takes(release)


def release_key(release: str) -> tuple[int, ...]:
    """The numbers of a release, for ordering: (6, 12, 95, 12) of `6.12.95+deb12-amd64`.

    The flavour counts for nothing, so that the 64 of `amd64` is no number here.
    """
    numbers = re.match(r"[\d.]+(?:[+~][a-z]*[\d.]+)*(?:-\d+)?", release)
    return tuple(int(number) for number in re.findall(r"\d+", numbers[0])) if numbers else ()


# The flavours that are built for every machine, by `uname -m`; Debian's, then Ubuntu's.
_FLAVOURS = {"x86_64": ("amd64", "generic"), "aarch64": ("arm64", "generic")}

_NAME = re.compile(r"linux-(?:image|binary)-(?:unsigned-)?(\d.*?)(?:-unsigned)?")
# Debian's experimental leaves out the third number where it is 0, and has candidates.
_FULL_RELEASE = re.compile(r"\d+\.[\d.]+(?:[+~][\w.+~]+)?(?:-rc\d+)?(?:-\d+)?-(?P<flavour>\w+)", re.ASCII)

# The series that a release was made with: where it is kept up for longest.
_DEBIAN_HOMES = {"6.1": "bookworm", "6.12": "trixie"}

_UBUNTU_HOMES = {"5.15": "jammy", "6.5": "jammy", "6.8": "noble", "6.11": "noble", "6.14": "noble"}

# Asked for nothing: the series that has most file systems (6.13 dropped reiserfs).
DEFAULT_SERIES = {False: "6.12", True: "6.8"}


@dataclass(frozen=True)
class UnpackedKernel:
    """A release as it came: its packages, unpacked below `root`."""

    release: str
    suite: str
    packages: tuple[BinaryPackage, ...]
    root: Path


def default_series(os_release: dict[str, str]) -> str:
    """The series that is taken where none is asked for: that of the distribution with most file systems."""
    return DEFAULT_SERIES[is_ubuntu(os_release)]


def fetch_kernel(
    kernel_name: str,
    *,
    system: AptSystem,
    machine: str,
    directory: Path,
    commands: Commands,
    progress: Callable[[str], None],
) -> UnpackedKernel:
    """The newest release that `kernel_name` is the beginning of, unpacked below `directory`.

    Suites are read in turn until one has it. RequirementMissing says what every suite had instead.
    """
    if machine not in _FLAVOURS:
        raise RequirementMissing(f"no kernel package is known for processors of the kind {machine}")
    reasons: list[str] = []
    unreachable: set[str] = set()
    for group in kernel_suites(kernel_name, system):
        found: list[tuple[str, str, PrivateRoot]] = []
        for archive, suite in group:
            if archive.uri in unreachable:
                continue
            progress(f"looks for kernel {kernel_name} in the distribution's {suite}")
            root = PrivateRoot(directory / f"apt-{suite}", commands, status_file=None)
            try:
                root.add(source_line(archive, suite, system, kind="deb"))
                offered = full_releases(root.names("linux-"), machine)
            except CommandFailed as error:
                reasons.append(f"{suite}: {apt_reason(error)}")
                if is_unreachable(error):
                    unreachable.add(archive.uri)
                continue
            fitting = [release for release in offered if accepts(kernel_name, release)]
            found += [(release, suite, root) for release in fitting]
            if not fitting:
                reasons.append(f"{suite} has {_summary(offered)}")
        for release, suite, root in sorted(found, key=lambda item: release_key(item[0]), reverse=True):
            packages = _parts(root, release)
            if packages:
                progress(f"fetches kernel {release} from the distribution's {suite}")
                target = directory / "root"
                unpack_packages(root, packages, work=directory, target=target, commands=commands)
                return UnpackedKernel(release, suite, packages, target)
            reasons.append(f"{suite} names {release} and does not have it")
    raise RequirementMissing(
        *dict.fromkeys(reasons or ["apt's sources name no archive of this distribution's own suite"])
    )


def kernel_suites(kernel_name: str, system: AptSystem) -> Iterator[tuple[tuple[PackageArchive, str], ...]]:
    """Groups of suites to read in turn; of one group the newest release counts.

    First what the machine itself would install, then its backports, then the suite that is known to
    keep the series, then ever newer ones, Debian's experimental last.
    """
    archives = own_archives(system.archives, system.os_release)
    if not archives:
        return
    main, own = archives[0], code_name(system.os_release)
    security = next(iter(security_archives(system.archives)), None)

    def suite_group(code: str) -> tuple[tuple[PackageArchive, str], ...]:
        if is_ubuntu(system.os_release):
            return (main, f"{code}-updates"), (main, f"{code}-security"), (main, code)
        kept_up = ((security, f"{code}-security"),) if security is not None else ()
        return *kept_up, (main, code)

    ubuntu = is_ubuntu(system.os_release)
    home = (_UBUNTU_HOMES if ubuntu else _DEBIAN_HOMES).get(".".join(kernel_name.split(".")[:2]))
    if own:
        yield suite_group(own)
        if not ubuntu:
            yield ((main, f"{own}-backports"),)
    if home and home != own:
        yield suite_group(home)
    for suite in suites_to_try(system.os_release, distro_info=system.distro_info):
        if suite not in (own, f"{own}-updates", home):
            yield ((main, suite),)
        if suite == "stable":
            yield ((main, "stable-backports"),)
    if not ubuntu:
        yield ((main, "experimental"),)


def full_releases(names: Iterable[str], machine: str) -> tuple[str, ...]:
    """The releases of the full flavour among names of packages, the oldest first."""
    releases = set()
    for name in names:
        found = _NAME.fullmatch(name)
        release = _FULL_RELEASE.fullmatch(found[1]) if found else None
        if release is not None and release["flavour"] in _FLAVOURS[machine]:
            releases.add(release[0])
    return tuple(sorted(releases, key=release_key))


def _parts(root: PrivateRoot, release: str) -> tuple[BinaryPackage, ...]:
    """The packages that together are this release; empty where its image is only named, not there."""
    # Signed images come first; the newest of them may still wait for its signature.
    images = [
        *(f"linux-binary-{release}", f"linux-binary-unsigned-{release}"),
        *(f"linux-image-{release}", f"linux-image-unsigned-{release}", f"linux-image-{release}-unsigned"),
    ]
    others = [f"linux-modules-{release}", f"linux-modules-extra-{release}", f"linux-base-{release}"]
    there = {item.name: item for item in root.binary_packages([*images, *others])}
    image = next((there[name] for name in images if name in there), None)
    if image is None:
        return ()
    return (image, *(there[name] for name in others if name in there))


def _summary(releases: tuple[str, ...]) -> str:
    if not releases:
        return "no kernel"
    newest = {release_key(release)[:2]: release for release in releases}
    return ", ".join(newest.values())


@dataclass(frozen=True)
class GuestKernel:
    """One kernel, with its modules where it has any, ready to boot.

    `asked` is None where none was asked for. `release` is what `uname -r` says in it. `modules` is
    the folder that has `lib/modules/<release>` below it, None where all that a guest needs is built in.
    `origin` is packages, version and suite, the path, or a commit. `digest` changes when the image or a module does.
    `configuration` are its build options, None where none came with it.
    """

    asked: str | None
    release: str
    image: Path
    modules: Path | None
    origin: str
    digest: str
    configuration: Configuration | None

    @property
    def module_directory(self) -> Path:
        """`lib/modules/<release>` of a kernel that has modules: where modules.dep and they are."""
        if self.modules is None:
            raise ValueError(f"kernel {self.release} has no modules")
        return self.modules / "lib" / "modules" / self.release


RECORD = "kernel.json"

# Part of the digest: what `arrange` makes of the same packages.
_LAYOUT_VERSION = 1

_DEPMOD_LIMIT_S = 300.0


def kernels_directory(cache_directory: Path) -> Path:
    """Where the kernels lie in a cache."""
    return cache_directory / "kernels"


def arrange(unpacked: UnpackedKernel, fresh: Path, *, depmod: Tool, commands: Commands) -> None:
    """Make `fresh/root` with `boot` and `lib/modules` out of unpacked packages, and run depmod on it.

    All else of the packages is left behind. VerifyFailed where image and modules are not both there,
    or are not of this release.
    """
    root = fresh / "root"
    fresh.mkdir(mode=0o755)
    (root / "lib").mkdir(parents=True)
    (root / "usr").mkdir()
    # The newer depmod(8) looks below usr/lib alone.
    (root / "usr/lib").symlink_to("../lib")
    for folder in ("boot", "lib/modules", "usr/lib/modules"):
        if (unpacked.root / folder).is_dir():
            _merge(unpacked.root / folder, root / folder)
    modules = root / "lib/modules" / unpacked.release
    image = _first(root / f"boot/vmlinuz-{unpacked.release}", modules / "vmlinuz")
    lacking = [name for name in ("modules.builtin", "modules.order") if not (modules / name).is_file()]
    if image is None or lacking:
        parts = [*(["an image"] if image is None else []), *lacking]
        names = ", ".join(item.name for item in unpacked.packages)
        raise VerifyFailed(f"the packages of kernel {unpacked.release} have no {', '.join(parts)}: {names}")
    # Ubuntu's is for root alone, as it tells where the kernel's code lies; a guest's is no secret.
    image.chmod(0o644)
    found = release_in_image(image)
    if found not in (None, unpacked.release):
        raise VerifyFailed(f"the image of kernel {unpacked.release} says that it is {found}")
    commands.run(
        [str(depmod.program), "--basedir", str(root), unpacked.release],
        timeout_s=_DEPMOD_LIMIT_S,
        extra_environment=depmod.environment,
    )
    dependencies = modules / "modules.dep"
    if not dependencies.is_file() or dependencies.stat().st_size == 0:
        raise VerifyFailed(f"depmod found no module of kernel {unpacked.release}")


def write_record(unpacked: UnpackedKernel, fresh: Path) -> None:
    """Write what the kernel is made of, the last file of its folder."""
    root, release = fresh / "root", unpacked.release
    modules = root / "lib/modules" / release
    image = _first(root / f"boot/vmlinuz-{release}", modules / "vmlinuz")
    config = _first(root / f"boot/config-{release}", modules / "config")
    assert image is not None  # noqa: S101 -- `arrange` saw it
    first = unpacked.packages[0]
    parts = [f"{item.name} {item.version} {item.sha256}" for item in unpacked.packages]
    record = {
        "release": release,
        "image": str(image.relative_to(fresh)),
        "config": None if config is None else str(config.relative_to(fresh)),
        "origin": f"{first.name} {first.version} ({unpacked.suite})",
        "packages": [
            {"name": item.name, "version": item.version, "sha256": item.sha256} for item in unpacked.packages
        ],
        "digest": hashlib.sha256("\n".join([str(_LAYOUT_VERSION), *sorted(parts)]).encode()).hexdigest(),
    }
    (fresh / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def read_kernel(folder: Path) -> GuestKernel:
    """The kernel of a folder in the cache; OutputNotUnderstood for a damaged record."""
    text = (folder / RECORD).read_text(encoding="utf-8")
    try:
        fields = json.loads(text)
        return GuestKernel(
            asked=fields["release"],
            release=fields["release"],
            image=folder / fields["image"],
            modules=folder / "root",
            origin=fields["origin"],
            digest=fields["digest"],
            configuration=None if fields["config"] is None else read_configuration(folder / fields["config"]),
        )
    except (ValueError, TypeError, KeyError) as error:
        raise OutputNotUnderstood(
            str(folder / RECORD),
            expected="the record of a kernel (remove its folder to fetch it again)",
            found=text,
        ) from error


def _merge(source: Path, target: Path) -> None:
    """Move a tree into another: packages of one release share folders, under either name."""
    if not target.exists() and not target.is_symlink():
        source.rename(target)
        return
    if not source.is_dir() or source.is_symlink():
        raise VerifyFailed(f"two packages hold {target.name}")
    for item in sorted(source.iterdir()):
        _merge(item, target / item.name)


def _first(*candidates: Path) -> Path | None:
    return next((path for path in candidates if path.is_file()), None)


# One tree for all: reading the indexes costs more than these packages. An image for containers has them installed.
PACKAGES = ("busybox-static", "kmod", "zstd")

_ELF64_LITTLE = b"\x7fELF\x02\x01"
_PT_INTERP = 3


@dataclass(frozen=True)
class Tool:
    """A program, what it needs in its environment, and the folder that holds both where they are not the machine's."""

    program: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    root: Path | None = None


def find_busybox(cache_directory: Path) -> Path | None:
    """A busybox that needs no library: it is all that a guest has before the host's root is mounted."""
    found = find_tool("busybox")
    if found is not None and is_static(found):
        return found
    tool = _in_cache("busybox", cache_directory)
    return None if tool is None else tool.program


def ensure_busybox(cache_directory: Path, *, commands: Commands, progress: Callable[[str], None]) -> Path:
    """`find_busybox`'s, fetched now if there is none."""
    return find_busybox(cache_directory) or _fetched("busybox", cache_directory, commands, progress).program


def ensure_depmod(cache_directory: Path, *, commands: Commands, progress: Callable[[str], None]) -> Tool:
    """depmod(8), fetched now if the machine has none."""
    return _find("depmod", cache_directory) or _fetched("depmod", cache_directory, commands, progress)


def find_modprobe(cache_directory: Path) -> Tool | None:
    """modprobe(8) for a guest.

    busybox has one too, but offers compressed modules to the kernel as they are: errors in its log.
    """
    return _find("modprobe", cache_directory)


def find_zstd(cache_directory: Path) -> Tool | None:
    """zstd(1), for kernels whose modules are compressed with it."""
    return _find("zstd", cache_directory)


def ensure_zstd(cache_directory: Path, *, commands: Commands, progress: Callable[[str], None]) -> Tool:
    """`find_zstd`'s, fetched now if there is none."""
    return find_zstd(cache_directory) or _fetched("zstd", cache_directory, commands, progress)


def is_static(executable: Path) -> bool:
    """Whether an ELF program asks for no loader (elf(5): no PT_INTERP), so that it runs by itself."""
    with executable.open("rb") as file:
        head = file.read(64)
        if not head.startswith(_ELF64_LITTLE) or len(head) < 64:
            return False
        (table_at,) = struct.unpack_from("<Q", head, 32)
        entry_size, entries = struct.unpack_from("<HH", head, 54)
        file.seek(table_at)
        table = file.read(entry_size * entries)
    if entry_size < 4:
        return False
    kinds = [struct.unpack_from("<I", table, at)[0] for at in range(0, len(table) - 3, entry_size)]
    return bool(kinds) and _PT_INTERP not in kinds


def _find(name: str, cache_directory: Path) -> Tool | None:
    found = find_tool(name)
    return _in_cache(name, cache_directory) if found is None else Tool(found)


def _in_cache(name: str, cache_directory: Path) -> Tool | None:
    tree = find_package_tree(PACKAGES, cache_directory=cache_directory)
    program = None if tree is None else tree.program(name)
    return None if tree is None or program is None else Tool(program, tree.environment, tree.root)


def _fetched(name: str, cache_directory: Path, commands: Commands, progress: Callable[[str], None]) -> Tool:
    tree = ensure_package_tree(
        PACKAGES, cache_directory=cache_directory, commands=commands, progress=progress
    )
    return Tool(tree.demand_program(name), tree.environment, tree.root)


_IMAGES = (
    *("arch/x86/boot/bzImage", "arch/arm64/boot/Image"),
    *("boot/vmlinuz-*", "vmlinuz-*", "vmlinuz", "bzImage", "lib/modules/*/vmlinuz"),
)

# What the build writes down as its own release.
_RELEASE_FILE = "include/config/kernel.release"


def read_self_built(kernel_name: str, *, zstd: Tool | None = None) -> GuestKernel:
    """The kernel at this path.

    PlanError says what is not there, or between which ones to choose; RequirementMissing which options its configuration lacks.
    `zstd` unpacks an image that is packed with it, by default the one in the search path.
    """
    path = Path(kernel_name)
    if not path.is_absolute():
        raise PlanError(
            f"kernel {kernel_name}: not a path from the root; name the whole path of an image or a build's folder"
        )
    if not path.exists():
        raise PlanError(
            f"kernel {kernel_name}: there is no such path; name an image, or the folder of a build"
        )
    try:
        pairs = dict(_pairs(path))
        if not pairs:
            return _alone(kernel_name, path, zstd)
    except OSError as error:
        raise PlanError(f"kernel {kernel_name} cannot be read: {error.filename}: {error.strerror}") from error
    built = text_of(path / _RELEASE_FILE)
    if len(pairs) > 1 and built in {folder.name for folder in pairs}:
        pairs = {folder: image for folder, image in pairs.items() if folder.name == built}
    if len(pairs) > 1:
        images = ", ".join(sorted(str(image) for image in pairs.values()))
        raise PlanError(f"kernel {kernel_name} has several kernels; name the image of one: {images}")
    ((modules, image),) = pairs.items()
    return _with_modules(kernel_name, path, modules, image, zstd)


def _with_modules(kernel_name: str, path: Path, modules: Path, image: Path, zstd: Tool | None) -> GuestKernel:
    top = modules.parents[2]
    if not (modules / "modules.dep").is_file():
        raise RequirementMissing(
            f"kernel {kernel_name}: {modules} has no modules.dep; `depmod --basedir {top} {modules.name}` makes it"
        )
    configs = (
        *(modules / "config", modules / "build/.config"),
        *(folder / f"boot/config-{modules.name}" for folder in dict.fromkeys((path, top))),
        *(folder / ".config" for folder in dict.fromkeys((path, top))),
    )
    configuration = _configuration(image, configs, zstd)
    _require(kernel_name, image, configuration, with_modules=True)
    return GuestKernel(
        asked=kernel_name,
        release=modules.name,
        image=image,
        modules=top,
        origin=str(path),
        digest=_digest(modules, image),
        configuration=configuration,
    )


def _alone(kernel_name: str, path: Path, zstd: Tool | None) -> GuestKernel:
    """A kernel without modules: all that a guest needs must be built in."""
    if path.is_file():
        images = [path]
    else:
        found = [image for pattern in (*_IMAGES, "vmlinux") for image in sorted(path.glob(pattern))]
        images = [image for image in found if image.is_file()]
        built = path / "arch/x86/boot/bzImage"
        images = [built] if built in images else images
    releases = {image: release for image in images if (release := release_in_image(image)) is not None}
    if not releases:
        raise PlanError(
            f"kernel {kernel_name}: no image (arch/x86/boot/bzImage, boot/vmlinuz-R, vmlinux, lib/modules/R/vmlinuz) with "
            f"its modules (lib/modules/R), and none that says its release; name the image, or the folder of a build "
            f"after `make modules_install INSTALL_MOD_PATH=.`"
        )
    if len(set(releases.values())) > 1:
        raise PlanError(
            f"kernel {kernel_name} has several kernels; name the image of one: {', '.join(map(str, sorted(releases)))}"
        )
    image, release = next(iter(releases.items()))
    others = [] if path.is_file() else sorted(folder.name for folder in path.glob("lib/modules/*"))
    configuration = _configuration(image, _configs_beside(image, release), zstd)
    _require(kernel_name, image, configuration, with_modules=False)
    if others and configuration is None:
        raise PlanError(
            f"kernel {kernel_name}: no modules of {release}, which {image} is, but of {', '.join(others)}; in a build folder "
            f"`make modules_install INSTALL_MOD_PATH=.` puts them there"
        )
    return GuestKernel(
        asked=kernel_name,
        release=release,
        image=image,
        modules=None,
        origin=str(path),
        digest=sha256_of(image),
        configuration=configuration,
    )


def _configs_beside(image: Path, release: str) -> Iterator[Path]:
    """`config-R` beside an image, and the `.config` of the build folder that it lies in."""
    real = image.resolve()
    yield real.with_name(f"config-{release}")
    for folder in real.parents[:4]:
        if text_of(folder / _RELEASE_FILE) == release:
            yield folder / ".config"


def _configuration(
    image: Path, files: tuple[Path, ...] | Iterator[Path], zstd: Tool | None
) -> Configuration | None:
    """A file beside it, else the one in the image."""
    for file in files:
        if (found := read_configuration(file)) is not None:
            return found
    with contextlib.suppress(ImageUnread):
        text = embedded_configuration(image, commands=Commands(), zstd=zstd)
        return None if text is None else Configuration(text, f"{image} (CONFIG_IKCONFIG)")
    return None


def _require(
    kernel_name: str, image: Path, configuration: Configuration | None, *, with_modules: bool
) -> None:
    """RequirementMissing with every option that a guest needs and the kernel lacks, as far as its configuration is known."""
    reasons = []
    if is_vmlinux(image) and not has_pvh_entry(image):
        reasons.append("CONFIG_PVH is not set: QEMU begins a vmlinux by it; a bzImage needs none")
    if configuration is not None:
        reasons += lacking(configuration, EVERY_GUEST, with_modules=with_modules)
    if not reasons:
        return
    place = "" if configuration is None else f" (by {configuration.place})"
    way_out = "build the kernel with them, docs/KERNELS.md has the list" + (
        "" if with_modules else "; or put its modules beside it: `make modules_install INSTALL_MOD_PATH=.`"
    )
    raise RequirementMissing(f"kernel {kernel_name} cannot run a guest{place}", *reasons, way_out)


def _pairs(path: Path) -> Iterator[tuple[Path, Path]]:
    """Folders of modules with their images; of several images of one release the first named above counts."""
    if path.is_file():
        images, tops = [path], list(path.resolve().parents)
    else:
        images = [image for pattern in _IMAGES for image in sorted(path.glob(pattern)) if image.is_file()]
        # The folder of the modules may be named itself.
        tops = [path, path.parents[2]] if path.parent.name == "modules" else [path]
    folders = [folder for top in tops for folder in sorted(top.glob("lib/modules/*")) if folder.is_dir()]
    if path.parent.name == "modules":
        folders = [folder for folder in folders if folder == path]
    for image in reversed(images):
        release = release_in_image(image)
        if release is None:
            # An image that does not say: by the name of the file, or the only modules that there are.
            named = [folder for folder in folders if image.name.endswith(f"-{folder.name}")]
            named += [folder for folder in folders if folder == image.parent]
            fitting = named[:1] or (folders if len(folders) == 1 else [])
        else:
            fitting = [folder for folder in folders if folder.name == release][:1]
        for folder in fitting:
            yield folder, image


def _digest(modules: Path, image: Path) -> str:
    """Of the image's content, and of each module's name, size and time: a build anew changes them."""
    state = hashlib.sha256(sha256_of(image).encode())
    for name in ("modules.dep", "modules.builtin"):
        state.update(text_of(modules / name).encode())
    for line in text_of(modules / "modules.dep").splitlines():
        name = line.partition(":")[0]
        facts = (modules / name).stat() if (modules / name).is_file() else None
        state.update(f"{name} {facts and (facts.st_size, facts.st_mtime_ns)}\n".encode())
    return state.hexdigest()


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
    kernel_source: KernelSource,
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
    kept = find_built(kernel_source.level, cache_directory=cache_directory, commands=commands)
    if kept is not None:
        return kept
    demand(missing_requirements())
    wanted = WantedConfiguration(kernel_source.fragment)
    build = _build_of(kernel_source, _compiler(commands) or "unknown")
    place = _build_folder(kernel_source, build, cache_directory)
    waiting = BuildProgress("waits for another start of bedplate that builds of this tree")
    with file_lock(lock_of(place), on_wait=lambda: progress(waiting)):
        kept = find_built(kernel_source.level, cache_directory=cache_directory, commands=commands)
        if kept is not None:
            return kept
        # What the account that builds must pass through; what it writes is a folder further down.
        place.mkdir(mode=0o755, parents=True, exist_ok=True)
        work = KernelWork(
            source=place / "source",
            work=place,
            wanted=wanted,
            label=f"-g{kernel_source.digits.replace('+', '-')}",
            built_at=_BUILT_AT,
            confined=os.geteuid() == 0,
            commands=commands,
            progress=progress,
        )
        cost = build_clock()
        _make(
            build,
            kernel_source,
            work,
            recipe,
            log=kernels_directory(cache_directory) / f"failed-{build.folder_name}.log",
        )
        return _keep(
            build, kernel_source, work, kernels_directory(cache_directory) / build.folder_name, cost()
        )


def _make(
    kernel_build: KernelBuild,
    kernel_source: KernelSource,
    work: KernelWork,
    recipe: Callable[[KernelWork], None],
    *,
    log: Path,
) -> None:
    """The caller holds the lock of the build folder."""
    log.unlink(missing_ok=True)
    work.progress(BuildProgress("source"))
    try:
        _refresh(kernel_source, work.work, work.commands)
        recipe(work)
    except CommandFailed as error:
        raise build_failure(error, f"kernel {kernel_build.level}", log, work.work) from error
    except VerifyFailed as error:
        raise VerifyFailed(f"kernel {kernel_build.level} was not built", *error.reasons) from error


def _refresh(kernel_source: KernelSource, place: Path, commands: Commands) -> None:
    """The files of the commit, with what was not committed beside it."""
    tree = kernel_source.tree
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
    kernel_build: KernelBuild,
    kernel_source: KernelSource,
    work: KernelWork,
    folder: Path,
    costs: Mapping[str, float],
) -> GuestKernel:
    """The image and its configuration put into the cache, the stamp last."""
    with file_lock(lock_of(folder)), work_place(folder) as fresh:
        copy_result(work, fresh)
        record = {
            "format": _STAMP_FORMAT,
            "level": kernel_build.level,
            "commit": kernel_source.tree.commit.hash,
            "release": release_in_image(fresh / "bzImage"),
            "compiler": kernel_build.compiler,
            "recipe": RECIPE_VERSION,
            "left_out": list(work.wanted.left_out(work.configuration)),
            "digest": sha256_of(fresh / "bzImage"),
            **costs,
        }
        (fresh / STAMP).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        put_in_place(fresh, folder)
    stamp = _read_stamp(folder)
    if stamp is None:
        raise OutputNotUnderstood(
            str(folder / STAMP), expected="the record that was just written", found="another"
        )
    return _kernel(stamp, folder)


def _build_of(kernel_source: KernelSource, compiler: str) -> KernelBuild:
    return KernelBuild(
        kernel_source.level,
        kernel_source.digits,
        WantedConfiguration(kernel_source.fragment).digest,
        compiler,
    )


def _build_folder(kernel_source: KernelSource, kernel_build: KernelBuild, cache_directory: Path) -> Path:
    key = hashlib.sha256(
        f"{kernel_source.tree.path}\0{kernel_build.digest}".encode("utf-8", "surrogateescape")
    ).hexdigest()[:12]
    name = re.sub(r"[^\w.-]", "_", kernel_source.tree.path.rstrip("/").rpartition("/")[2], flags=re.ASCII)[
        :40
    ]
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


__all__ = ["GuestKernel", "ensure_kernel", "find_kernel", "guest_machine", "known_kernels"]

# Whoever fetches one holds the lock of this name: which release it comes to is known only when it is there.
_FETCHED = "fetched"


def find_kernel(kernel_name: str | None, *, cache_directory: Path) -> GuestKernel | None:
    """The kernel that `ensure_kernel` would answer with at once; fetches and changes nothing.

    `kernel_name` is None (the distribution's series with most file systems), the beginning of a release
    ("6.12"), an exact release, the path of a self-built kernel, or a commit's level. PlanError for a path that holds no
    kernel, and for what is neither.
    """
    if kernel_name is not None and is_commit_level(kernel_name):
        return find_built(kernel_name, cache_directory=cache_directory, commands=Commands())
    if kernel_name is not None and is_path(kernel_name):
        return read_self_built(kernel_name, zstd=find_zstd(cache_directory))
    wanted = _series(kernel_name)
    fitting = [kernel for kernel in known_kernels(cache_directory) if accepts(wanted, kernel.release)]
    exact = [kernel for kernel in fitting if kernel.release == wanted]
    return replace((exact or fitting)[-1], asked=kernel_name) if fitting else None


def ensure_kernel(
    kernel_name: str | None,
    *,
    cache_directory: Path,
    commands: Commands,
    progress: Callable[[str], None],
    kernel_source: KernelSource | None = None,
) -> GuestKernel:
    """The kernel asked for, fetched from the distribution now if the cache lacks it; of a commit built, out of `kernel_source`.

    What its guests start with is there afterwards as well (a static busybox). RequirementMissing says
    what every suite had instead. `ensure_built` says what a build raises.
    """
    ensure_busybox(cache_directory, commands=commands, progress=progress)
    if kernel_source is not None:
        return ensure_built(
            kernel_source,
            cache_directory=cache_directory,
            commands=commands,
            progress=lambda step: progress(
                step.step if not step.done else f"{step.step}, {step.done} objects"
            ),
        )
    kept = make_once(
        kernels_directory(cache_directory) / _FETCHED,
        lambda: find_kernel(kernel_name, cache_directory=cache_directory),
        lambda place: _fetch(kernel_name, cache_directory, place, commands, progress),
        on_wait=lambda: progress("waits for another start of bedplate"),
    )
    if kept.modules is not None and next(kept.module_directory.rglob("*.ko.zst"), None) is not None:
        ensure_zstd(cache_directory, commands=commands, progress=progress)
    return kept


def known_kernels(cache_directory: Path) -> tuple[GuestKernel, ...]:
    """Every kernel in the cache, the oldest release first; `asked` is its exact release."""
    directory = kernels_directory(cache_directory)
    folders = [record.parent for record in directory.glob("[0-9]*/kernel.json")]
    return tuple(
        sorted(map(read_kernel, folders), key=lambda item: (release_key(item.release), item.release))
    )


def guest_machine(kernel: GuestKernel, *, memory_bytes: int, host: Machine) -> Machine:
    """The guest as a machine, as far as it is known before the boot: what the rules of a plan need.

    Processor and tools are the host's; the host's tunables are not the guest's, and are left out.
    """
    config = "" if kernel.configuration is None else kernel.configuration.text
    lines = frozenset(config.splitlines())
    modules = modules_of(kernel)
    return replace(
        host,
        kernel_release=kernel.release,
        memory_bytes=memory_bytes,
        filesystems=modules.filesystems(),
        cgroup_version=2,
        pressure_available="CONFIG_PSI=y" in lines and "CONFIG_PSI_DEFAULT_DISABLED=y" not in lines,
        virtualisation="QEMU",
        boot_id="",
        is_root=True,
        tunables={
            "block.schedulers": " ".join(sorted({"none", *modules.schedulers()})),
            **build_options(config),
        },
    )


def _series(kernel_name: str | None) -> str:
    return (
        default_series(parse_os_release(read_os_release()))
        if kernel_name is None
        else check_asked(kernel_name)
    )


def _fetch(
    kernel_name: str | None,
    cache_directory: Path,
    place: Path,
    commands: Commands,
    progress: Callable[[str], None],
) -> GuestKernel:
    """Put a whole kernel into the cache."""
    # A name of its own: an apt that outlived a killed start finds its folder gone, and not this one.
    work = Path(tempfile.mkdtemp(dir=place))
    wanted = _series(kernel_name)
    depmod = ensure_depmod(cache_directory, commands=commands, progress=progress)
    try:
        unpacked = fetch_kernel(
            wanted,
            system=read_apt_system(commands),
            machine=os.uname().machine,
            directory=work,
            commands=commands,
            progress=progress,
        )
    except RequirementMissing as error:
        there = ", ".join(kernel.release for kernel in known_kernels(cache_directory)) or "none"
        raise RequirementMissing(
            f"no kernel {wanted} is in the cache (it has {there}), nor could one be fetched",
            *error.reasons,
            "ask for a kernel that is there, or for the path of a self-built one with its modules "
            "(kernel = '/usr/src/linux')",
        ) from error
    progress(f"arranges kernel {unpacked.release}")
    fresh = work / "fresh"
    arrange(unpacked, fresh, depmod=depmod, commands=commands)
    write_record(unpacked, fresh)
    folder = kernels_directory(cache_directory) / unpacked.release
    put_in_place(fresh, folder)
    return replace(read_kernel(folder), asked=kernel_name)
