"""ZFS for guests: modules built once per kernel, and the userland of the very same version.

    <cache>/zfs/6.12.95+deb12-amd64-2.3.2-2~bpo12+2/
        zfs.json         written last: a folder without a fitting one is not a build
        modules/         spl.ko, zfs.ko, without debugging symbols
        userland/        zpool, zfs and their libraries, unpacked and never configured

The licence keeps ZFS out of kernels, so it is built here from the distribution's source package: an
explicit step (`bedplate doctor --install --zfs`), as it takes minutes. A build is made in a work folder beside
it and renamed into place whole; what an interrupted start left behind is removed by the next.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import BedplateError, CommandFailed, RequirementMissing, VerifyFailed
from bedplate.filesystem.zfs import parse_version
from bedplate.host.apt import PackageTree, code_name, ensure_package_tree, parse_os_release, suites_to_try
from bedplate.host.cache import make_once, put_in_place
from bedplate.host.command import Account, Commands
from bedplate.host.files import bytes_below, open_to_all
from bedplate.host.git import give
from bedplate.host.native_driver import BuildProgress, build_clock, build_failure, count_objects, watched
from bedplate.host.requirement import Need, demand, look, read_os_release
from bedplate.host.shut_in import build_command, builder_account, to_read_alone
from bedplate.model.limits import MODULE_LIMIT

if TYPE_CHECKING:
    from bedplate.executors.qemu.kernels import GuestKernel
    from bedplate.model.machine import Machine

_NEEDS = (
    Need("make", "make", "builds ZFS's kernel modules"),
    Need("strip", "binutils", "takes the debugging symbols out of ZFS's kernel modules"),
)

_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_CONFIGURE_TIMEOUT_S = 2 * 3600.0
_COMPILE_TIMEOUT_S = 4 * 3600.0
_STRIP_TIMEOUT_S = 600.0

# zfs.ko has 4 MiB without its symbols.
# Objects in module/Kbuild for x86-64, with the four that link them; only the progress display depends
# on them.
_OBJECTS = {"2.3": 303}

_COMPILER = re.compile(r"\bgcc-\d+\b")


@dataclass(frozen=True)
class ZfsWork:
    """One build to be made in `directory`, which is empty, by `account`; modules go into `modules`."""

    release: str
    source: ZfsSource
    headers: KernelHeaders
    directory: Path
    modules: Path
    commands: Commands
    progress: Callable[[BuildProgress], None]
    account: Account | None = None

    @property
    def tree(self) -> Path:
        """The copy of ZFS's source in which it is built."""
        return self.directory / "zfs"

    def run(self, argv: Sequence[str], *, timeout_s: float) -> None:
        """One command in `tree`; CommandFailed with its whole output."""
        headers = self.headers
        build_command(
            argv,
            directory=self.tree,
            work=self.tree,
            readable=(
                self.directory,
                headers.source,
                headers.objects,
                *(tools.root for tools in headers.tools),
            ),
            account=self.account,
            commands=self.commands,
            timeout_s=timeout_s,
        )


def compile_modules(zfs_work: ZfsWork) -> None:
    """Configure, compile and strip into `work.modules`.

    RequirementMissing for tools that are not there, CommandFailed with a tool's whole output,
    VerifyFailed for modules of another kernel or version.
    """
    demand(look((*_NEEDS, compiler_need(zfs_work.headers.objects))))
    objects = relocated_objects(zfs_work)
    shutil.copytree(zfs_work.source.directory, zfs_work.tree, symlinks=True)
    give(zfs_work.tree, zfs_work.account)
    clean = clean_environment(zfs_work.headers)
    zfs_work.progress(BuildProgress("configure"))
    configure = [
        *("./configure", "--quiet", "--disable-dependency-tracking", "--prefix=/usr", "--with-config=kernel"),
        f"--with-linux={zfs_work.headers.source}",
        f"--with-linux-obj={objects}",
    ]
    zfs_work.run([*clean, *configure], timeout_s=_CONFIGURE_TIMEOUT_S)
    _compile(zfs_work, clean)
    zfs_work.progress(BuildProgress("strip"))
    strip_modules(zfs_work, zfs_work.tree / "module")


def compiler_need(objects: Path) -> Need:
    """The compiler that the kernel's own makefiles ask for."""
    try:
        variables = (objects / ".kernelvariables").read_text(encoding="utf-8")
    except FileNotFoundError:
        variables = ""
    found = _COMPILER.search(variables)
    name = found[0] if found else "gcc"
    return Need(name, name, "the compiler that this kernel's modules are built with")


def relocated_objects(zfs_work: ZfsWork) -> Path:
    """A copy of the flavour's headers whose makefile finds the common part where it lies."""
    headers = zfs_work.headers
    if headers.kbuild is None:
        return headers.objects
    top = zfs_work.directory / "headers"
    objects = top / "usr/src" / headers.objects.name
    shutil.copytree(headers.objects, objects, symlinks=True)
    makefile = objects / "Makefile"
    makefile.write_text(f"include {headers.source}/Makefile\n", encoding="utf-8")
    # `scripts` and `tools` are links relative to usr/src/<headers>.
    (top / "usr/lib").mkdir()
    (top / "usr/lib" / headers.kbuild.name).symlink_to(headers.kbuild)
    open_to_all(top)
    return objects


def clean_environment(headers: KernelHeaders) -> tuple[str, ...]:
    """env(1) with nothing of the user's: CFLAGS, ARCH or MAKEFLAGS would become part of the modules."""
    programs = [str(path) for tree in headers.tools for path in tree.path]
    libraries = [str(path) for tree in headers.tools for path in tree.library_path]
    return (
        *("env", "--ignore-environment", "LC_ALL=C", "HOME=/nonexistent", "CONFIG_SITE=/dev/null"),
        f"PATH={os.pathsep.join([*programs, _SYSTEM_PATH])}",
        *((f"LD_LIBRARY_PATH={os.pathsep.join(libraries)}",) if libraries else ()),
    )


def module_facts(content: bytes) -> Mapping[str, str]:
    """The `key=value` strings in a module's section .modinfo, the first of each key.

    VerifyFailed if it is no 64-bit little-endian ELF file with such a section.
    """
    found: dict[str, str] = {}
    for text in _section(content, b".modinfo").split(b"\0"):
        key, equals, value = text.decode(errors="replace").partition("=")
        if equals:
            found.setdefault(key, value)
    return found


def _section(content: bytes, name: bytes) -> bytes:
    """The bytes of a section of an ELF file: elf(5), Elf64_Ehdr and Elf64_Shdr."""
    try:
        if content[:6] != b"\x7fELF\x02\x01":
            raise VerifyFailed("not a 64-bit little-endian ELF file")
        (table,) = struct.unpack_from("<Q", content, 0x28)
        size, count, names = struct.unpack_from("<HHH", content, 0x3A)
        headers = [struct.unpack_from("<IIQQQQ", content, table + size * number) for number in range(count)]
        for header in headers:
            start = headers[names][4] + header[0]
            if content[start : start + len(name) + 1] == name + b"\0":
                return content[header[4] : header[4] + header[5]]
    except (struct.error, IndexError) as error:
        raise VerifyFailed("a damaged ELF file") from error
    raise VerifyFailed(f"an ELF file without {name.decode()}")


def load_order(modules: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The names so that each stands after those of them that it depends on, else in their own order.

    VerifyFailed if they depend on each other in a circle.
    """
    ordered: list[str] = []
    under_way: set[str] = set()

    def add(name: str) -> None:
        if name in ordered or name not in modules:
            return
        if name in under_way:
            raise VerifyFailed(f"module {name} depends on itself")
        under_way.add(name)
        for needed in modules[name]:
            add(needed)
        ordered.append(name)

    for name in modules:
        add(name)
    return tuple(ordered)


def _compile(zfs_work: ZfsWork, clean: tuple[str, ...]) -> None:
    series = ".".join(zfs_work.source.version.split(".")[:2])
    total = _OBJECTS.get(series)

    def report(count: int) -> None:
        zfs_work.progress(BuildProgress("compile", min(count, total) if total else count, total))

    report(0)
    jobs = len(os.sched_getaffinity(0))
    with watched(lambda: count_objects(zfs_work.tree / "module"), report):
        zfs_work.run(
            [*clean, "make", "--no-print-directory", "-s", "-j", str(jobs)], timeout_s=_COMPILE_TIMEOUT_S
        )


def strip_modules(zfs_work: ZfsWork, directory: Path) -> None:
    """Every module below `directory` into `work.modules`, without its debugging symbols.

    VerifyFailed for modules of another kernel or version, and if ZFS itself is not among them.
    """
    built = sorted(directory.rglob("*.ko"))
    zfs_work.modules.mkdir()
    reasons = []
    for path in built:
        zfs_work.run(["strip", "--strip-debug", str(path)], timeout_s=_STRIP_TIMEOUT_S)
        try:
            content = bytes_below(
                zfs_work.tree, str(path.relative_to(zfs_work.tree)), MODULE_LIMIT.most_bytes
            )
        except OSError as error:
            raise VerifyFailed(
                f"{error.filename}, a module that was built, cannot be read: {error.strerror}"
            ) from None
        (zfs_work.modules / path.name).write_bytes(content)
        facts = module_facts(content)
        release = facts.get("vermagic", "(none)").partition(" ")[0]
        if release != zfs_work.release:
            reasons.append(f"{path.name} is for {release}, not for {zfs_work.release}")
        if facts.get("version", zfs_work.source.version) != zfs_work.source.version:
            reasons.append(f"{path.name} is of ZFS {facts['version']}, not {zfs_work.source.version}")
    if not any(path.name == "zfs.ko" for path in built):
        reasons.append(f"no zfs.ko came out of the build, but {len(built)} other modules")
    if reasons:
        raise VerifyFailed(*reasons)


_COMPONENTS = ("main", "contrib")
_SOURCE_PACKAGE, _USERLAND_PACKAGE = "zfs-dkms", "zfsutils-linux"
_INCLUDED = re.compile(r"^include /usr/src/(\S+)/Makefile$", re.MULTILINE)
_KBUILD = re.compile(r"lib/(linux-kbuild-[^/]+)/")


@dataclass(frozen=True)
class ZfsSource:
    """`directory` has configure and META; `version` is the package's, `userland` of the very same."""

    version: str
    suite: str | None
    directory: Path
    userland: PackageTree


@dataclass(frozen=True)
class KernelHeaders:
    """What modules are built against.

    `source` is the common part, `objects` the part of one flavour; for a self-built kernel both are
    its own folders. `tools` hold what their makefiles start, `kbuild` is the folder that the links of
    packaged headers lead to; None where they need not be moved.
    """

    source: Path
    objects: Path
    tools: tuple[PackageTree, ...] = ()
    kbuild: Path | None = None


@dataclass(frozen=True)
class SourceArchive:
    """The distribution's archive, fetched from into a cache."""

    cache_directory: Path
    commands: Commands
    progress: Callable[[str], None]

    def tree(
        self, packages: Sequence[str], suite: str | None, *, with_dependencies: bool = False
    ) -> PackageTree:
        """These packages unpacked; RequirementMissing where the suite has none of them."""
        return ensure_package_tree(
            packages,
            cache_directory=self.cache_directory,
            commands=self.commands,
            progress=self.progress,
            suite=suite,
            components=_COMPONENTS,
            with_dependencies=with_dependencies,
        )


def fetch_source(kernel: GuestKernel, archive: SourceArchive) -> ZfsSource:
    """The newest ZFS that knows this kernel and whose tools run here; RequirementMissing with every reason."""
    reasons: list[str] = []
    for suite in zfs_suites(kernel, parse_os_release(read_os_release())):
        where = suite or "the machine's own suite"
        try:
            tree = archive.tree([_SOURCE_PACKAGE], suite)
            version = tree.packages[_SOURCE_PACKAGE]
            directory = source_directory(tree.root)
            refusal = refused_kernel((directory / "META").read_text(encoding="utf-8"), kernel.release)
            if refusal is not None:
                reasons.append(f"{where}: ZFS {version} {refusal}")
                continue
            userland = archive.tree([f"{_USERLAND_PACKAGE}={version}"], suite, with_dependencies=True)
            verify_userland(userland, version, archive.commands)
        except BedplateError as error:
            reasons += [f"{where}: {reason}" for reason in error.reasons]
            continue
        return ZfsSource(version, suite, directory, userland)
    raise RequirementMissing(*dict.fromkeys(reasons), f"no ZFS of the distribution fits {kernel.release}")


def fetch_headers(kernel: GuestKernel, archive: SourceArchive) -> KernelHeaders:
    """The headers of exactly this kernel; RequirementMissing with every reason."""
    if kernel.origin.startswith("/"):
        return own_headers(kernel)
    name = f"linux-headers-{kernel.release}"
    reasons: list[str] = []
    release = parse_os_release(read_os_release())
    for suite in dict.fromkeys((kernel_suite(kernel), None, *suites_to_try(release))):
        try:
            flavour = archive.tree([name], suite)
            objects = flavour.root / "usr/src" / name
            common, kbuild = named_parts(objects)
            tools = archive.tree([common, kbuild], suite, with_dependencies=True)
        except BedplateError as error:
            reasons += [f"{suite or 'own suite'}: {reason}" for reason in error.reasons]
            continue
        return KernelHeaders(
            source=tools.root / "usr/src" / common,
            objects=objects,
            tools=(tools,),
            kbuild=tools.root / "usr/lib" / kbuild,
        )
    raise RequirementMissing(
        *dict.fromkeys(reasons), f"without {name} no module can be built for {kernel.release}"
    )


def own_headers(kernel: GuestKernel) -> KernelHeaders:
    """The build folder that a self-built kernel's modules point to; RequirementMissing without one."""
    if kernel.modules is None:
        raise RequirementMissing(
            f"kernel {kernel.release} has no modules beside its image, so that ZFS's cannot be built for it; "
            "install its modules (`make modules_install`)"
        )
    objects = kernel.module_directory / "build"
    if not (objects / "Module.symvers").is_file():
        raise RequirementMissing(
            f"{objects} is no build folder with Module.symvers; "
            f"keep the folder in which {kernel.release} was built, and `make modules_install` links to it"
        )
    source = kernel.module_directory / "source"
    return KernelHeaders(source=(source if source.is_dir() else objects).resolve(), objects=objects.resolve())


def zfs_suites(kernel: GuestKernel, os_release: dict[str, str]) -> tuple[str | None, ...]:
    """Where to look, the newest that a stable release's userland comes from first; None is the own suite."""
    own = code_name(os_release)
    backports = (f"{own}-backports",) if own else ()
    return tuple(dict.fromkeys((*backports, None, kernel_suite(kernel))))


def kernel_suite(kernel: GuestKernel) -> str | None:
    """The suite that stands in a packaged kernel's origin, in brackets; None where there is none."""
    found = re.search(r"\(([a-z][a-z0-9/-]*)\)", kernel.origin)
    return found[1] if found else None


def source_directory(root: Path) -> Path:
    """The one `usr/src/zfs-*` of an unpacked zfs-dkms; RequirementMissing if it looks otherwise."""
    found = [path.parent for path in root.glob("usr/src/zfs-*/META")]
    if len(found) != 1 or not (found[0] / "configure").is_file():
        raise RequirementMissing(f"{_SOURCE_PACKAGE} has no usr/src/zfs-* with META and configure")
    return found[0]


def refused_kernel(meta: str, release: str) -> str | None:
    """Why the source does not know a kernel: the range in its META; None if it knows it."""
    fields = {
        key.strip(): value.strip() for key, _, value in (line.partition(":") for line in meta.splitlines())
    }
    version = _series(release)
    lowest, highest = (_series(fields.get(f"Linux-{name}imum", "")) for name in ("Min", "Max"))
    if version is None or lowest is None or highest is None:
        return None  # configure will tell
    if lowest <= version <= highest:
        return None
    return f"knows kernels from {fields['Linux-Minimum']} to {fields['Linux-Maximum']}, not {release}"


def named_parts(objects: Path) -> tuple[str, str]:
    """The packages of the common headers and of the build tools, as the flavour's headers name them."""
    included = _INCLUDED.search((objects / "Makefile").read_text(encoding="utf-8"))
    kbuild = _KBUILD.search(str((objects / "scripts").readlink()))
    if included is None or kbuild is None:
        raise RequirementMissing(f"{objects} does not name its common part and its build tools")
    return included[1], kbuild[1]


def verify_userland(userland: PackageTree, version: str, commands: Commands) -> None:
    """The tools run on this machine and are of this version; RequirementMissing otherwise."""
    program = userland.program("zfs")
    if program is None:
        raise RequirementMissing(f"{_USERLAND_PACKAGE} {version} holds no zfs")
    # Without modules it ends with an error, after its own version.
    done = commands.run(
        [str(program), "--version"],
        check=False,
        extra_environment=userland.environment,
        confinement=to_read_alone(userland.root, is_own=False),
    )
    try:
        found = parse_version(done.output)["zfs"]
    except BedplateError as error:
        raise RequirementMissing(f"zfs {version} does not run on this machine: {done.output}") from error
    if found != version:
        raise RequirementMissing(f"zfs of {_USERLAND_PACKAGE} says {found}, expected {version}")


def _series(text: str) -> tuple[int, int] | None:
    found = re.match(r"(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else None


_STAMP = "zfs.json"
_STAMP_FORMAT = 1

TYPE = "zfs"


@dataclass(frozen=True)
class ZfsTree:
    """A finished build: `modules` in the order in which insmod takes them.

    `kernel_modules` are names of the kernel's own, for modprobe, before them. `digest` changes with
    any byte of a module. `build_seconds` is wall time of configure, compile and strip,
    `build_cpu_seconds` the CPU time of their processes.
    """

    release: str
    kernel_digest: str
    version: str
    origin: str
    modules: tuple[Path, ...]
    kernel_modules: tuple[str, ...]
    userland: PackageTree
    digest: str
    build_seconds: float
    build_cpu_seconds: float

    @property
    def path(self) -> tuple[Path, ...]:
        """Entries for the front of PATH."""
        return self.userland.path

    @property
    def library_path(self) -> tuple[Path, ...]:
        """Entries for LD_LIBRARY_PATH."""
        return self.userland.library_path


def zfs_directory(cache_directory: Path) -> Path:
    """Where the builds lie in a cache."""
    return cache_directory / "zfs"


def find_zfs(kernel: GuestKernel, cache_directory: Path) -> ZfsTree | None:
    """The finished build for this very kernel; None when `ensure_zfs` would have to work."""
    for folder in sorted(zfs_directory(cache_directory).glob(f"{kernel.release}-*"), reverse=True):
        try:
            tree = _read(folder)
        except (OSError, ValueError, TypeError, KeyError):
            continue
        is_whole = all(path.is_file() for path in tree.modules) and tree.userland.program("zpool") is not None
        if is_whole and (tree.release, tree.kernel_digest) == (kernel.release, kernel.digest):
            return tree
    return None


def ensure_zfs(
    kernel: GuestKernel,
    *,
    cache_directory: Path,
    commands: Commands,
    progress: Callable[[BuildProgress], None],
    recipe: Callable[[ZfsWork], None] = compile_modules,
) -> ZfsTree:
    """ZFS for this kernel, built now if the cache lacks it; needs no root.

    RequirementMissing with everything that is missing, or that no version fits; CommandFailed when a
    tool fails: its whole output is kept beside the builds.
    """
    directory = zfs_directory(cache_directory)
    waiting = BuildProgress("waits for another start of bedplate that builds ZFS")

    def make(place: Path) -> ZfsTree:
        archive = SourceArchive(cache_directory, commands, lambda text: progress(BuildProgress(text)))
        source = fetch_source(kernel, archive)
        headers = fetch_headers(kernel, archive)
        work = ZfsWork(
            release=kernel.release,
            source=source,
            headers=headers,
            directory=place,
            modules=place / "tree" / "modules",
            commands=commands,
            progress=progress,
            # Of a kernel of somebody's own the makefiles are.
            account=builder_account(is_own=kernel.origin.startswith("/")),
        )
        return _make(work, kernel, target=directory / f"{kernel.release}-{source.version}", recipe=recipe)

    # Which version it comes to is known only when its source is there.
    return make_once(
        directory / kernel.release,
        lambda: find_zfs(kernel, cache_directory),
        make,
        on_wait=lambda: progress(waiting),
    )


def with_zfs(machine: Machine, kernel: GuestKernel, cache_directory: Path) -> Machine:
    """A guest's machine, with zfs among its file systems if its modules are built."""
    if TYPE in machine.filesystems or find_zfs(kernel, cache_directory) is None:
        return machine
    return replace(machine, filesystems=(*machine.filesystems, TYPE))


def _make(
    zfs_work: ZfsWork, kernel: GuestKernel, *, target: Path, recipe: Callable[[ZfsWork], None]
) -> ZfsTree:
    """Build in the work folder and rename into place."""
    fresh = zfs_work.modules.parent
    fresh.mkdir()
    # The account that builds passes through it.
    zfs_work.directory.chmod(0o711)
    log = target.with_name(f"failed-{target.name}.log")
    log.unlink(missing_ok=True)
    cost = build_clock()
    try:
        recipe(zfs_work)
        userland = fresh / "userland"
        shutil.copytree(zfs_work.source.userland.root, userland, symlinks=True)
        facts = {path: module_facts(path.read_bytes()) for path in sorted(zfs_work.modules.glob("*.ko"))}
        needed = {
            path.stem: tuple(name for name in module.get("depends", "").split(",") if name)
            for path, module in facts.items()
        }
        order = load_order(needed)
        foreign = dict.fromkeys(name for names in needed.values() for name in names if name not in needed)
        source = zfs_work.source
        record = {
            "format": _STAMP_FORMAT,
            "release": zfs_work.release,
            "kernel_digest": kernel.digest,
            "version": source.version,
            "origin": f"zfs-dkms {source.version} ({source.suite or 'own suite'})",
            "modules": [f"{name}.ko" for name in order],
            "kernel_modules": list(foreign),
            "userland": {
                "packages": dict(source.userland.packages),
                "checksums": dict(source.userland.checksums),
            },
            "digest": _digest(facts),
            **cost(),
        }
        (fresh / _STAMP).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        put_in_place(fresh, target)
    except CommandFailed as error:
        what = f"ZFS {zfs_work.source.version} for {zfs_work.release}"
        raise build_failure(error, what, log, zfs_work.directory) from error
    return _read(target)


def _read(folder: Path) -> ZfsTree:
    fields = json.loads((folder / _STAMP).read_text(encoding="utf-8"))
    if fields.pop("format") != _STAMP_FORMAT:
        raise ValueError("of another version of bedplate")
    tools = fields["userland"]
    return ZfsTree(
        **{
            **fields,
            "modules": tuple(folder / "modules" / name for name in fields["modules"]),
            "kernel_modules": tuple(fields["kernel_modules"]),
            "userland": PackageTree(folder / "userland", dict(tools["packages"]), dict(tools["checksums"])),
        }
    )


def _digest(modules: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in modules:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
