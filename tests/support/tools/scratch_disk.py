"""Loop devices that play disks: their stable names live in a /dev of the test's own."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bedplate.host.block_tree import BlockTree
from bedplate.host.command import Commands
from bedplate.host.scratch_device import losetup, refusal_reasons
from bedplate.model.visit import ScratchDevice

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SIZE = 64 << 20


class Disk:
    """A loop device with a stable name."""

    def __init__(self, base: Path, node: str) -> None:
        self.base = base
        self.node = node
        self.dev = base / "dev"
        self.link = self.dev / "disk/by-id/test-disk"
        self.link.parent.mkdir(parents=True)
        self.link.symlink_to(node)
        self.tree = BlockTree(dev=self.dev)
        self.commands = Commands()

    @property
    def name(self) -> str:
        return str(self.link)

    def scratch(self, *, erase: bool = True, foreign: bool = False) -> ScratchDevice:
        return ScratchDevice(device=self.name, erase=(self.name,) if erase else (), erase_foreign=foreign)

    def reasons(
        self, *, erase: bool = True, foreign: bool = False, minimum_bytes: int = 0
    ) -> tuple[str, ...]:
        scratch = self.scratch(erase=erase, foreign=foreign)
        return refusal_reasons(scratch, self.commands, tree=self.tree, minimum_bytes=minimum_bytes)

    def write(self, offset: int, content: bytes) -> None:
        file = os.open(self.node, os.O_WRONLY)
        os.pwrite(file, content, offset)
        os.fsync(file)
        os.close(file)


@contextmanager
def looped(base: Path, *options: str, size_bytes: int = SIZE, name: str = "disk.img") -> Iterator[str]:
    """A loop device over a new file of zeros, by its node."""
    image = base / name
    with image.open("wb") as file:
        file.truncate(size_bytes)
    commands = Commands()
    node = f"/dev/{losetup(image, commands, *options)}"
    try:
        yield node
    finally:
        commands.run(["losetup", "--detach", node])
