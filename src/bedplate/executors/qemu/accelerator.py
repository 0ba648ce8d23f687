"""Which accelerator a guest gets: KVM where it works, else QEMU's own emulation (TCG).

A KVM that exists may still hang: nested in some clouds it accepts every call and the guest never gets
past its decompressor. So a kernel is started under it once, and must say its version. The answer is
kept for this boot of the machine, this QEMU and this kernel.
"""

from __future__ import annotations

import json
import os
import select
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.executors.qemu.channel import line_pair
from bedplate.executors.qemu.command_line import KVM, TCG, trial_command
from bedplate.executors.qemu.qemu_process import QemuProcess
from bedplate.host.process import boot_id
from bedplate.model.cell import digest

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from bedplate.executors.qemu.kernels import GuestKernel
    from bedplate.host.ledger import Ledger

DEVICE = Path("/dev/kvm")
_TRIAL_S = 6.0
_SIGN = b"Linux version"


def known_accelerator(
    kernel: GuestKernel, *, qemu: str, cache_directory: Path, device: Path = DEVICE
) -> str | None:
    """`kvm` or `tcg` where that is known without a trial, else None. Starts nothing."""
    if not os.access(device, os.R_OK | os.W_OK):
        return TCG
    try:
        answer = json.loads(_answer_file(kernel, qemu, cache_directory).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    found = answer.get("accelerator") if isinstance(answer, dict) else None
    return found if found in {KVM, TCG} else None


def find_accelerator(
    kernel: GuestKernel,
    *,
    qemu: str,
    cache_directory: Path,
    ledger: Ledger,
    device: Path = DEVICE,
    trial: Callable[[Path, Ledger], bool] | None = None,
) -> str:
    """`kvm` or `tcg`, tried now where it is not known: six seconds if KVM hangs."""
    known = known_accelerator(kernel, qemu=qemu, cache_directory=cache_directory, device=device)
    if known is not None:
        return known
    found = KVM if (trial or kvm_works)(kernel.image, ledger) else TCG
    file = _answer_file(kernel, qemu, cache_directory)
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    temporary.write_text(json.dumps({"accelerator": found, "kernel": kernel.release, "qemu": qemu}))
    temporary.replace(file)
    return found


def kvm_works(image: Path, ledger: Ledger) -> bool:
    """Whether a kernel under KVM says its version within six seconds; its guest is gone afterwards."""
    ours, theirs = line_pair()
    with ours:
        qemu = QemuProcess(
            trial_command(image, console=theirs.fileno()),
            sockets=(theirs,),
            errors=ledger.directory / "kvm-trial.err",
            ledger=ledger,
        )
        try:
            return says_version(ours, deadline_s=_TRIAL_S)
        finally:
            qemu.end(gently=False)


def says_version(
    console: socket.socket, *, deadline_s: float, clock: Callable[[], float] = time.monotonic
) -> bool:
    """Whether `Linux version` comes out of a console before its end and before the deadline."""
    give_up = clock() + deadline_s
    poller = select.poll()
    poller.register(console, select.POLLIN)
    said = b""
    while (wait_s := give_up - clock()) > 0:
        if not poller.poll(wait_s * 1000):
            continue
        try:
            data = console.recv(65536)
        except ConnectionResetError:
            return False
        if not data:
            return False
        said += data
        if _SIGN in said:
            return True
    return False


def _answer_file(kernel: GuestKernel, qemu: str, cache_directory: Path) -> Path:
    key = digest({"boot": boot_id(), "qemu": qemu, "kernel": kernel.digest})
    return cache_directory / "accelerators" / f"{key}.json"
