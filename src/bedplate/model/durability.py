"""The declared durability class: what flushes and settings promise, before any power is cut.

Rules, each with its source:
- PostgreSQL, "Reliability" and "Asynchronous Commit": `fsync=off` promises nothing after an
  operating-system crash; `synchronous_commit=off` loses the last commits and stays consistent;
  `full_page_writes=off` is unsafe wherever a page can be torn.
- A commit is on the medium only after a flush of the device's volatile cache
  (Documentation/block/writeback_cache_control.rst), so an fsync that reaches the device without a
  flush is worth nothing on a volatile cache and everything on a protected one.
- A flush of an external journal's device brings only that device's cache to the medium. What fsync
  promises is safe with it where the journal holds the data too (`data=journal`, a log of ZFS), and
  else stands in the cache of the data device.
- A journal in memory is gone after a power cut, and what it had not yet handed on with it.
- ZFS goes back to its last transaction group as a whole (zfsconcepts(7); zfsprops(7), `sync`), which is
  to a server as if the power had gone some seconds earlier: bounded loss, if the group was flushed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.model.visit import Durability, FlushCount

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

DURABLE = "durable"
BOUNDED_LOSS = "bounded loss"
UNSAFE = "unsafe"
UNKNOWN = "unknown"
# Of the setting, as reasons begin with it; what cuts measure of such a cell is held against it.
FULL_PAGE_WRITES_OFF = "full_page_writes = off"
# From best to worst; `unknown` stands last because nothing may be built on it.
CLASSES = (DURABLE, BOUNDED_LOSS, UNSAFE, UNKNOWN)


def declared(
    flush_counts: Iterable[FlushCount],
    settings: Mapping[str, str],
    *,
    checked_by_fsck: bool = False,
    journal_holds_data: bool = False,
    journal_in_memory: bool = False,
    rolls_back_whole: bool = False,
    flushes_when_delayed: bool | None = None,
) -> Durability:
    """The class that the counted flushes and the engine's effective settings declare.

    `settings` are read back from the server, by name. `checked_by_fsck` marks file systems without
    a journal, whose repair after each cut is not modelled here. `journal_holds_data` and
    `journal_in_memory` speak of an external journal. `rolls_back_whole` marks a file system that
    returns to one of its last moments; `flushes_when_delayed` is None while fsync waits, else whether
    such a moment is flushed.
    """
    counts = tuple(flush_counts)
    reasons: list[str] = []
    if settings.get("fsync") == "off":
        reasons.append("fsync = off: the operating system may lose what the server believes written")
    if journal_in_memory and not rolls_back_whole:
        reasons.append("the journal stands in memory: a power cut takes it, and what only it holds")
    # Nothing that follows makes it better, or less certain; it is told all the same.
    certainly_unsafe = bool(reasons)
    if flushes_when_delayed is None:
        volatile, protected = _by_flushes(counts, reasons, journal_holds_data=journal_holds_data)
    else:
        reasons.append("fsync waits for nothing: the last seconds may be lost, what stays is whole")
        volatile, protected = BOUNDED_LOSS if flushes_when_delayed else UNSAFE, BOUNDED_LOSS
    if journal_in_memory and rolls_back_whole:
        reasons.append("the log stands in memory: a power cut takes the last seconds, what stays is whole")
        volatile, protected = worst(volatile, BOUNDED_LOSS), worst(protected, BOUNDED_LOSS)
    if settings.get("full_page_writes") == "off":
        reasons.append(f"{FULL_PAGE_WRITES_OFF}: a page torn by the cut cannot be repaired from the WAL")
        volatile = worst(volatile, UNSAFE)
        protected = worst(protected, UNKNOWN)
    if settings.get("synchronous_commit") == "off":
        reasons.append("synchronous_commit = off: the last commits may be lost, what stays is whole")
        volatile, protected = worst(volatile, BOUNDED_LOSS), worst(protected, BOUNDED_LOSS)
    if checked_by_fsck:
        reasons.append("no journal: the file system needs fsck after every cut")
    if certainly_unsafe:
        volatile = protected = UNSAFE
    return Durability(volatile, protected, "declared", tuple(reasons))


def worst(first: str, second: str) -> str:
    """The class that promises less."""
    return max(first, second, key=CLASSES.index)


def _by_flushes(
    counts: tuple[FlushCount, ...], reasons: list[str], *, journal_holds_data: bool
) -> tuple[str, str]:
    if not counts:
        reasons.append("no flushes were counted")
        return UNKNOWN, UNKNOWN
    found = len(reasons)
    for pattern in sorted({count.pattern for count in counts}):
        here = [count for count in counts if count.pattern == pattern]
        calls, flushes = here[0].calls, sum(count.flushes for count in here)
        if flushes < calls:
            reasons.append(f"{flushes} flushes in {calls} {pattern} syncs: a volatile cache may lose them")
            continue
        data = sum(count.flushes for count in here if count.device == "data")
        if data < calls and not (journal_holds_data and flushes - data >= calls):
            reasons.append(
                f"{data} flushes of the data device in {calls} {pattern} syncs, the others went to the "
                f"journal's: what was written in place may be lost from a volatile cache"
            )
    return (UNSAFE if len(reasons) > found else DURABLE), DURABLE
