"""How ZFS's modules are configured, compiled and stripped, for one kernel, without root.

The distribution's headers know each other by absolute names below /usr/src; only one line of theirs
says so, and it is rewritten in a copy. So nothing need be installed, nor laid over the machine's /usr.

Where bedplate is root, configure, the compilers and strip run shut in (`host/shut_in/building.py`), and write to a copy of ZFS's source alone.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.errors import VerifyFailed
from bedplate.host.build_progress import BuildProgress, count_objects, watched
from bedplate.host.git.checkout import give
from bedplate.host.plain_file import bytes_below
from bedplate.host.reachable import open_to_all
from bedplate.host.requirement import Need, demand, look
from bedplate.host.shut_in.building import build_command
from bedplate.model.limits import MODULE_LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from bedplate.executors.qemu.zfs_source import KernelHeaders, ZfsSource
    from bedplate.host.command import Account, Commands

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


def compile_modules(work: ZfsWork) -> None:
    """Configure, compile and strip into `work.modules`.

    RequirementMissing for tools that are not there, CommandFailed with a tool's whole output,
    VerifyFailed for modules of another kernel or version.
    """
    demand(look((*_NEEDS, compiler_need(work.headers.objects))))
    objects = relocated_objects(work)
    shutil.copytree(work.source.directory, work.tree, symlinks=True)
    give(work.tree, work.account)
    clean = clean_environment(work.headers)
    work.progress(BuildProgress("configure"))
    configure = [
        *("./configure", "--quiet", "--disable-dependency-tracking", "--prefix=/usr", "--with-config=kernel"),
        f"--with-linux={work.headers.source}",
        f"--with-linux-obj={objects}",
    ]
    work.run([*clean, *configure], timeout_s=_CONFIGURE_TIMEOUT_S)
    _compile(work, clean)
    work.progress(BuildProgress("strip"))
    strip_modules(work, work.tree / "module")


def compiler_need(objects: Path) -> Need:
    """The compiler that the kernel's own makefiles ask for."""
    try:
        variables = (objects / ".kernelvariables").read_text(encoding="utf-8")
    except FileNotFoundError:
        variables = ""
    found = _COMPILER.search(variables)
    name = found[0] if found else "gcc"
    return Need(name, name, "the compiler that this kernel's modules are built with")


def relocated_objects(work: ZfsWork) -> Path:
    """A copy of the flavour's headers whose makefile finds the common part where it lies."""
    headers = work.headers
    if headers.kbuild is None:
        return headers.objects
    top = work.directory / "headers"
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


def _compile(work: ZfsWork, clean: tuple[str, ...]) -> None:
    series = ".".join(work.source.version.split(".")[:2])
    total = _OBJECTS.get(series)

    def report(done: int) -> None:
        work.progress(BuildProgress("compile", min(done, total) if total else done, total))

    report(0)
    jobs = len(os.sched_getaffinity(0))
    with watched(lambda: count_objects(work.tree / "module"), report):
        work.run(
            [*clean, "make", "--no-print-directory", "-s", "-j", str(jobs)], timeout_s=_COMPILE_TIMEOUT_S
        )


def strip_modules(work: ZfsWork, directory: Path) -> None:
    """Every module below `directory` into `work.modules`, without its debugging symbols.

    VerifyFailed for modules of another kernel or version, and if ZFS itself is not among them.
    """
    built = sorted(directory.rglob("*.ko"))
    work.modules.mkdir()
    reasons = []
    for path in built:
        work.run(["strip", "--strip-debug", str(path)], timeout_s=_STRIP_TIMEOUT_S)
        try:
            content = bytes_below(work.tree, str(path.relative_to(work.tree)), MODULE_LIMIT.most_bytes)
        except OSError as error:
            raise VerifyFailed(
                f"{error.filename}, a module that was built, cannot be read: {error.strerror}"
            ) from None
        (work.modules / path.name).write_bytes(content)
        facts = module_facts(content)
        release = facts.get("vermagic", "(none)").partition(" ")[0]
        if release != work.release:
            reasons.append(f"{path.name} is for {release}, not for {work.release}")
        if facts.get("version", work.source.version) != work.source.version:
            reasons.append(f"{path.name} is of ZFS {facts['version']}, not {work.source.version}")
    if not any(path.name == "zfs.ko" for path in built):
        reasons.append(f"no zfs.ko came out of the build, but {len(built)} other modules")
    if reasons:
        raise VerifyFailed(*reasons)
