"""What cells are called in an answer: as short as they are told apart."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from bedplate.analysis.wording import block_words

if TYPE_CHECKING:
    from bedplate.analysis.overview import Overview

# A name may be of any length: a plan's own mount options stand in it.
NAME_CHARACTERS = 48
# A level is one word, or two: `sync=full`, `no writemap`, `default commit`.
_WORDS = re.compile(r"(?:no |default )?\S+")


def cell_names(found: Overview) -> dict[str, str]:
    """By cell its variant, without the words that all variants have; with block sizes where another has the same.

    `xfs`, `ext4 nobarrier`, `ext4 barrier fs 4k db 8k`; of cells whose names would be the same without, those words too.
    """
    words = {cell: _WORDS.findall(facts.label.panel) for cell, facts in found.cells.items()}
    shared = set.intersection(*map(set, words.values())) if len(words) > 1 else set()
    brief = {
        cell: " ".join([own[0], *(word for word in own[1:] if word not in shared)])
        for cell, own in words.items()
    }
    if len(set(brief.values())) < len({facts.label.panel for facts in found.cells.values()}):
        brief = {cell: " ".join(own) for cell, own in words.items()}
    counts = Counter(brief.values())
    return {
        cell: name
        if counts[name] == 1
        else f"{name} {block_words(found.cells[cell].label).replace(' · ', ' ')}"
        for cell, name in brief.items()
    }


def shortened(name: str, characters: int = NAME_CHARACTERS) -> str:
    """Its beginning and its end, which is where names differ."""
    if len(name) <= characters:
        return name
    end = characters // 3
    return f"{name[: characters - end - 1]}…{name[-end:]}"
