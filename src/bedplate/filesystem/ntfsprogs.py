"""What both drivers of NTFS share: mkntfs, ntfsinfo and ntfsfix, all of the package ntfs-3g.

NTFS has clusters where others have blocks: the unit of allocation, which may be larger than a page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.errors import OutputNotUnderstood
from bedplate.filesystem.adapter import Filesystem, Mounted
from bedplate.filesystem.arguments import Argument
from bedplate.filesystem.comparison import compared, fact
from bedplate.filesystem.superblock import number_facts
from bedplate.model.filesystem import LABEL
from bedplate.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bedplate.filesystem.site import Site
    from bedplate.model.cell import FilesystemLevels
    from bedplate.model.visit import ReadBack


class MadeByMkntfs(Filesystem):
    """NTFS, whoever drives it. No driver has an option for a factor."""

    probe_bytes = 64 * MIB
    package = "ntfs-3g"
    tools: tuple[tuple[str, str], ...] = (
        ("mkntfs", "makes"),
        ("ntfsinfo", "reads back"),
        ("ntfsfix", "checks"),
    )
    # Of the same package as the driver ntfs-3g.
    version_argv = ("mkntfs", "--version")
    version_pattern = r"mkntfs v(\S+)"
    version_by_status = False
    # What mkntfs says about booting Windows is not among its warnings.
    mkfs_words = ("mkntfs", "-q")
    # getopt string of mkntfs 2022.10.3 (ntfsprogs/mkntfs.c).
    valued = "cHLpsSz"
    # Forced: on a whole disk without partitions it asks. Quick: it would write zeros and look for bad sectors.
    own = (Argument("-Q", None), Argument("-F", None), Argument("-L", LABEL))
    block_size_option = ("-c", "{}")
    # Not Windows' chkdsk, but it reads the tables, both boot sectors and the dirty flag.
    fsck = ("ntfsfix", "-n")
    reader = "ntfsinfo"
    block_size_key = "Cluster Size"
    number_flags: Mapping[str, str] = {
        **dict.fromkeys(("-c", "--cluster-size"), "Cluster Size"),
        **dict.fromkeys(("-s", "--sector-size"), "Sector Size"),
    }
    not_shown = "ntfsinfo does not show it"

    def _superblock(self, site: Site) -> Mapping[str, str]:
        """What ntfsinfo says of the volume; forced, since it is mounted."""
        return parse_volume(site.commands.run(["ntfsinfo", "-f", "-m", site.device.path]).stdout)

    def _block_sizes(self, site: Site, found: Mounted) -> Iterator[ReadBack]:
        # The volume's own stands among what its superblock says.
        yield next(super()._block_sizes(site, found))

    def superblock_comparisons(
        self, levels: FilesystemLevels, superblock: Mapping[str, str]
    ) -> Iterator[ReadBack]:
        """The cluster size, mkntfs's options, and the facts of the volume."""
        size = self._block_bytes(superblock)
        yield compared("filesystem.superblock.block_size_bytes", levels.block_size_bytes, size, self.reader)
        yield from super().superblock_comparisons(levels, superblock)

    def _facts(self, superblock: Mapping[str, str]) -> Iterator[ReadBack]:
        source = "ntfsinfo"
        yield fact("filesystem.label", superblock.get("Volume Name"), source)
        yield fact("filesystem.superblock.version", superblock.get("Volume Version"), source)
        yield from number_facts(superblock, source, _NUMBERS)


_NUMBERS = {
    "sector_bytes": "Sector Size",
    "index_block_bytes": "Index Block Size",
    "mft_record_bytes": "MFT Record Size",
    "clusters": "Volume Size in Clusters",
}


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
