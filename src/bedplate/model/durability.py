"""The declared durability class: what flushes and settings promise, before any power is cut.

Rules, each with its source:
- PostgreSQL, "Reliability" and "Asynchronous Commit": `fsync=off` promises nothing after an
  operating-system crash; `synchronous_commit=off` loses the last commits and stays consistent;
  `full_page_writes=off` is unsafe wherever a page can be torn.
- A commit is on the medium only after a flush of the device's volatile cache
  (Documentation/block/writeback_cache_control.rst), so an fsync that reaches the device without a
  flush is worth nothing on a volatile cache and everything on a protected one.
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
# From best to worst; `unknown` stands last because nothing may be built on it.
CLASSES = (DURABLE, BOUNDED_LOSS, UNSAFE, UNKNOWN)


def declared(
    flush_counts: Iterable[FlushCount], settings: Mapping[str, str], *, checked_by_fsck: bool = False
) -> Durability:
    """The class that the counted flushes and the engine's effective settings declare.

    `settings` are read back from the server, by name. `checked_by_fsck` marks file systems without
    a journal, whose repair after each cut is not modelled here.
    """
    counts = tuple(flush_counts)
    if settings.get("fsync") == "off":
        reason = "fsync = off: the operating system may lose what the server believes written"
        return Durability(UNSAFE, UNSAFE, "declared", (reason,))
    reasons: list[str] = []
    volatile, protected = _by_flushes(counts, reasons)
    if settings.get("full_page_writes") == "off":
        reasons.append("full_page_writes = off: a page torn by the cut cannot be repaired from the WAL")
        volatile = worst(volatile, UNSAFE)
        protected = worst(protected, UNKNOWN)
    if settings.get("synchronous_commit") == "off":
        reasons.append("synchronous_commit = off: the last commits may be lost, what stays is whole")
        volatile, protected = worst(volatile, BOUNDED_LOSS), worst(protected, BOUNDED_LOSS)
    if checked_by_fsck:
        reasons.append("no journal: the file system needs fsck after every cut")
    return Durability(volatile, protected, "declared", tuple(reasons))


def worst(first: str, second: str) -> str:
    """The class that promises less."""
    return max(first, second, key=CLASSES.index)


def _by_flushes(counts: tuple[FlushCount, ...], reasons: list[str]) -> tuple[str, str]:
    if not counts:
        reasons.append("no flushes were counted")
        return UNKNOWN, UNKNOWN
    for pattern in sorted({count.pattern for count in counts}):
        here = [count for count in counts if count.pattern == pattern]
        calls, flushes = here[0].calls, sum(count.flushes for count in here)
        if flushes < calls:
            reasons.append(f"{flushes} flushes in {calls} {pattern} fsyncs: a volatile cache may lose them")
            return UNSAFE, DURABLE
        data = sum(count.flushes for count in here if count.device == "data")
        if data < calls:
            # An external journal took the flush: what was overwritten in place on the data device
            # is still in that device's cache when fsync returns.
            reasons.append(f"{data} flushes of the data device in {calls} {pattern} fsyncs")
            return UNKNOWN, DURABLE
    return DURABLE, DURABLE
