"""Programs that make a guest ready: the machine's own, else from a package unpacked in the cache."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bedplate.host.apt.package_tree import ensure_package_tree, find_package_tree
from bedplate.host.requirement import find_tool

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from bedplate.host.command import Commands

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


def is_static(program: Path) -> bool:
    """Whether an ELF program asks for no loader (elf(5): no PT_INTERP), so that it runs by itself."""
    with program.open("rb") as file:
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
