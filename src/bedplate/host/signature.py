"""What a block device holds already, by its signatures: read with wipefs(8), erased with it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.errors import CommandFailed, DeviceInUse, OutputNotUnderstood
from bedplate.host.patience import wait_until

if TYPE_CHECKING:
    from bedplate.host.command import Commands

# How bedplate knows its own file systems again: mkfs writes this label (`filesystem.protocol.LABEL`).
OWN_LABEL = "bedplate"
_PATIENCE_S = 10.0


@dataclass(frozen=True)
class Signature:
    """One signature: `usage` is libblkid's class of it (`filesystem`, `raid`, `crypto`, `other`)."""

    type: str
    usage: str
    label: str
    uuid: str

    @property
    def is_own(self) -> bool:
        """True for a file system, or an external journal of ext3 or ext4, that bedplate made."""
        return (self.usage == "filesystem" or self.type == "jbd") and self.label == OWN_LABEL

    @property
    def is_member(self) -> bool:
        """True if the device is part of an array, a volume group or a pool, even a stopped one."""
        return self.usage == "raid"

    def __str__(self) -> str:
        label = f" labelled {self.label!r}" if self.label else ""
        return f"{self.type or 'unknown'}{label}"


def read_signatures(device_path: str, commands: Commands) -> tuple[Signature, ...]:
    """Every signature on the device, however many lie over each other; nothing is written."""
    argv = ["wipefs", "--no-act", "--json", "--output", "TYPE,USAGE,LABEL,UUID", device_path]
    text = commands.run(argv).stdout
    if not text.strip():
        return ()
    try:
        found = [
            Signature(*(entry.get(key) or "" for key in ("type", "usage", "label", "uuid")))
            for entry in json.loads(text)["signatures"]
        ]
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise OutputNotUnderstood("wipefs --json", expected="a list of signatures", found=text) from error
    # The boot sector of NTFS ends as a partition table does, and leaves no room for one.
    if any(signature.type == "ntfs" and signature.is_own for signature in found):
        found = [signature for signature in found if signature.type != "dos"]
    # A GUID partition table has two copies and a protective table: one is enough to say.
    return tuple(dict.fromkeys(found))


def fingerprint(device_path: str, commands: Commands) -> str:
    """Everything that blkid(8) finds on the device, UUIDs included; empty where it finds nothing."""
    done = commands.run(["blkid", "--probe", "--output", "export", device_path], check=False)
    lines = sorted(line for line in done.stdout.splitlines() if not line.startswith("DEVNAME="))
    return " ".join(lines)


def erase_signatures(device_path: str, commands: Commands, *, deadline_s: float = _PATIENCE_S) -> None:
    """Erase every signature. wipefs may find a device busy a moment after a good unmount: tried again."""
    argv = ["wipefs", "--all", "--quiet", device_path]
    said: list[str] = []

    def erased() -> bool:
        done = commands.run(argv, check=False)
        said.append(done.output)
        if done.status != 0 and "busy" not in done.output.lower():
            raise CommandFailed(
                f"{' '.join(argv)} ended with status {done.status}: {done.output}",
                argv=argv,
                status=done.status,
                output=done.output,
            )
        return done.status == 0

    if not wait_until(erased, deadline_s=deadline_s, pause_s=0.05):
        raise DeviceInUse(f"{device_path} stays busy: {said[-1]}")
