"""A private place for guests, and visits that do what a test wants in one: it costs a boot, not a database."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.tools.processes import processes_naming

from bedplate.executors.qemu.guest import Deadlines
from bedplate.executors.qemu.kernels import ensure_kernel
from bedplate.executors.qemu.runner import GuestRunner
from bedplate.executors.qemu.slot import GuestSlot
from bedplate.host.command import Commands
from bedplate.host.files import cache_directory
from bedplate.host.ledger import release_orphans
from bedplate.model.cell import (
    BuildLevels,
    Cell,
    ClusterLevels,
    Dataset,
    DeviceLevels,
    FilesystemLevels,
    KernelLevels,
    RunSpec,
)
from bedplate.model.levels import Levels
from bedplate.model.visit import FORMAT_VERSION, EngineBuild, ScratchDevice, VisitKey, VisitRequest
from bedplate.units import MIB

# Stands where the visits' Python stands, and looks into the request which deed is asked for. The words
# are those of the agent: `-S -s -P -m bedplate.visit.command --executor qemu -- REQUEST DIRECTORY`.
INTERPRETER = """#!/bin/sh
$BYTECODE
for word; do request=$directory directory=$word; done
say() { printf '%s\\n' "{\\"event\\": \\"step\\", \\"step\\": \\"$1\\"}"; }
finish() { echo '{"failed_step": null}' >"$directory/visit.json"; exit 0; }
case $(sed -n 's/.*"deed": "\\([a-z]*\\)".*/\\1/p' "$request") in
    nothing)
        say "$(id -u)"
        say "$(cat /sys/block/vda/size)"
        finish
        ;;
    panic)
        say panics
        echo c >/proc/sysrq-trigger
        sleep 600
        ;;
    hang)
        say hangs
        sleep 600
        ;;
    chatter)
        while :; do say chatters; sleep 0.2; done
        ;;
    fill)
        mkdir -p "$directory/logs"
        dd if=/dev/zero of="$directory/logs/large" bs=65536 2>/dev/null
        echo 'OSError: [Errno 28] No space left on device' >&2
        exit 1
        ;;
    python)
        script=$(sed -n 's/.*"script": "\\([^"]*\\)".*/\\1/p' "$request")
        exec "$PYTHON" -S -s -P "$script" "$request" "$directory"
        ;;
    *)
        exec "$PYTHON" "$@"
        ;;
esac
"""


_OF_THE_SLOT = ("deadlines", "interpreter", "cache_directory", "find")


class GuestLab:
    """A place with its own state directory; `deed` makes the request of a visit that does just that."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.state = base / "state"
        self.visits = 0
        self.events: list[Mapping[str, Any]] = []
        self.executors: list[GuestRunner] = []

    def executor(self, **changes: Any) -> GuestRunner:
        slot = GuestSlot(
            changes.pop("place", self.base / "place"),
            state_directory=self.state,
            **{
                "deadlines": Deadlines(boot_s=600, silence_s=300),
                "interpreter": self.interpreter(),
                **{name: changes.pop(name) for name in _OF_THE_SLOT if name in changes},
            },
        )
        made = GuestRunner(slot, **{"memory_bytes": 768 * MIB, **changes})
        self.executors.append(made)
        return made

    def interpreter(self, python: Path = Path(sys.executable)) -> Path:
        path = self.base / "interpreter"
        real = str(python.resolve())
        # To compile takes an emulated guest longer than to run.
        prefix = sys.pycache_prefix
        bytecode = f"export PYTHONPYCACHEPREFIX={shlex.quote(prefix)}" if prefix else ""
        path.write_text(INTERPRETER.replace("$PYTHON", real).replace("$BYTECODE", bytecode))
        path.chmod(0o755)
        return path

    def run(self, script: str, *, image_bytes: int = 64 * MIB) -> VisitRequest:
        """The request of a visit that runs a script, each in a file of its own: a guest reads none of them twice."""
        path = self.base / f"script-{len(list(self.base.glob('script-*')))}.py"
        path.write_text(script)
        return self.deed("python", image_bytes=image_bytes, script=str(path))

    def deed(self, name: str, *, image_bytes: int = 64 * MIB, **more: str) -> VisitRequest:
        cell = Cell(
            DeviceLevels(),
            KernelLevels(),
            FilesystemLevels("ext4"),
            BuildLevels(),
            ClusterLevels(),
        )
        return VisitRequest(
            format_version=FORMAT_VERSION,
            key=VisitKey(cell.id, "deed", 1, 1),
            cell=cell,
            dataset=Dataset("pgbench", Levels(deed=name, **more)),
            runs=(RunSpec("deed", "pgbench", Levels({"duration_s": 0.0})),),
            scratch_device=ScratchDevice(image_bytes=image_bytes, image_directory=str(self.base)),
            build=EngineBuild("/usr", "18", 8192, 8192, "", "", "", (), ""),
            native_drivers={},
            state_directory=str(self.state),
            seed=1,
        )

    def live(
        self,
        executor: GuestRunner,
        request: VisitRequest,
        *,
        boot: int | None = 1,
        on_event: Callable[[Mapping[str, Any]], None] = lambda _: None,
    ) -> Path:
        """Live through a visit; its directory, also if it raises: `visit-<number>`."""
        self.visits += 1
        directory = self.base / f"visit-{self.visits}"
        directory.mkdir()
        self.events = []

        def hear(event: Mapping[str, Any]) -> None:
            self.events.append(event)
            on_event(event)

        executor.run_visit(request, directory, hear, boot=boot)
        return directory

    @property
    def steps(self) -> list[str]:
        """What the last visit said in the guest, after the boot's own steps."""
        told = [str(event["step"]) for event in self.events if event["event"] == "step"]
        return [step for step in told if step not in {"disks", "boot", "hand-over"}]

    def guests(self) -> list[int]:
        """Every QEMU of this place."""
        return guests_naming(str(self.base))

    def left_behind(self) -> list[str]:
        found = [f"guest {pid}" for pid in self.guests()]
        found += [f"image {path}" for path in self.base.glob("**/*.img")]
        found += [f"place {path}" for path in self.base.glob("place/*")]
        found += [f"state {path}" for path in self.state.glob("[0-9]*")]
        found += [f"in memory {path}" for path in Path("/dev/shm").glob(f"{os.getpid()}-bedplate-*")]
        return found


def guests_naming(text: str) -> list[int]:
    """The processes of QEMU whose command line holds a text."""
    return [
        process.pid
        for process in processes_naming(text)
        if "qemu-system" in process.line[:200] + process.arguments[-1]
    ]


@contextmanager
def guest_lab() -> Iterator[GuestLab]:
    """A lab that is swept afterwards, whatever became of the test."""
    # For one that has never run a guest: 106 MB, once.
    ensure_kernel(None, cache_directory=cache_directory(), commands=Commands(), progress=lambda _: None)
    base = Path(tempfile.mkdtemp(prefix="bedplate-test-guest-"))
    base.chmod(0o755)
    place = GuestLab(base)
    try:
        yield place
    finally:
        for executor in place.executors:
            executor.close()
        release_orphans(place.state, Commands())
        shutil.rmtree(base, ignore_errors=True)
