"""Names of devices that change what they name while a study is about to erase it."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

from tests.support.tools.block_contents import btrfs_of, write_pieces
from tests.support.tools.flipping_link import erased_and_refused
from tests.support.tools.scratch_disk import Disk, looped
from tests.torture.trial import Tally

from bedplate.units import MIB

_SIZE = 80 * MIB
_CALLS = 100


def flipping_link(drawn: random.Random, place: Path, tally: Tally) -> None:
    """A hundred attempts to erase by a link that flips between a free device and one with a foreign file system."""
    with (
        looped(place, size_bytes=_SIZE) as node,
        looped(place, size_bytes=_SIZE, name="foreign.img") as foreign,
    ):
        write_pieces(foreign, btrfs_of(1, label=f"photos {drawn.randrange(100)}"), _SIZE)
        before = _digest(foreign)
        erased, refused = erased_and_refused(Disk(place, node), foreign, _CALLS)
        tally.tried["erasing by a link that flips"] += erased + refused
        tally.expect(before == _digest(foreign), "the foreign device was written to")


def _digest(node: str) -> str:
    with Path(node).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
