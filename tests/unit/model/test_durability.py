"""The declared durability class follows from flushes and settings, and says why."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bedplate.model.durability import Commits, FilesystemPromise, declared, lowered_by
from bedplate.model.visit import Durability, FlushCount

SAFE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
FLUSHING = (FlushCount("data", "appending", 50, 100), FlushCount("data", "overwriting", 50, 50))
SILENT = (FlushCount("data", "appending", 50, 0), FlushCount("data", "overwriting", 50, 0))


@pytest.mark.parametrize(
    ("counts", "settings", "volatile", "protected"),
    [
        (FLUSHING, {}, "durable", "durable"),
        (SILENT, {}, "unsafe", "durable"),
        (FLUSHING, {"fsync": "off"}, "unsafe", "unsafe"),
        (FLUSHING, {"synchronous_commit": "off"}, "bounded loss", "bounded loss"),
        (SILENT, {"synchronous_commit": "off"}, "unsafe", "bounded loss"),
        (FLUSHING, {"full_page_writes": "off"}, "unsafe", "unknown"),
        ((), {}, "unknown", "unknown"),
        # What a setting allows needs no count of flushes, as with InnoDB's double writing.
        ((), {"full_page_writes": "off"}, "unsafe", "unknown"),
    ],
)
def test_the_class_follows_from_flushes_and_settings(
    counts: tuple[FlushCount, ...], settings: dict[str, str], volatile: str, protected: str
) -> None:
    found = declared(FilesystemPromise(counts), {**SAFE, **settings})
    assert (volatile, protected) == (found.volatile_cache, found.protected_cache)


def test_a_flush_of_the_journal_alone_is_not_called_durable() -> None:
    counts = (
        FlushCount("data", "appending", 50, 0),
        FlushCount("journal", "appending", 50, 100),
        FlushCount("data", "overwriting", 50, 0),
        FlushCount("journal", "overwriting", 50, 100),
    )
    found = declared(FilesystemPromise(counts), SAFE)
    assert ("unsafe", "durable") == (found.volatile_cache, found.protected_cache)
    assert any("data device" in reason.sentence for reason in found.reasons)


@pytest.mark.parametrize(
    ("data", "journal", "holds_data", "volatile"),
    [
        # Overwrites of ext4 with an external journal: up to 6.12, since, and with data=journal.
        (0, 100, False, "unsafe"),
        (50, 100, False, "durable"),
        (0, 100, True, "durable"),
        (4, 49, True, "unsafe"),
        (0, 0, True, "unsafe"),
    ],
)
def test_which_device_was_flushed_decides_unless_the_journal_holds_the_data(
    data: int, journal: int, holds_data: bool, volatile: str
) -> None:
    counts = (
        FlushCount("data", "appending", 50, 50),
        FlushCount("journal", "appending", 50, 50),
        FlushCount("data", "overwriting", 50, data),
        FlushCount("journal", "overwriting", 50, journal),
    )
    assert volatile == declared(FilesystemPromise(counts, journal_holds_data=holds_data), SAFE).volatile_cache


def test_a_journal_in_memory_survives_no_cut_on_any_cache() -> None:
    counts = (*FLUSHING, *(FlushCount("journal", count.pattern, 50, 100) for count in FLUSHING))
    found = declared(FilesystemPromise(counts, journal_in_memory=True), {**SAFE, "fsync": "off"})
    assert ("unsafe", "unsafe") == (found.volatile_cache, found.protected_cache)
    assert 2 == len(found.reasons)


def test_flushes_while_appending_do_not_excuse_overwrites() -> None:
    counts = (FlushCount("data", "appending", 50, 100), FlushCount("data", "overwriting", 50, 0))
    assert "unsafe" == declared(FilesystemPromise(counts), SAFE).volatile_cache


def test_a_file_system_without_a_journal_says_that_it_needs_fsck() -> None:
    found = declared(FilesystemPromise(FLUSHING, checked_by_fsck=True), SAFE)
    assert any("fsck" in reason.sentence for reason in found.reasons)


@pytest.mark.parametrize(
    ("flushes", "settings", "volatile", "protected"),
    [
        (True, {}, "bounded loss", "bounded loss"),
        (False, {}, "unsafe", "bounded loss"),
        (True, {"fsync": "off"}, "unsafe", "unsafe"),
        (True, {"full_page_writes": "off"}, "unsafe", "unknown"),
    ],
)
def test_a_pool_that_delays_fsync_loses_its_last_seconds(
    flushes: bool, settings: dict[str, str], volatile: str, protected: str
) -> None:
    filesystem = FilesystemPromise(SILENT, rolls_back_whole=True, flushes_when_delayed=flushes)
    found = declared(filesystem, {**SAFE, **settings})
    assert (volatile, protected) == (found.volatile_cache, found.protected_cache)


@pytest.mark.parametrize(
    ("whole", "journal", "classes"),
    [
        (True, 50, ("bounded loss", "bounded loss")),
        (True, 0, ("unsafe", "bounded loss")),
        (False, 50, ("unsafe", "unsafe")),
    ],
)
def test_a_log_in_memory_costs_seconds_where_the_rest_is_whole(
    whole: bool, journal: int, classes: tuple[str, str]
) -> None:
    counts = tuple(
        FlushCount(device, pattern, 50, flushes)
        for pattern in ("appending", "overwriting")
        for device, flushes in (("data", 0), ("journal", journal))
    )
    filesystem = FilesystemPromise(
        counts, journal_holds_data=True, journal_in_memory=True, rolls_back_whole=whole
    )
    found = declared(filesystem, SAFE)
    assert classes == (found.volatile_cache, found.protected_cache)


def test_all_reasons_are_told_at_once_and_none_hides_what_is_certain() -> None:
    counts = (
        FlushCount("data", "appending", 50, 0),
        FlushCount("journal", "appending", 50, 100),
        FlushCount("data", "overwriting", 50, 0),
        FlushCount("journal", "overwriting", 50, 0),
    )
    filesystem = FilesystemPromise(counts, journal_in_memory=True, checked_by_fsck=True)
    found = declared(filesystem, {**SAFE, "full_page_writes": "off"})
    assert ("unsafe", "unsafe") == (found.volatile_cache, found.protected_cache)
    told = (
        "memory",
        "0 flushes of the data device",
        "0 flushes in 50 overwriting",
        "full_page_writes",
        "fsck",
    )
    assert all(any(words in reason.sentence for reason in found.reasons) for words in told)
    nothing_counted = declared(FilesystemPromise(()), {**SAFE, "fsync": "off"})
    assert ("unsafe", "unsafe") == (nothing_counted.volatile_cache, nothing_counted.protected_cache)


SERVER = {**SAFE, "wal_sync_method": "fdatasync"}
LOGGED = (*FLUSHING, FlushCount("data", "logging", 50, 50))
DURABLE = declared(FilesystemPromise(LOGGED), SERVER)


def commits(transactions: int | None = 6000, **found: Any) -> Commits:
    return Commits(
        **{
            "run": "own",
            "clients": 4,
            "transactions": transactions,
            "flushes": 6000.0,
            "wal_syncs": 6000.0,
            "settings": SERVER,
            **found,
        }
    )


def classes(found: Durability) -> tuple[str, str]:
    return found.volatile_cache, found.protected_cache


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (commits(), "durable"),
        # The most that can share a flush.
        (commits(flushes=1500.0, wal_syncs=1500.0), "durable"),
        (commits(flushes=1300.0), "unknown"),
        (commits(wal_syncs=1300.0), "unknown"),
        (commits(flushes=10.0, wal_syncs=10.0, clients=1), "unknown"),
        # As the audit measured it: 0.0017 flushes per transaction at 4,241 tps.
        (commits(42_410, flushes=72.0, wal_syncs=72.0), "unknown"),
        # Who only reads needs no flush, and neither does what is not counted.
        (commits(0, flushes=0.0, wal_syncs=0.0), "durable"),
        (commits(None, flushes=0.0, wal_syncs=0.0), "durable"),
        (commits(flushes=None, wal_syncs=None), "durable"),
        # Syncs by open(2)'s flags are no calls.
        (commits(wal_syncs=0.0, settings={**SERVER, "wal_sync_method": "open_datasync"}), "durable"),
        (commits(settings={**SERVER, "synchronous_commit": "off"}), "bounded loss"),
        (commits(sets_asynchronous=True), "bounded loss"),
        (commits(unlogged="public.t"), "unsafe"),
        (commits(settings={**SERVER, "fsync": "off"}), "unsafe"),
    ],
)
def test_a_run_lowers_the_class_where_it_did_not_wait_or_was_told_not_to(run: Commits, expected: str) -> None:
    found = lowered_by(DURABLE, run, LOGGED, SERVER)
    assert (expected, expected) == classes(found)
    assert (expected == "durable") == (found.by_runs == ())
    assert all(
        reason in found.reasons and reason.sentence.startswith("run own: ") for reason in found.by_runs
    )


@pytest.mark.parametrize("setting", ["fsync", "full_page_writes"])
def test_a_run_whose_settings_allow_damage_is_unsafe_where_no_flush_was_counted(setting: str) -> None:
    unknown = declared(FilesystemPromise(()), SERVER)
    found = lowered_by(unknown, commits(settings={**SERVER, setting: "off"}), (), SERVER)
    assert "unsafe" == found.volatile_cache
    assert "unknown" == lowered_by(unknown, commits(), (), SERVER).volatile_cache


def test_a_run_lowers_the_class_of_small_sectors_as_well() -> None:
    measured = replace(DURABLE, volatile_cache_512="durable")
    run = commits(settings={**SERVER, "synchronous_commit": "off"})
    assert "bounded loss" == lowered_by(measured, run, LOGGED, SERVER).volatile_cache_512


def test_the_refusal_has_the_numbers() -> None:
    (reason,) = lowered_by(DURABLE, commits(42_410, flushes=72.0, wal_syncs=72.0), LOGGED, SERVER).by_runs
    assert "72 flushes of the device for 42410 transactions that wrote, 0.0017 each" in reason.sentence
    assert "4 clients" in reason.sentence
    assert "0.25 or more" in reason.sentence


def test_without_barriers_flushes_prove_nothing_and_syncs_of_the_wal_do() -> None:
    silent = (*SILENT, FlushCount("data", "logging", 50, 0))
    unflushed = declared(FilesystemPromise(silent), SERVER)
    assert ("unsafe", "durable") == classes(lowered_by(unflushed, commits(flushes=0.0), silent, SERVER))
    found = lowered_by(unflushed, commits(flushes=0.0, wal_syncs=10.0), silent, SERVER)
    assert ("unknown", "unknown") == classes(found)


def test_what_the_server_was_told_already_is_not_told_again_by_each_run() -> None:
    server = {**SERVER, "synchronous_commit": "off"}
    asynchronous = declared(FilesystemPromise(LOGGED), server)
    run = commits(flushes=10.0, wal_syncs=10.0, settings=server, sets_asynchronous=True)
    assert asynchronous == lowered_by(asynchronous, run, LOGGED, server)


def test_what_a_role_was_set_to_is_named() -> None:
    run = commits(
        settings={**SERVER, "synchronous_commit": "off"},
        roles="every database for client: synchronous_commit=off",
    )
    (reason,) = lowered_by(DURABLE, run, LOGGED, SERVER).by_runs
    assert "(set for every database for client: synchronous_commit=off)" in reason.sentence
