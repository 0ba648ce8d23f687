"""A signal before any line of a trial leaves nothing that is not in the ledger; nor does an unmount that fails."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.tools.interrupted import in_files, interrupted_at_each_line

from bedplate.errors import DeviceInUse
from bedplate.filesystem import mounted, refusals
from bedplate.host.command import Commands
from bedplate.host.ledger import Ledger
from bedplate.model.cell import FilesystemLevels
from bedplate.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class _Machine:
    """Loop devices and mounts that are no more than entries here: what is taken, and what is given back."""

    def __init__(self) -> None:
        self.loops: set[str] = set()
        self.mounts: set[str] = set()
        self.is_busy = False

    def run(self, argv: Sequence[str], **_: object) -> Any:
        assert argv[0] == "losetup"
        self.loops.add(argv[-1])
        return type("Completed", (), {"stdout": f"/dev/loop{len(self.loops)}\n"})

    def detach(self, image: Path, _commands: object) -> None:
        self.loops.discard(str(image))

    probe_bytes = MIB

    def mkfs(self, _site: object) -> tuple[str, ...]:
        return ()

    def mount(self, site: Any) -> None:
        self.mounts.add(str(site.target))

    def read_back(self, _site: object) -> tuple[object, ...]:
        return ()

    def unmount(self, site: Any) -> bool:
        if self.is_busy:
            raise DeviceInUse(f"{site.target} is busy")
        self.mounts.discard(str(site.target))
        return True


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> _Machine:
    machine = _Machine()
    for module in (refusals, mounted):
        monkeypatch.setattr(module, "filesystem_for", lambda _: machine)
    monkeypatch.setattr(refusals, "detach", machine.detach)
    return machine


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "state", "trial") as opened:
        yield opened
        opened.release(Commands())


def known(ledger: Ledger, *kinds: str) -> set[str]:
    return {holding.name for holding in ledger.holdings() if holding.kind in kinds}


def left(place: Path) -> set[str]:
    return {str(path) for path in place.rglob("bedplate-probe-*/**/*")} | {
        str(path) for path in place.glob("bedplate-probe-*")
    }


def test_a_signal_leaves_what_is_still_there_to_the_ledger(
    tmp_path: Path, machine: _Machine, ledger: Ledger
) -> None:
    commands: Any = machine

    def deed() -> None:
        levels = FilesystemLevels("ext4", journal="external")
        assert () == refusals.probe_refusals(levels, commands=commands, directory=tmp_path, ledger=ledger)

    places = []
    for place in interrupted_at_each_line(
        deed, of=in_files("filesystem/refusals.py", "filesystem/mounted.py")
    ):
        places.append(place)
        assert machine.loops <= known(ledger, "loop"), place
        assert machine.mounts <= known(ledger, "mount"), place
        assert left(tmp_path) <= known(ledger, "image", "directory"), place
        ledger.release(Commands())
        machine.loops.clear()
        machine.mounts.clear()
        assert set() == left(tmp_path), place
    assert 60 <= len(places)
    assert (set(), set(), ()) == (machine.loops, machine.mounts, ledger.holdings())


def test_a_mount_that_stays_busy_stays_in_the_ledger(
    tmp_path: Path, machine: _Machine, ledger: Ledger
) -> None:
    commands: Any = machine
    machine.is_busy = True
    with pytest.raises(DeviceInUse):
        refusals.probe_refusals(
            FilesystemLevels("ext4"), commands=commands, directory=tmp_path, ledger=ledger
        )
    assert machine.mounts
    assert machine.mounts == known(ledger, "mount")
