"""The declared durability class follows from flushes and settings, and says why."""

from __future__ import annotations

import pytest

from bedplate.model.durability import declared
from bedplate.model.visit import FlushCount

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
    ],
)
def test_the_class_follows_from_flushes_and_settings(
    counts: tuple[FlushCount, ...], settings: dict[str, str], volatile: str, protected: str
) -> None:
    found = declared(counts, {**SAFE, **settings})
    assert (volatile, protected) == (found.volatile_cache, found.protected_cache)


def test_a_flush_of_the_journal_alone_is_not_called_durable() -> None:
    counts = (
        FlushCount("data", "appending", 50, 0),
        FlushCount("journal", "appending", 50, 100),
        FlushCount("data", "overwriting", 50, 0),
        FlushCount("journal", "overwriting", 50, 100),
    )
    found = declared(counts, SAFE)
    assert ("unknown", "durable") == (found.volatile_cache, found.protected_cache)
    assert any("data device" in reason for reason in found.reasons)


def test_flushes_while_appending_do_not_excuse_overwrites() -> None:
    counts = (FlushCount("data", "appending", 50, 100), FlushCount("data", "overwriting", 50, 0))
    assert "unsafe" == declared(counts, SAFE).volatile_cache


def test_a_file_system_without_a_journal_says_that_it_needs_fsck() -> None:
    assert any("fsck" in reason for reason in declared(FLUSHING, SAFE, checked_by_fsck=True).reasons)
