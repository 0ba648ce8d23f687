"""The modules of a kernel, from what depmod(8) and the kernel's build leave beside them."""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from bedplate.errors import OutputNotUnderstood, RequirementMissing
from bedplate.executors.qemu.unpacking import NotUnpacked, unpack
from bedplate.host.facts import SCHEDULER_MODULES
from bedplate.model.limits import MODULE_LIMIT, read_at_most
from bedplate.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bedplate.executors.qemu.guest_tools import Tool
    from bedplate.host.command import Commands

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
    """The module itself, unpacked from any of the forms of `unpacking.py`.

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
