"""Images and configurations of kernels of our making, in the forms that the kernel's own build writes."""

from __future__ import annotations

import gzip
import struct

from tests.support.guests.fake_distribution import bz_image

from bedplate.executors.qemu.own_kernel import EVERY_GUEST

_SECTOR = 512
_SETUP_SECTORS = 4
_PAYLOAD_OFFSET = 64


def guest_configuration(**changed: str) -> str:
    """The text of a configuration that has all that every guest needs, but for what is changed: `y`, `m`, or `n`."""
    values = {option.name: "y" for option in EVERY_GUEST} | {
        name.removeprefix("_"): value for name, value in changed.items()
    }
    lines = [
        f"# CONFIG_{name} is not set" if value == "n" else f"CONFIG_{name}={value}"
        for name, value in values.items()
    ]
    return "\n".join(("# Automatically generated file; DO NOT EDIT.", *lines, ""))


def kernel_with(configuration: str | None, release: str = "6.12.1") -> bytes:
    """An unpacked kernel as far as it is read: its banner, and its configuration behind words that only look like it."""
    held = b""
    if configuration is not None:
        held = b"IKCFG_ST" + gzip.compress(configuration.encode(), mtime=0) + b"IKCFG_ED"
    banner = f"Linux version {release} (builder@example) #1 SMP\0".encode()
    return b"\0code IKCFG_ST that looks for it" + banner + held + b"\0end"


def packed_image(release: str, payload: bytes) -> bytes:
    """A bzImage of this release around a packed kernel (Documentation/arch/x86/boot.rst)."""
    image = bytearray(bz_image(release).encode("latin-1"))
    image[0x1F1] = _SETUP_SECTORS
    image[0x206:0x208] = (0x020F).to_bytes(2, "little")
    image[0x248:0x250] = struct.pack("<II", _PAYLOAD_OFFSET, len(payload))
    image += bytes((_SETUP_SECTORS + 1) * _SECTOR + _PAYLOAD_OFFSET - len(image))
    return bytes(image) + payload + b"\0" * 16


def vmlinux(kernel: bytes, *, pvh: bool) -> bytes:
    """An ELF file with one segment of notes before a kernel."""
    note = struct.pack("<III", 4, 4, 18) + b"Xen\0" + struct.pack("<I", 0x1000000)
    other = struct.pack("<III", 4, 4, 3) + b"GNU\0" + b"\1\2\3\4"
    notes = other + (note if pvh else b"")
    head = bytearray(64)
    head[:6] = b"\x7fELF\x02\x01"
    head[32:40] = struct.pack("<Q", 64)
    head[54:58] = struct.pack("<HH", 56, 1)
    segment = bytearray(56)
    segment[0:4] = struct.pack("<I", 4)
    segment[8:16] = struct.pack("<Q", 64 + 56)
    segment[32:40] = struct.pack("<Q", len(notes))
    return bytes(head + segment) + notes + kernel
