"""Whether what a visit stands on is still there: its device as it was attached, its file system as it was mounted.

Asked at the end of each run and before the closing check: a figure of a file system that somebody has unmounted
meanwhile is one of another disk, and what fsck says of a device that is gone accuses the wrong one.
"""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING

from bedplate.errors import VisitFailed
from bedplate.host.devices.loop_table import backing_file
from bedplate.host.mount import find_mount
from bedplate.model.durability import FSCK_FOUND_ERRORS
from bedplate.model.reason import because
from bedplate.model.visit import CHECK_STEP, CheckOutcome
from bedplate.units import KERNEL_SECTOR_BYTES, format_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bedplate.filesystem.adapter import Filesystem
    from bedplate.filesystem.site import Site
    from bedplate.host.devices.device import AttachedDevice
    from bedplate.host.mount import MountEntry
    from bedplate.visit.findings import Findings

# What a file system answers whose journal or log was aborted; none of them is an answer to a question of ours.
_SHUT_DOWN = frozenset({errno.EIO, errno.EROFS, errno.ESHUTDOWN, errno.EUCLEAN})
_NO_SUCH_ATTRIBUTE = "user.bedplate-asks"


def device_troubles(device: AttachedDevice) -> tuple[str, ...]:
    """What has become of the device since it was attached, a sentence each; empty if it is as it was."""
    folder = Path("/sys/class/block") / device.name
    if device.image is not None:
        behind = backing_file(device.name)
        if behind != os.path.realpath(device.image):
            return (
                (
                    f"{device.path} is no longer attached to {device.image}"
                    f"{f', but to {behind}' if behind else ''}: something detached it during the visit"
                ),
            )
    try:
        size_bytes = int((folder / "size").read_text()) * KERNEL_SECTOR_BYTES
        protected = (folder / "ro").read_text().strip() == "1"
    except (OSError, ValueError):
        return (f"{device.path} is gone: the kernel knows no device {device.name} any more",)
    found = []
    if device.image is not None:
        with contextlib.suppress(FileNotFoundError):
            # A loop device keeps its size when its file is cut.
            size_bytes = min(size_bytes, device.image.stat().st_size)
    if size_bytes != device.size_bytes:
        found.append(
            f"{device.path} has {format_size(size_bytes)}, and had {format_size(device.size_bytes)} when the visit began"
        )
    if protected:
        found.append(
            f"{device.path} is write-protected, and was not when the visit began; "
            f"`blockdev --setrw {device.path}` if it should not be"
        )
    return tuple(found)


def filesystem_troubles(mounted: MountEntry) -> tuple[str, ...]:
    """What has become of a mount since, a sentence each; empty if it is there and takes writes as it did."""
    now = find_mount(mounted.target)
    if now is None:
        return (
            f"the file system on {mounted.target} is no longer mounted: something unmounted it during the visit",
        )
    if now.mount_id != mounted.mount_id:
        return (
            f"something else was mounted on {mounted.target} during the visit: {now.type} of {now.source}",
        )
    if now.read_only and not mounted.read_only:
        return (
            (
                f"the file system on {mounted.target} became read-only during the visit, as the kernel does after an error "
                "of the device or of the file system: logs/kernel.log may say which"
            ),
        )
    if (error := _ask(mounted.target)) is not None:
        return (
            (
                f"the file system on {mounted.target} no longer answers: {os.strerror(error)}; the kernel has shut it down, "
                "logs/kernel.log may say why"
            ),
        )
    return ()


def _ask(target: str) -> int | None:
    """The error of a file system that was shut down; None where it answers. Nothing is written by asking."""
    try:
        folder = os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        return error.errno if error.errno in _SHUT_DOWN else None
    try:
        # XFS looks whether it is shut down before it reads an attribute, ext4 before it syncs.
        for question in (lambda: os.fsync(folder), lambda: os.getxattr(folder, _NO_SUCH_ATTRIBUTE)):
            try:
                question()
            except OSError as error:
                if error.errno in _SHUT_DOWN:
                    return error.errno
    finally:
        os.close(folder)
    return None


def check_filesystem(
    filesystem: Filesystem, site: Site, devices: Sequence[AttachedDevice], findings: Findings
) -> None:
    """Note that it is clean; VisitFailed where it is not, or could not be looked at."""
    checked = filesystem.check(site)
    if checked.ran and checked.clean:
        findings.filesystem_check_outcome = CheckOutcome.CLEAN
        findings.filesystem_check = "clean"
        return
    # Asked after it as well: a device that went away meanwhile is no error of the file system's.
    troubles = [trouble for taken in devices for trouble in device_troubles(taken)]
    if troubles or not checked.ran:
        raise VisitFailed(
            CHECK_STEP,
            *(troubles or (f"fsck was ended before it had looked at everything: {checked.text[-2000:]}",)),
        )
    findings.filesystem_check_outcome = CheckOutcome.ERRORS
    findings.filesystem_check = checked.text
    words = f"fsck found errors after a clean unmount: {checked.text[-2000:]}"
    raise VisitFailed(CHECK_STEP, because(FSCK_FOUND_ERRORS.code, words))
