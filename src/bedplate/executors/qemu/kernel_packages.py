"""Finds a kernel in the distribution's suites and unpacks its packages; three layouts are known.

- Debian to 13: `linux-image-R` holds the image, the modules and the configuration.
- Debian after 13: `linux-image-R` is empty; `linux-binary-R` has the image, `linux-modules-R` the
  modules, `linux-base-R` their order, what is built in, and the configuration.
- Ubuntu: `linux-image-R`, `linux-modules-R`, and `linux-modules-extra-R` with most file systems.

Of each architecture the full flavour is taken: those for clouds lack file systems.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.errors import CommandFailed, RequirementMissing
from bedplate.executors.qemu.kernel_release import accepts, release_key
from bedplate.host.apt.archives import code_name, is_ubuntu, own_archives, security_archives, suites_to_try
from bedplate.host.apt.package_tree import unpack_packages
from bedplate.host.apt.private_root import PrivateRoot, apt_reason, is_unreachable, source_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from bedplate.host.apt.archives import PackageArchive
    from bedplate.host.apt.packages import BinaryPackage
    from bedplate.host.apt.private_root import AptSystem
    from bedplate.host.command import Commands

# The flavours that are built for every machine, by `uname -m`; Debian's, then Ubuntu's.
_FLAVOURS = {"x86_64": ("amd64", "generic"), "aarch64": ("arm64", "generic")}
_NAME = re.compile(r"linux-(?:image|binary)-(?:unsigned-)?(\d.*?)(?:-unsigned)?")
_FULL_RELEASE = re.compile(r"\d+\.\d+\.\d+[\d.]*(?:[+~][\w.+~]+)?(?:-\d+)?-(?P<flavour>\w+)", re.ASCII)

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
    asked: str,
    *,
    system: AptSystem,
    machine: str,
    directory: Path,
    commands: Commands,
    progress: Callable[[str], None],
) -> UnpackedKernel:
    """The newest release that `asked` is the beginning of, unpacked below `directory`.

    Suites are read in turn until one has it. RequirementMissing says what every suite had instead.
    """
    if machine not in _FLAVOURS:
        raise RequirementMissing(f"no kernel package is known for processors of the kind {machine}")
    reasons: list[str] = []
    unreachable: set[str] = set()
    for group in kernel_suites(asked, system):
        found: list[tuple[str, str, PrivateRoot]] = []
        for archive, suite in group:
            if archive.uri in unreachable:
                continue
            progress(f"looks for kernel {asked} in the distribution's {suite}")
            root = PrivateRoot(directory / f"apt-{suite}", commands, status=None)
            try:
                root.add(source_line(archive, suite, system, kind="deb"))
                offered = full_releases(root.names("linux-"), machine)
            except CommandFailed as error:
                reasons.append(f"{suite}: {apt_reason(error)}")
                if is_unreachable(error):
                    unreachable.add(archive.uri)
                continue
            fitting = [release for release in offered if accepts(asked, release)]
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


def kernel_suites(asked: str, system: AptSystem) -> Iterator[tuple[tuple[PackageArchive, str], ...]]:
    """Groups of suites to read in turn; of one group the newest release counts.

    First what the machine itself would install, then its backports, then the suite that is known to
    keep the series, then ever newer ones.
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
    home = (_UBUNTU_HOMES if ubuntu else _DEBIAN_HOMES).get(".".join(asked.split(".")[:2]))
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
