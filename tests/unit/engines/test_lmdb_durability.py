"""What LMDB's flags leave of the file system's promise, and why."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from bedplate.engines.lmdb.model import SYNC_MODES
from bedplate.engines.lmdb.visit import DURABILITY, lowered
from bedplate.model.durability import CLASSES, FilesystemPromise, declared
from bedplate.model.levels import Levels
from bedplate.model.visit import Durability, FlushCount

FLUSHING = (FlushCount("data", "appending", 50, 100), FlushCount("data", "overwriting", 50, 50))
SILENT = (FlushCount("data", "appending", 50, 0), FlushCount("data", "overwriting", 50, 0))


def opened_so(filesystem: FilesystemPromise, sync: str, *, writemap: bool) -> Durability:
    return DURABILITY.declare(Levels(sync=sync, writemap=writemap), {}, filesystem)


def classes(counts: tuple[FlushCount, ...], sync: str, *, writemap: bool, **words: Any) -> tuple[str, str]:
    found = opened_so(FilesystemPromise(counts, **words), sync, writemap=writemap)
    return found.volatile_cache, found.protected_cache


@pytest.mark.parametrize("writemap", [False, True])
@pytest.mark.parametrize(
    ("counts", "sync", "expected"),
    [
        (FLUSHING, "full", ("durable", "durable")),
        (SILENT, "full", ("unsafe", "durable")),
        ((), "full", ("unknown", "unknown")),
        (FLUSHING, "nometasync", ("bounded loss", "bounded loss")),
        (SILENT, "nometasync", ("unsafe", "bounded loss")),
        (FLUSHING, "nosync", ("unsafe", "unsafe")),
        (SILENT, "nosync", ("unsafe", "unsafe")),
        ((), "nosync", ("unsafe", "unsafe")),
    ],
)
def test_sync_modes_as_power_cuts_found_them(
    counts: tuple[FlushCount, ...], sync: str, writemap: bool, expected: tuple[str, str]
) -> None:
    assert expected == classes(counts, sync, writemap=writemap)


def test_mapasync_needs_a_map_to_be_written() -> None:
    assert ("unsafe", "unsafe") == classes(FLUSHING, "mapasync", writemap=True)
    assert ("durable", "durable") == classes(FLUSHING, "mapasync", writemap=False)


def test_kept_order_saves_nosync_but_not_through_a_map() -> None:
    words = {"keeps_write_order": True}
    assert ("bounded loss", "bounded loss") == classes(FLUSHING, "nosync", writemap=False, **words)
    assert ("unsafe", "bounded loss") == classes(SILENT, "nosync", writemap=False, **words)
    assert ("unsafe", "unsafe") == classes(FLUSHING, "nosync", writemap=True, **words)
    assert ("unsafe", "unsafe") == classes(FLUSHING, "mapasync", writemap=True, **words)


def test_a_journal_in_memory_is_told_beside_the_flags() -> None:
    filesystem = FilesystemPromise(FLUSHING, journal_in_memory=True)
    found = opened_so(filesystem, "nometasync", writemap=False)
    assert ("unsafe", "unsafe") == (found.volatile_cache, found.protected_cache)
    assert ["the journal is in memory", "sync = nometasync"] == [
        reason.sentence.split(":")[0] for reason in found.reasons
    ]


@pytest.mark.parametrize("sync", SYNC_MODES)
def test_flags_never_promise_more_than_the_file_system(sync: str) -> None:
    journals: tuple[dict[str, bool], ...] = ({}, {"journal_in_memory": True}, {"rolls_back_whole": True})
    for writemap, counts, journal in itertools.product(
        (False, True), (FLUSHING, SILENT, FLUSHING[:1]), journals
    ):
        filesystem = FilesystemPromise(counts, keeps_write_order=True, **journal)
        with_flags = opened_so(filesystem, sync, writemap=writemap)
        alone = declared(filesystem)
        assert CLASSES.index(with_flags.volatile_cache) >= CLASSES.index(alone.volatile_cache)
        assert CLASSES.index(with_flags.protected_cache) >= CLASSES.index(alone.protected_cache)
        assert "declared" == with_flags.basis
        assert set(alone.reasons) <= set(with_flags.reasons)
        assert with_flags.reasons or with_flags.volatile_cache == "durable"


def test_a_mode_that_lmdb_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="'by-test' is no mode"):
        lowered("by-test", Levels(), keeps_write_order=False)
