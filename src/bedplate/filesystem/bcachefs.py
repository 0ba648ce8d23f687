"""bcachefs, in kernels 6.7 to 6.17. Written after its manual and never tried: no Debian release has its tools.

Read back from the mount table and from `bcachefs show-super`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bedplate.errors import OutputNotUnderstood, PlanError
from bedplate.filesystem.adapter import Argument, Filesystem, OptionRules, Site
from bedplate.host.requirement import Need
from bedplate.model.filesystem import LABEL, TRAITS
from bedplate.units import MIB, parse_size

_REASON = "makes, reads back and checks bcachefs; no Debian release has it, so build it from its source"


class Bcachefs(Filesystem):
    """bcachefs on one device."""

    traits = TRAITS["bcachefs"]
    probe_bytes = 512 * MIB
    package = "bcachefs-tools"
    needs = (Need("bcachefs", package, _REASON),)
    version_argv = ("bcachefs", "version")
    version_pattern = r"v?(\d\S*)"
    # Without discarding, which is its default.
    mkfs_words = ("bcachefs", "format", "--force", f"--fs_label={LABEL}")
    # Status 0 is clean (bcachefs(8)).
    fsck = ("bcachefs", "fsck", "-n")
    rules = OptionRules(hidden={"nodiscard": ("discard",)})
    barrier_off_shown = frozenset({"journal_flush_disabled"})
    reader = "show-super"
    label_key = "Label"
    text_facts: Mapping[str, str] = {"version": "Version"}

    def _mkfs_arguments(self, site: Site) -> Iterator[Argument]:
        """Options of the plan's own are not taken, as none was ever tried."""
        if site.levels.mkfs_options:
            raise PlanError("bcachefs: mkfs_options were never tried; leave them out")
        if site.levels.block_size_bytes is not None:
            yield Argument(f"--block_size={site.levels.block_size_bytes}", None)

    def _superblock(self, site: Site) -> Mapping[str, str]:
        return parse_superblock(site.commands.run(["bcachefs", "show-super", site.device.path]).stdout)

    def _block_bytes(self, superblock: Mapping[str, str]) -> int | None:
        return parse_size(superblock["block_size"])


def parse_superblock(text: str) -> Mapping[str, str]:
    """`Key: value` lines of `bcachefs show-super`, first come; OutputNotUnderstood without a block size."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            found.setdefault(key.strip(), value.strip())
    if "External UUID" not in found or "block_size" not in found:
        raise OutputNotUnderstood("bcachefs show-super", expected="a superblock of bcachefs", found=text)
    return found
