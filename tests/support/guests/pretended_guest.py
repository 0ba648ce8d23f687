"""A guest that only pretends: what it does for each visit is a deed that a test chose."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bedplate.executors.qemu.guest import BootCrashed, GuestDisk, GuestExit, GuestFailed, GuestSpec
from bedplate.executors.qemu.runner import GuestRunner
from bedplate.model import codec
from bedplate.model.visit import VisitRequest

Deed = Callable[[Path], GuestExit]


def completes(folder: Path) -> GuestExit:
    (folder / "visit/visit.json").write_text('{"failed_step": null}')
    (folder / "visit/logs").mkdir()
    (folder / "visit/logs/server.log").write_text("x")
    return GuestExit(0, "", broken=False)


def fails_to_clean_up(folder: Path) -> GuestExit:
    (folder / "visit/visit.json").write_text('{"failed_step": "clean-up"}')
    return GuestExit(0, "", broken=False)


def breaks_the_kernel(folder: Path) -> GuestExit:
    return GuestExit(completes(folder).status, "", broken=True)


def dies(folder: Path) -> GuestExit:
    (folder / "visit/half").write_text("x")
    raise GuestFailed("the guest died: Kernel panic - not syncing", "its console's last lines: …")


def leaves_no_record(_: Path) -> GuestExit:
    return GuestExit(1, "Traceback\nValueError: what", broken=False)


def fills_the_disk(_: Path) -> GuestExit:
    return GuestExit(1, "OSError: [Errno 28] No space left on device", broken=False)


class Pretender:
    """A guest that does the next deed for each visit."""

    def __init__(self, spec: GuestSpec, stage: Stage) -> None:
        self.spec = spec
        self.stage = stage
        self.alive = True
        self.pid = 4711
        self.sizes: list[tuple[str, int]] = []
        self.lived: list[VisitRequest] = []

    def live(
        self, number: int, *, limit_s: float, silence_s: float, on_event: Callable[[Mapping[str, Any]], None]
    ) -> GuestExit:
        share = next(share.path for share in self.spec.shares if share.writable)
        folder = share / str(number)
        for disk in self.spec.disks:
            assert disk.size_bytes == disk.path.stat().st_size
        self.lived.append(codec.read(VisitRequest, folder / "request.json"))
        self.stage.folders.append(
            {path.name: path.read_text() for path in folder.iterdir() if path.is_file()}
        )
        try:
            return (self.stage.deeds.pop(0) if self.stage.deeds else completes)(folder)
        except GuestFailed:
            self.alive = False
            raise

    def resize(self, guest_disk: GuestDisk) -> None:
        self.sizes.append((guest_disk.serial, guest_disk.size_bytes))

    def is_alive(self) -> bool:
        return self.alive

    def end(self, *, gently: bool) -> None:
        self.alive = False


class Stage:
    def __init__(self, base: Path) -> None:
        self.base = base
        self.deeds: list[Deed] = []
        self.guests: list[Pretender] = []
        self.folders: list[dict[str, str]] = []
        self.visits = 0
        self.panics = 0
        self.executor: GuestRunner

    def boot(self, spec: GuestSpec, *, console: Path, ledger: object, boot_s: float) -> Pretender:
        console.write_text("the console")
        if self.panics:
            self.panics -= 1
            console.write_text(f"a panic, {self.panics} to come")
            raise BootCrashed("the guest died while it booted: Kernel panic - not syncing")
        self.guests.append(Pretender(spec, self))
        return self.guests[-1]

    def visit(self, request: VisitRequest, boot: int | None = 1) -> Path:
        self.visits += 1
        directory = self.base / f"visit-{self.visits}"
        directory.mkdir()
        self.executor.run_visit(request, directory, lambda _: None, boot=boot)
        return directory

    def left(self) -> list[Path]:
        return [*self.base.glob("*.img"), *self.base.glob("place/*"), *self.base.glob("state/[0-9]*")]
