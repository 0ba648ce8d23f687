"""The durability class that a visit declares: its engine's, and what a run's sessions leave of it."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from bedplate import registry
from bedplate.cuts.records import PageCounts
from bedplate.errors import RequirementMissing
from bedplate.host.command import Account
from bedplate.model.cell import BY_TEST, UNTORN_OFF, UNTORN_ON, Cell, EngineModel
from bedplate.model.durability import (
    SESSION_SETTINGS,
    Commits,
    FilesystemPromise,
    declared,
    lowered_by,
    lowered_to,
)
from bedplate.model.filesystem import FilesystemTraits
from bedplate.model.levels import Levels, Scalar
from bedplate.model.reason import Reason, because
from bedplate.model.visit import Durability, FlushCount, ReadBack, RunRecord, Sample
from bedplate.visit.recording import Driver
from bedplate.visit.server import ServerSite

if TYPE_CHECKING:
    from bedplate.visit.life import Findings

# Facts of a run of a library: of its tests whose commits wait, the one that lacked the most flushes. And of a run of an own
# engine that promises to be durable, with the clients that may share one.
WAITING_TEST, WAITING_COMMITS, WAITING_FLUSHES = "waiting_test", "waiting_commits", "waiting_flushes"

WAITING_CLIENTS = "waiting_clients"

_FLUSHES = ("device.flushes", "journal_device.flushes")


class EngineDurability(Protocol):
    """The role `durability` of an engine: the class of its commits, from the flushes that were counted and its settings."""

    def opened(self, settings: Levels) -> Sequence[ReadBack]:  # noqa: ARG002 -- a server is asked
        """How it is opened, where no server shows it: `settings` are the cell's."""
        return ()

    def declare(
        self, settings: Levels, server_settings: Mapping[str, str], filesystem: FilesystemPromise
    ) -> Durability:
        """The declared class; `server_settings` are a server's as it shows them, empty where there is none."""


@dataclass(frozen=True)
class DurabilityInForce(EngineDurability):
    """Of an engine whose cells say nothing more than what is in force: `class_of` makes the class, of the file system's promise and a server's settings."""

    class_of: Callable[[FilesystemPromise, Mapping[str, str]], Durability]

    def declare(
        self,
        settings: Levels,  # noqa: ARG002 -- what is in force counts
        server_settings: Mapping[str, str],
        filesystem: FilesystemPromise,
    ) -> Durability:
        """By what is in force."""
        return self.class_of(filesystem, server_settings)


class Lowered(Protocol):
    """The best class that a library's settings allow, and why; None where they take nothing away."""

    def __call__(self, mode: str, settings: Levels, *, keeps_write_order: bool) -> tuple[str, Reason] | None:
        """`mode` is how a commit waits; the file system keeps the order of writes, or not."""


@runtime_checkable
class DurabilityOfCells(Protocol):
    """The role of an engine of which each cell says itself what it promises."""

    def of(self, cell: Cell) -> EngineDurability:
        """What the cell's engine promises."""


@dataclass(frozen=True)
class LibraryDurability(EngineDurability):
    """Of a library that each test opens, whose commits may wait in two ways.

    Records name a setting behind `prefix`; `shown` are those that are told of, by the cell's, and `source` is who is told them. `lowered` is
    the best class that a mode of commits and the settings allow, and why; None where they take nothing away.
    """

    model: EngineModel
    prefix: str
    shown: Callable[[Levels], Mapping[str, Scalar]]
    source: str
    lowered: Lowered

    def opened(self, settings: Levels) -> Sequence[ReadBack]:
        """How it is opened; each test is held against what the library answers."""
        return [
            ReadBack(f"{self.prefix}.{name}", settings.get(name), value, self.source, matches=None)
            for name, value in self.shown(settings).items()
        ]

    def declare(
        self,
        settings: Levels,
        server_settings: Mapping[str, str],  # noqa: ARG002 -- there is no server
        filesystem: FilesystemPromise,
    ) -> Durability:
        """By the mode; of `by-test` that of the synchronous tests, with that of the others."""
        of_filesystem = declared(filesystem)

        def of(mode: str) -> Durability:
            best = self.lowered(mode, settings, keeps_write_order=filesystem.keeps_write_order)
            return of_filesystem if best is None else lowered_to(of_filesystem, best[0], *best)

        return _of_each_test(self.model, settings, of)


def _of_each_test(model: EngineModel, settings: Levels, of: Callable[[str], Durability]) -> Durability:
    """The class of commits that wait as the settings say (`of`); left to the tests, that of those named sync beside the others'."""
    if (settings.text(model.commit_setting) or BY_TEST) != BY_TEST:
        return of(model.commit_mode(settings))
    modes = [model.commit_mode(settings, synchronous=synchronous) for synchronous in (True, False)]
    synchronous, others = map(of, modes)
    words = (
        f"{model.commit_setting} = {BY_TEST}: this holds for the tests named sync; the others commit with {modes[1]}, and are "
        f"{others.volatile_cache} with a volatile cache, {others.protected_cache} with a protected one"
    )
    reason = because("sync-by-test", words)
    return replace(synchronous, reasons=(*synchronous.reasons, reason), without_waiting=others)


def durability_of(cell: Cell) -> EngineDurability:
    """That of a cell's engine; PlanError lists the known ones."""
    durability: EngineDurability | DurabilityOfCells = registry.engine_part(cell.build.engine, "durability")
    return durability.of(cell) if isinstance(durability, DurabilityOfCells) else durability


def declare(
    cell: Cell,
    traits: FilesystemTraits,
    comparisons: Sequence[ReadBack],
    flush_counts: tuple[FlushCount, ...],
    server_settings: Mapping[str, str],
    *,
    journal_in_memory: bool,
) -> Durability:
    """The class of a cell, from what was read back and counted, and from what its engine is told."""
    in_force = {item.name: item.effective for item in comparisons}
    journals_data = in_force.get("filesystem.data") == "journal"
    delayed = in_force.get("filesystem.sync") == "disabled"
    filesystem = FilesystemPromise(
        flush_counts,
        checked_by_fsck=traits.checked_by_fsck(cell.filesystem.journal),
        journal_holds_data=traits.journal_holds_data or journals_data,
        journal_in_memory=journal_in_memory,
        rolls_back_whole=traits.rolls_back_whole,
        flushes_when_delayed=in_force.get("filesystem.barrier") is True if delayed else None,
        keeps_write_order=traits.rolls_back_whole or journals_data,
    )
    return durability_of(cell).declare(cell.cluster.settings, server_settings, filesystem)


def after_run(findings: Findings, record: RunRecord, server_settings: Mapping[str, str]) -> Durability | None:
    """The class of a visit after one of its runs, whose commits may have waited for less than is declared.

    Of a server, whose sessions and scripts may set something else; of a library or an own engine by the flushes that commits had.
    """
    facts, durability, flush_counts = record.facts, findings.durability, findings.flush_counts
    if durability is None:
        return None
    if WAITING_COMMITS in facts:
        # An engine with files of O_DIRECT and O_DSYNC has writes of such a device that need no flush. The libraries have none.
        needs_none = WAITING_CLIENTS in facts and bool(findings.device_facts.integer("fua"))
        if needs_none:
            return durability
        return lowered_by(durability, _counted(record), flush_counts, server_settings)
    if not any(name.startswith("session_") for name in facts):
        return durability
    transactions = facts.get("writing_transactions")
    commits = Commits(
        run=record.spec.name,
        clients=int(facts.get("clients") or 1),
        transactions=None if transactions is None else int(transactions),
        flushes=None
        if record.before is None or record.after is None
        else flushes_between(record.before, record.after),
        wal_syncs=None if "wal_syncs" not in facts else float(facts["wal_syncs"]),
        settings={
            name: str(facts[f"session_{name}"]) for name in SESSION_SETTINGS if f"session_{name}" in facts
        },
        roles=str(facts.get("role_settings") or ""),
        unlogged=str(facts.get("unlogged_tables_written") or ""),
        sets_asynchronous=bool(facts.get("script_sets_synchronous_commit_off")),
        has_temporary=bool(facts.get("script_has_temporary_tables")),
    )
    return lowered_by(durability, commits, flush_counts, server_settings)


def _counted(record: RunRecord) -> Commits:
    """Of a library one writer has the database at a time, whoever commits: no two commits share a flush."""
    return Commits(
        run=", ".join(
            [record.spec.name, *([str(record.facts[WAITING_TEST])] if WAITING_TEST in record.facts else [])]
        ),
        clients=int(record.facts.get(WAITING_CLIENTS) or 1),
        transactions=int(record.facts[WAITING_COMMITS]),
        flushes=float(record.facts[WAITING_FLUSHES]),
        wal_syncs=None,
        settings={},
    )


def flushes_between(before: Sample, after: Sample) -> float | None:
    """Of the data device and the journal's, where there is one; None where they were not counted."""
    name, *also = _FLUSHES
    if name not in before.values or name not in after.values:
        return None
    return sum(
        after.values[each] - before.values[each]
        for each in (name, *also)
        if each in before.values and each in after.values
    )


UNTORN_SHIM = Driver("untorn_writes", is_preloaded=True)

# In the order of `enum count` in drivers/untorn_writes.c.
_COUNTED = ("atomic", "plain", "extensions", "split_calls", "no_pages", "buffered")

_REFUSED = ("EINVAL", "EOPNOTSUPP", "ENOSPC")
_FORMAT = struct.Struct(f"={len(_COUNTED) + len(_REFUSED)}Q")


@dataclass(frozen=True)
class UntornWrites:
    """The library in one server: `mode` is the cell's level, `counts` the file of what it counts."""

    library: Path
    counts: Path
    page_bytes: int
    mode: str

    @property
    def environment(self) -> Mapping[str, str]:
        """What the server is started with."""
        return {
            "LD_PRELOAD": str(self.library),
            "BEDPLATE_UNTORN_COUNTS": str(self.counts),
            "BEDPLATE_UNTORN_PAGE_BYTES": str(self.page_bytes),
            "BEDPLATE_UNTORN_WRITES": self.mode,
        }

    def below(self, site: ServerSite) -> ServerSite:
        """The same site of a server that has the library."""
        return replace(site, environment=self.environment, writable=(self.counts,), readable=(self.library,))

    def counted(self) -> PageCounts:
        """Until now."""
        numbers = _FORMAT.unpack(self.counts.read_bytes()[: _FORMAT.size])
        named = dict(zip((*_COUNTED, *_REFUSED), numbers, strict=True))
        return PageCounts(
            **{name: named[name] for name in _COUNTED},
            refused={name: named[name] for name in _REFUSED if named[name]},
        )

    def refusal(self) -> Reason | None:
        """Why what the server did is no measurement of untorn writes; None where each page was written so, or none was asked to."""
        counts = self.counted()
        if counts.is_empty:
            words = f"untorn_writes = {self.mode}: the preloaded library counted no write at all, as if no server had it"
            return because("pages-not-counted", words)
        if self.mode != UNTORN_ON or counts.refusal is None:
            return None
        words = f"untorn_writes = on: {counts.refusal}"
        return because("pages-refused", words, refused=counts.refusals, pages=counts.atomic + counts.refusals)


def untorn_writes(
    cell: Cell, native_drivers: Mapping[str, str], path: Path, account: Account
) -> UntornWrites | None:
    """The library for a server of the cell, its counts at 0 in the new file `path`; None where the cell asks for none."""
    mode, library = cell.cluster.untorn_writes, native_drivers.get(UNTORN_SHIM.name)
    return preloaded(mode, library, cell.database_block_bytes, path, account)


def preloaded(
    mode: str, library: str | None, page_bytes: int | None, path: Path, account: Account
) -> UntornWrites | None:
    """The same for a server with pages of that size, by the cell's level `mode`."""
    if mode == UNTORN_OFF:
        return None
    if library is None or page_bytes is None:
        raise RequirementMissing(
            f"the request names no driver {UNTORN_SHIM.name}; `bedplate doctor PLAN --install` builds it"
        )
    path.write_bytes(bytes(_FORMAT.size))
    path.chmod(0o600)
    shutil.chown(path, account.uid, account.gid)
    return UntornWrites(Path(library), path, page_bytes, mode)
