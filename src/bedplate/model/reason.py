"""Why something is so: a code that decisions read, the values that stand in its sentence, and the sentence for people.

A code is a word of the field in small letters and hyphens. It is stored in studies, so it keeps its meaning; the words of
a sentence may change. A code that is read elsewhere than where its reason is made has its constant here.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from bedplate.errors import BedplateError
from bedplate.model.levels import Levels, Scalar

# Of a reason of which only the words are known: in studies of format 1 a reason was its sentence.
UNCLASSIFIED = "unclassified"

FULL_PAGE_WRITES_OFF = "full-page-writes-off"
INNODB_DOUBLEWRITE_OFF = "innodb-doublewrite-off"
# Of what runs without an engine.
ONLY_FSYNCED = "no-engine"

# The engine keeps no copies of its pages, so one that a cut tore stays torn.
PAGES_UNMENDED = (FULL_PAGE_WRITES_OFF, INNODB_DOUBLEWRITE_OFF)

# Without them a page may be lost in another way than by a tear, which few cuts meet: a checkpoint passes over one that no sync
# covers (docs/FINDINGS.md). So no number of good cuts promises more than is declared.
PAGES_PASSED_OVER = (INNODB_DOUBLEWRITE_OFF,)

# The rule of that name: pages that were to be written whole were not, so the verdict is refused.
PAGES_WRITTEN_OTHERWISE = "pages-written-otherwise"

SCRATCH_DEVICE_FULL = "scratch-device-full"
FILE_SYSTEM_SILENT = "file-system-silent"

# Of format 1: how the sentences began on which a decision hung, and the code that it hangs on now.
_DECISIVE_IN_FORMAT_1 = {"full_page_writes = off": FULL_PAGE_WRITES_OFF}


@dataclass(frozen=True)
class Reason:
    """Why something is so."""

    code: str
    """what a program reads: stable words of the field with hyphens (`fsync-off`); `unclassified` where only the
    sentence is known"""
    sentence: str
    """what a person reads; its words may change"""
    values: Levels = field(default_factory=Levels)
    """values of the sentence that are worth reading apart, by name; may be empty"""

    def __str__(self) -> str:
        return self.sentence

    def about(self, subject: str) -> Reason:
        """The same, said of something by its name."""
        return replace(self, sentence=f"{subject}: {self.sentence}")


def because(code: str, sentence: str, **values: Scalar | None) -> Reason:
    """A reason with its values; those that are None or no finite number are left out, as a study holds none."""
    known = {name: value for name, value in values.items() if value is not None}
    finite = {k: v for k, v in known.items() if not isinstance(v, float) or math.isfinite(v)}
    return Reason(code, sentence, Levels(finite))


def of_format_1(sentence: str) -> Reason:
    """The reason that a study of format 1 has as its sentence alone."""
    found = (code for words, code in _DECISIVE_IN_FORMAT_1.items() if sentence.startswith(words))
    return Reason(next(found, UNCLASSIFIED), sentence)


def reasons_of(error: BedplateError) -> tuple[Reason, ...]:
    """Why an error was raised; a reason that it was given as a sentence has the code of its class."""
    return tuple(each if isinstance(each, Reason) else Reason(error.code, each) for each in error.given)


def sentences(reasons: Iterable[Reason]) -> tuple[str, ...]:
    """What people read of them."""
    return tuple(reason.sentence for reason in reasons)


def distinct(reasons: Iterable[Reason]) -> tuple[Reason, ...]:
    """Each sentence once, where it was first said. Of one that some visits have a code for and older ones have not, the code."""
    found: dict[str, Reason] = {}
    for reason in reasons:
        known = found.setdefault(reason.sentence, reason)
        if known.code == UNCLASSIFIED:
            found[reason.sentence] = reason
    return tuple(found.values())


def joined(reasons: Iterable[Reason]) -> Reason:
    """Several as one, in one sentence; ValueError where there is none. It has the code of the first."""
    first, *others = reasons
    return replace(first, sentence="; ".join(map(str, (first, *others))))


def pages_unmended(reasons: Iterable[Reason]) -> str | None:
    """Which copies of its pages an engine does without, by the code of the reason; None where it keeps all."""
    given = [reason.code for reason in reasons]
    return next((code for code in PAGES_UNMENDED if code in given), None)


def is_given(code: str, reasons: Iterable[Reason]) -> bool:
    """Whether one of them has this code."""
    return any(reason.code == code for reason in reasons)


def sudo_caller() -> tuple[int, int] | None:
    """User and group of who called sudo; None without sudo, and where root called it."""
    if os.geteuid() != 0:
        return None
    try:
        uid, gid = int(os.environ["SUDO_UID"]), int(os.environ["SUDO_GID"])
    except (KeyError, ValueError):
        return None
    return (uid, gid) if uid > 0 and gid >= 0 else None
