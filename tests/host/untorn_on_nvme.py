"""What file systems say and take of untorn writes on an NVMe disk that promises some, in a guest.

    untorn_on_nvme.py LIBRARY DIRECTORY

Formats each disk /dev/nvme?n1 in turn and writes into DIRECTORY/lines a JSON line for each: its `serial`, the queue's limit, and for each
arrangement what statx says of a file, what one untorn write of 8 kB came to, and what the preloaded LIBRARY counted of a small writer.
Standard library and bedplate only, since every import costs seconds in an emulated guest.
"""

from __future__ import annotations

import json
import mmap
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from bedplate.host.pages import probe_untorn_write, untorn_unit
from bedplate.host.process import wait_until
from bedplate.visit.declaration import UntornWrites

PAGE = 8192
PAGES = 16
ARRANGEMENTS = {
    "ext4": ("mkfs.ext4", "-q", "-F"),
    "ext4 bigalloc": ("mkfs.ext4", "-q", "-F", "-O", "bigalloc", "-C", "16384"),
    "xfs": ("mkfs.xfs", "-q", "-f"),
    "xfs without reflink": ("mkfs.xfs", "-q", "-f", "-m", "reflink=0"),
}
_COUNTS_BYTES = 4096
_PATIENCE_S = 60.0


def main(arguments: list[str]) -> int:
    """Every disk, every arrangement."""
    library, directory = map(Path, arguments)
    subprocess.run(["/run/guest/bin/modprobe", "nvme"], check=True)
    with (directory / "lines").open("w") as lines:
        for disk in _disks():
            found = {name: _tried(disk, mkfs, library) for name, mkfs in ARRANGEMENTS.items()}
            queue = Path("/sys/block", disk.name, "queue/atomic_write_unit_max_bytes")
            line = {
                "serial": (Path("/sys/block") / disk.name / "device/serial").read_text().strip(),
                "queue_unit_bytes": int(queue.read_text()),
                "kernel": os.uname().release,
                **found,
            }
            print(json.dumps(line), file=lines, flush=True)
    return 0


def _disks() -> list[Path]:
    """Both; they come a moment after their driver."""
    wait_until(lambda: len(_blocks()) == 2, deadline_s=_PATIENCE_S)
    for disk in _blocks():
        node = Path("/dev", disk.name)
        if not node.exists():
            major, minor = map(int, (disk / "dev").read_text().split(":"))
            os.mknod(node, 0o60600, os.makedev(major, minor))
    return [Path("/dev", disk.name) for disk in _blocks()]


def _blocks() -> list[Path]:
    """Without the paths to them (nvme0c0n1), which are no devices of anybody's."""
    return sorted(disk for disk in Path("/sys/block").glob("nvme*n1") if (disk / "dev").exists())


def _tried(disk: Path, mkfs: tuple[str, ...], library: Path) -> dict[str, Any]:
    target = Path("/run/untorn-on-nvme")
    target.mkdir(exist_ok=True)
    subprocess.run([*mkfs, str(disk)], check=True)
    subprocess.run(["mount", str(disk), str(target)], check=True)
    try:
        file = target / "file"
        untorn = UntornWrites(library, target.with_name("counts"), PAGE, "on")
        untorn.counts.write_bytes(bytes(_COUNTS_BYTES))
        subprocess.run(
            [sys.executable, "-S", "-s", __file__, "--write", str(file)],
            check=True,
            env={**os.environ, **untorn.environment},
        )
        counted, unit = untorn.counted(), untorn_unit(file)
        return {
            "unit": None if unit is None else [unit.min_bytes, unit.max_bytes, unit.max_optimised_bytes],
            "probe": probe_untorn_write(target / "probe", PAGE),
            "atomic": counted.atomic,
            "refused": dict(counted.refused),
        }
    finally:
        subprocess.run(["umount", str(target)], check=True)


def write(path: Path) -> None:
    """Each page twice with direct I/O."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_DIRECT, 0o600)
    page = mmap.mmap(-1, PAGE)
    for number in (*range(PAGES), *range(PAGES)):
        if os.pwrite(file, page, number * PAGE) != PAGE:
            sys.exit(f"page {number} was not written whole")
    os.close(file)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--write"]:
        write(Path(sys.argv[2]))
    else:
        sys.exit(main(sys.argv[1:]))
