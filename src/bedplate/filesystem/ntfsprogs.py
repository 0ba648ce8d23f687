"""What both drivers of NTFS share: mkntfs, ntfsinfo and ntfsfix, all of the package ntfs-3g.

NTFS has clusters where others have blocks: the unit of allocation, which may be larger than a page.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bedplate.errors import OutputNotUnderstood
from bedplate.filesystem.arguments import Argument, joined, parse_arguments, warnings_in
from bedplate.filesystem.comparison import MKFS_OPTION, compared, fact, not_verifiable
from bedplate.filesystem.protocol import LABEL, CheckResult, checked_by
from bedplate.host.requirement import Need

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bedplate.host.command import Commands
    from bedplate.model.cell import FilesystemLevels
    from bedplate.model.visit import Comparison

# getopt string of mkntfs 2022.10.3 (ntfsprogs/mkntfs.c).
_VALUED = "cHLpsSz"
# Forced: on a whole disk without partitions it asks. Quick: it would write zeros and look for bad sectors.
_OWN = (Argument("-Q", None), Argument("-F", None), Argument("-L", LABEL))
_NUMBERS = {
    "-c": "Cluster Size",
    "--cluster-size": "Cluster Size",
    "-s": "Sector Size",
    "--sector-size": "Sector Size",
}


def needs_of(type: str) -> tuple[Need, ...]:  # noqa: A002 - the plan's word
    """The tools, for the driver of that name."""
    purposes = (("mkntfs", "makes"), ("ntfsinfo", "reads back"), ("ntfsfix", "checks"))
    return tuple(Need(tool, "ntfs-3g", f"{does} {type}") for tool, does in purposes)


def versions(*, commands: Commands) -> Mapping[str, str]:
    """As `mkntfs --version` says."""
    said = commands.run(["mkntfs", "--version"], check=False).output
    found = re.search(r"mkntfs v(\S+)", said)
    if found is None:
        raise OutputNotUnderstood("mkntfs --version", expected="a version", found=said)
    return {"ntfs-3g": found[1]}


def mkfs(levels: FilesystemLevels, device_path: str, *, commands: Commands) -> tuple[str, ...]:
    """Make it; what mkntfs warned of. Its words about booting Windows are not among them."""
    own = list(_OWN)
    if levels.block_size_bytes is not None:
        own.append(Argument("-c", str(levels.block_size_bytes)))
    words = joined(own, parse_arguments(levels.mkfs_options, valued=_VALUED), lists=())
    return warnings_in(commands.run(["mkntfs", "-q", *words, device_path], timeout_s=3600).output)


def read_volume(device_path: str, *, commands: Commands) -> Mapping[str, str]:
    """What ntfsinfo says of the volume; forced, since it is mounted."""
    return parse_volume(commands.run(["ntfsinfo", "-f", "-m", device_path]).stdout)


def parse_volume(text: str) -> Mapping[str, str]:
    """`Key: value` lines of `ntfsinfo -m`, first come; OutputNotUnderstood if it is none."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            found.setdefault(key.strip(), value.strip())
    if not {"Cluster Size", "Volume Version"} <= found.keys():
        raise OutputNotUnderstood("ntfsinfo -m", expected="the volume's cluster size", found=text)
    return found


def volume_comparisons(levels: FilesystemLevels, volume: Mapping[str, str]) -> Iterator[Comparison]:
    """The cluster size, mkntfs's options, and the facts of the volume."""
    source = "ntfsinfo"
    size = _number(volume.get("Cluster Size"))
    yield compared("filesystem.superblock.block_size_bytes", levels.block_size_bytes, size, source)
    for argument in parse_arguments(levels.mkfs_options, valued=_VALUED):
        name = f"{MKFS_OPTION}{argument.flag}"
        key, value = _NUMBERS.get(argument.flag), argument.value
        if key is None or value is None:
            yield not_verifiable(name, argument.text, "ntfsinfo does not show it")
        else:
            asked = int(value) if value.isdigit() else value
            yield compared(name, asked, _number(volume.get(key)), source)
    yield fact("filesystem.label", volume.get("Volume Name"), source)
    yield fact("filesystem.superblock.version", volume.get("Volume Version"), source)
    for name, key in (
        ("sector_bytes", "Sector Size"),
        ("index_block_bytes", "Index Block Size"),
        ("mft_record_bytes", "MFT Record Size"),
        ("clusters", "Volume Size in Clusters"),
    ):
        yield fact(f"filesystem.superblock.{name}", _number(volume.get(key)), source)


def check(device_path: str, *, commands: Commands) -> CheckResult:
    """`ntfsfix -n`: not Windows' chkdsk, but it reads the tables, both boot sectors and the dirty flag."""
    done = commands.run(["ntfsfix", "-n", device_path], timeout_s=3600, check=False)
    return checked_by(done)


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None
