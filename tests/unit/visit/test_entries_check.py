"""The check of a bundle sees what the writer of entries and accounts (drivers/power_cut) would not have written."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

import pytest

from bedplate.visit.cuts import ENTRIES_CHECK
from bedplate.visit.entries_check import ACCOUNTS, checked, padding


def entry(client: int, number: int, *, account: int = 7) -> str:
    key = struct.pack(">IQ", client, number)
    value = struct.pack("<3I3i", account, account, 8, 5, -2, -3)
    return f"{key.hex()} {(value + padding(key, len(value))).hex()}"


def account(number: int, balance: int = 0, changes: int = 0) -> str:
    key = struct.pack(">I", number)
    value = struct.pack("<qQ", balance, changes)
    return f"{key.hex()} {(value + padding(key, len(value))).hex().upper()}"


ENTRIES = [entry(0, 1), entry(0, 2), entry(3, 1)]
REST = [account(number) for number in (*range(7), *range(9, ACCOUNTS))]
ADDED_UP = [account(7, 9, 6), account(8, -9, 3), *REST]
PRESENT = ["present 0 2", "present 3 1"]


def test_what_was_written_is_well() -> None:
    assert PRESENT == list(checked(ENTRIES, ADDED_UP))


@pytest.mark.parametrize(
    ("entries", "accounts", "said"),
    [
        ([*ENTRIES, entry(3, 3)], [account(7, 12, 8), account(8, -12, 4), *REST], "bad client 3 has 2 entries up to 3: some are missing between"),
        ([*ENTRIES, entry(5, 1)[:-2] + "00"], ADDED_UP, "bad 1 keys or values are not whole, or none that were written"),
        ([*ENTRIES, "no hexadecimal"], ADDED_UP, "bad 1 keys or values are not whole, or none that were written"),
        (ENTRIES, [account(7, 8, 6), *ADDED_UP[1:]], "bad 1 accounts are not the sum of their entries"),
        (ENTRIES, ADDED_UP[:-1], "bad 10000 accounts were made, 9999 are there"),
    ],
)  # fmt: skip
def test_what_is_not_whole_is_said(entries: list[str], accounts: list[str], said: str) -> None:
    found = list(checked(entries, accounts))
    assert [said] == [line for line in found if line.startswith("bad")]


def test_it_needs_nothing_but_python(tmp_path: Path) -> None:
    (tmp_path / "entries").write_text("\n".join(ENTRIES) + "\n")
    (tmp_path / "accounts").write_text("\n".join(ADDED_UP) + "\n")
    argv = [sys.executable, "-I", str(ENTRIES_CHECK), str(tmp_path / "entries"), str(tmp_path / "accounts")]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert PRESENT == done.stdout.splitlines()
