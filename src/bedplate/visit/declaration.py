"""The durability class that a visit declares: of its server, of LMDB's environment, or of files alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bedplate.engine import lmdb_durability
from bedplate.engine.lmdb_durability import LmdbFlags
from bedplate.model.durability import SESSION_SETTINGS, Commits, declared, lowered_by
from bedplate.model.engines import LMDB
from bedplate.model.lmdb import BY_TEST, settings_in_force
from bedplate.model.visit import Comparison, Durability

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypedDict

    from bedplate.model.cell import Cell
    from bedplate.model.filesystem import FilesystemTraits
    from bedplate.model.levels import Levels, Scalar
    from bedplate.model.visit import FlushCount, RunRecord

    class _Promises(TypedDict):
        checked_by_fsck: bool
        journal_holds_data: bool
        journal_in_memory: bool
        rolls_back_whole: bool
        flushes_when_delayed: bool | None


def declare(
    cell: Cell,
    traits: FilesystemTraits,
    comparisons: Sequence[Comparison],
    flush_counts: tuple[FlushCount, ...],
    server_settings: Mapping[str, str],
    *,
    journal_in_memory: bool,
) -> Durability:
    """The class of a cell, from what was read back and counted, and from what its engine is told.

    Without an engine it speaks of what was fsynced, and of nothing else.
    """
    in_force = {item.name: item.effective for item in comparisons}
    promises = _promises(cell, traits, in_force, journal_in_memory=journal_in_memory)
    if cell.build.has_postgresql:
        return declared(flush_counts, server_settings, **promises)
    if cell.build.engine == LMDB:
        keeps_order = traits.rolls_back_whole or in_force.get("filesystem.data") == "journal"
        return _of_lmdb(cell.cluster.settings, flush_counts, promises, keeps_write_order=keeps_order)
    found = declared(flush_counts, {}, **promises)
    only = "no engine: this holds for what was fsynced, and for nothing that was only written"
    return replace(found, reasons=(*found.reasons, only))


def after_run(
    durability: Durability | None,
    run: RunRecord,
    flush_counts: tuple[FlushCount, ...],
    server_settings: Mapping[str, str],
) -> Durability | None:
    """The class of a visit after one of its runs, whose script and sessions may promise less than the server."""
    if durability is None or not any(name.startswith("session_") for name in run.facts):
        return durability
    facts = run.facts
    transactions = facts.get("writing_transactions")
    commits = Commits(
        run=run.spec.name,
        clients=int(facts.get("clients") or 1),
        transactions=None if transactions is None else int(transactions),
        flushes=_grown(run, "device.flushes", "journal_device.flushes"),
        wal_syncs=None if "wal_syncs" not in facts else float(facts["wal_syncs"]),
        settings={
            name: str(facts[f"session_{name}"]) for name in SESSION_SETTINGS if f"session_{name}" in facts
        },
        roles=str(facts.get("role_settings") or ""),
        unlogged=str(facts.get("unlogged_tables_written") or ""),
        sets_asynchronous=bool(facts.get("script_sets_synchronous_commit_off")),
    )
    return lowered_by(durability, commits, flush_counts, server_settings)


def _grown(run: RunRecord, name: str, *also: str) -> float | None:
    """How much a counter grew over the measured window, with those of `also` that there are."""
    if run.before is None or run.after is None:
        return None
    before, after = run.before.values, run.after.values
    if name not in before or name not in after:
        return None
    return sum(after[each] - before[each] for each in (name, *also) if each in before and each in after)


def lmdb_settings(asked: Levels) -> list[Comparison]:
    """How LMDB's environment is opened; each run holds what the driver says it was told against it."""
    return [
        Comparison(f"lmdb.{name}", asked.get(name), value, "the LMDB driver's options", matches=None)
        for name, value in settings_in_force(asked).items()
    ]


def _promises(
    cell: Cell, traits: FilesystemTraits, in_force: Mapping[str, Scalar | None], *, journal_in_memory: bool
) -> _Promises:
    delayed = in_force.get("filesystem.sync") == "disabled"
    return {
        "checked_by_fsck": traits.checked_by_fsck(cell.filesystem.journal),
        "journal_holds_data": traits.journal_holds_data or in_force.get("filesystem.data") == "journal",
        "journal_in_memory": journal_in_memory,
        "rolls_back_whole": traits.rolls_back_whole,
        "flushes_when_delayed": in_force.get("filesystem.barrier") is True if delayed else None,
    }


def _of_lmdb(
    settings: Levels, flush_counts: tuple[FlushCount, ...], promises: _Promises, *, keeps_write_order: bool
) -> Durability:
    in_force = settings_in_force(settings)
    sync, writemap = in_force.text("sync") or BY_TEST, in_force.flag("writemap") is True

    def of(mode: str) -> Durability:
        return lmdb_durability.declared(
            flush_counts, LmdbFlags(mode, writemap), keeps_write_order=keeps_write_order, **promises
        )

    if sync != BY_TEST:
        return of(sync)
    synchronous, others = of(lmdb_durability.FULL), of(lmdb_durability.NOSYNC)
    words = (
        f"sync = {BY_TEST}: this holds for the tests named sync; the others commit with nosync, and are "
        f"{others.volatile_cache} with a volatile cache, {others.protected_cache} with a protected one"
    )
    return replace(synchronous, reasons=(*synchronous.reasons, words), without_waiting=others)
