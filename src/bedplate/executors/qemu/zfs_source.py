"""Which ZFS fits a kernel, and its parts as the distribution packages them: source, headers, userland.

Modules and userland must be of one version, and the source says which kernels it knows (META). The
newest of them that the machine's own C library can run is taken, so that kernels which are compared
with one another have the same ZFS wherever it knows them all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.errors import BedplateError, RequirementMissing
from bedplate.filesystem.zfs import parse_version
from bedplate.host.apt.archives import code_name, parse_os_release, suites_to_try
from bedplate.host.apt.package_tree import ensure_package_tree
from bedplate.host.requirement import read_os_release
from bedplate.host.shut_in.building import to_read_alone

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from bedplate.executors.qemu.kernels import GuestKernel
    from bedplate.host.apt.package_tree import PackageTree
    from bedplate.host.command import Commands

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
