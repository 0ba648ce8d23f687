"""Reasons by which a story tells what settings took: the folders of engines make them, and each says what it leaves."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import pytest

from bedplate import registry
from bedplate.engines.lmdb.model import SYNC_MODES
from bedplate.engines.sqlite.model import JOURNAL_MODES, SYNCHRONOUS
from bedplate.model.durability import (
    BOUNDED_LOSS,
    OF_FILE_SYSTEM,
    UNSAFE,
    FilesystemPromise,
    takes_the_last,
)
from bedplate.model.levels import Levels
from bedplate.model.visit import FlushCount

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bedplate.visit.declaration import EngineDurability

FLUSHED = (FlushCount("data", "appending", 50, 50),)
PROMISES = {
    "flushed": FilesystemPromise(FLUSHED),
    "in order": FilesystemPromise(FLUSHED, keeps_write_order=True),
    "delayed": FilesystemPromise(FLUSHED, flushes_when_delayed=True),
    "log in memory": FilesystemPromise(FLUSHED, rolls_back_whole=True, journal_in_memory=True),
}


def settings() -> Iterator[tuple[str, Levels, Mapping[str, str]]]:
    """Of each engine with rules of its own all values that a rule reads: the cell's, and those that a server shows."""
    for synchronous, journal in product(SYNCHRONOUS, JOURNAL_MODES):
        yield "sqlite", Levels(synchronous=synchronous, journal_mode=journal), {}
    for sync, writemap in product(SYNC_MODES, (False, True)):
        yield "lmdb", Levels(sync=sync, writemap=writemap), {}
    for commit, twice in product("0123", ("ON", "OFF", "FAST", "odd")):
        shown = {"innodb_flush_log_at_trx_commit": commit, "innodb_doublewrite": twice}
        yield "mariadb", Levels(), shown
    for name in ("fsync", "synchronous_commit", "full_page_writes"):
        yield "postgresql", Levels(), {name: "off"}


@pytest.mark.parametrize("promise", PROMISES.values(), ids=PROMISES)
def test_what_leaves_a_bounded_loss_takes_the_last_and_nothing_else_does(promise: FilesystemPromise) -> None:
    told = set()
    for engine, levels, shown in settings():
        durability: EngineDurability = registry.engine_part(engine, "durability")
        found = durability.declare(levels, shown, promise)
        # Beside another reason that promises nothing, each says by itself what it takes.
        worse = replace(found, protected_cache=UNSAFE)
        own = [reason for reason in found.reasons if reason.code not in OF_FILE_SYSTEM]
        taken = [takes_the_last(reason, worse) for reason in own]
        told |= {reason.code for reason, is_taken in zip(own, taken, strict=True) if is_taken}
        if found.protected_cache == BOUNDED_LOSS:
            assert all(taken), (engine, levels, shown)
        elif len(own) == 1:
            assert not any(taken), (engine, levels, shown)
    assert {"sqlite-normal", "nometasync", "innodb-log-flushed-later", "synchronous-commit-off"} <= told
