"""Settings of a plan beside what the server says of them."""

from __future__ import annotations

import pytest

from bedplate.engines.postgresql.settings_check import described, doubts, settings_doubts
from bedplate.model.cell import BuildLevels, Cell, ClusterLevels, DeviceLevels, FilesystemLevels, KernelLevels
from bedplate.model.levels import Levels

# Lines of `postgres --describe-config`, PostgreSQL 18.6.
SAID = """checkpoint_timeout\tsighup\tWrite-Ahead Log / Checkpoints\tINTEGER\t0\t30\t86400\tSets the maximum time.\t
full_page_writes\tsighup\tWrite-Ahead Log / Settings\tBOOLEAN\tFALSE\t\t\tWrites full pages to WAL.\tA page write.
random_page_cost\tuser\tQuery Tuning\tREAL\t0\t0\t1.79769e+308\tSets the planner's estimate.\t
shared_buffers\tpostmaster\tResource Usage / Memory\tINTEGER\t0\t16\t1073741823\tSets the number.\t
wal_sync_method\tsighup\tWrite-Ahead Log / Settings\tENUM\tfdatasync\t\t\tSelects the method.\t
archive_command\tsighup\tWrite-Ahead Log / Archiving\tSTRING\t\t\t\tSets the shell command.\t
"""
KNOWN = described(SAID)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("shared_buffers", "64MB"),
        ("shared_buffers", "0x4000"),
        ("shared_buffers", " 128 kB "),
        ("checkpoint_timeout", "30s"),
        ("checkpoint_timeout", "300"),
        ("full_page_writes", "off"),
        ("full_page_writes", "1"),
        ("full_page_writes", "Tr"),
        ("random_page_cost", "1.1"),
        ("random_page_cost", "1e3"),
        ("wal_sync_method", "anything"),
        ("archive_command", "/bin/true"),
        # A developer's option, and an extension's: the list has neither.
        ("debug_io_direct", "data"),
        ("auto_explain.log_min_duration", "1"),
    ],
)
def test_what_the_server_may_take_is_not_doubted(name: str, value: str) -> None:
    assert () == doubts([(name, value)], KNOWN)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("shared_bufers", "64MB", "this build lists no such setting; did you mean shared_buffers?"),
        ("shared_buffers", "64mb", "the unit of '64mb' is not known to PostgreSQL; did you mean MB?"),
        ("shared_buffers", "64 Mio", "is not known to PostgreSQL; known are B, kB, MB"),
        ("shared_buffers", "much", "found 'much'; expected a number"),
        ("checkpoint_timeout", "5", "found '5'; allowed is 30 to 86400, or a value with its unit"),
        ("full_page_writes", "o", "found 'o'; expected on or off"),
        ("full_page_writes", "maybe", "found 'maybe'; expected on or off"),
        ("random_page_cost", "-1", "found '-1'; allowed is 0 to 1.79769e+308"),
        ("shared_buffers", "x" * 1000, "(1,000 characters); expected a number"),
    ],
)
def test_what_it_would_refuse_is_told_with_the_way_out(name: str, value: str, said: str) -> None:
    (found,) = doubts([(name, value)], KNOWN)
    assert said in found
    assert len(found) < 400


def test_without_a_build_nothing_is_doubted(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("BEDPLATE_CACHE", str(tmp_path))
    cluster = ClusterLevels(settings=Levels(shared_bufers="x"))
    cell = Cell(DeviceLevels(), KernelLevels(), FilesystemLevels("ext4"), BuildLevels(), cluster)
    assert () == settings_doubts([cell])
    assert {} == described("what is no list\n\n")
