"""A link that leads to one device and then to another, as udev's do when it sees a clone."""

from __future__ import annotations

import threading
from pathlib import Path

from tests.support.tools.scratch_disk import Disk

from bedplate.errors import DeviceRefused
from bedplate.host.ledger import Ledger
from bedplate.host.scratch_device import prepare, release_device
from bedplate.model.visit import ScratchDevice


class Flipping:
    """A link that changes between two devices every two milliseconds, as udev's does between two clones."""

    def __init__(self, link: Path, targets: tuple[str, str]) -> None:
        self._link, self._targets = link, targets
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._flip)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _flip(self) -> None:
        side = self._link.with_name(f"{self._link.name}.next")
        count = 0
        while not self._over.wait(0.002):
            count += 1
            side.symlink_to(self._targets[count % 2])
            side.replace(self._link)


def erased_and_refused(disk: Disk, foreign: str, calls: int) -> tuple[int, int]:
    """So many attempts to erase by a name that flips between `disk` and `foreign`: how many erased, how many were refused.

    AssertionError where one has erased another device than `disk`.
    """
    erased = refused = 0
    link = disk.link.with_name("flips")
    link.symlink_to(disk.node)
    scratch = ScratchDevice(device=str(link), erase=(str(link),))
    with Ledger.open(disk.base / "state", "flips") as ledger, Flipping(link, (disk.node, foreign)):
        for _ in range(calls):
            try:
                device = prepare(
                    scratch, ledger=ledger, commands=disk.commands, directory=disk.base, tree=disk.tree
                )
            except DeviceRefused:
                refused += 1
            else:
                erased += 1
                assert (disk.node, Path(disk.node).name) == (device.path, device.name)
                release_device(device, ledger=ledger, commands=disk.commands)
    return erased, refused
