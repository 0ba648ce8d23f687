"""What a writer of entries and accounts left, held against what it writes: for anybody, by Python alone.

    python3 entries_check.py ENTRIES ACCOUNTS

Each file has a line for each row: the key and the value, in hexadecimal. The key of an entry is its client and its number (big-endian,
4 and 8 bytes); its value three numbers of accounts and three changes (little-endian, 4 bytes each), then bytes that follow from
the key. The key of an account is its number; its value the sum of its changes and their count (8 bytes each), then such bytes.
Numbers of a client have no gap, and an account is what the entries say. Printed are `present CLIENT LAST` and `bad WORDS`.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

VALUE_BYTES, ACCOUNTS = 100, 10_000
_ENTRY, _ACCOUNT = struct.Struct("<3I3i"), struct.Struct("<qQ")
_KEY, _NUMBER = struct.Struct(">IQ"), struct.Struct(">I")
_WORD = 2**64 - 1


def mixed(value: int) -> int:
    """splitmix64."""
    value = value + 0x9E3779B97F4A7C15 & _WORD
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & _WORD
    value = (value ^ value >> 27) * 0x94D049BB133111EB & _WORD
    return value ^ value >> 31


def padding(entry_key: bytes, offset: int) -> bytes:
    """What follows from the key, from byte `offset` of a value on."""
    low, high = struct.unpack("<QQ", entry_key.ljust(16, b"\0"))
    seed = mixed(low ^ mixed(high))
    return bytes(mixed(seed + at & _WORD) & 0xFF for at in range(offset, VALUE_BYTES))


def rows(lines: Iterable[str]) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values; a line that is none is an empty key."""
    for line in lines:
        key, _, value = line.strip().partition(" ")
        try:
            yield bytes.fromhex(key), bytes.fromhex(value)
        except ValueError:
            yield b"", b""


def checked(lines: Iterable[str], accounts: Iterable[str]) -> Iterator[str]:
    """The lines to print."""
    numbers: dict[int, set[int]] = {}
    expected: dict[int, tuple[int, int]] = {}
    wrong = balances = found = 0
    for key, value in rows(lines):
        if len(key) != _KEY.size or value[_ENTRY.size :] != padding(key, _ENTRY.size):
            wrong += 1
            continue
        client, number = _KEY.unpack(key)
        numbers.setdefault(client, set()).add(number)
        words = _ENTRY.unpack_from(value)
        for account, change in zip(words[:3], words[3:], strict=True):
            total, count = expected.get(account, (0, 0))
            expected[account] = total + change, count + 1
    for key, value in rows(accounts):
        found += 1
        if len(key) != _NUMBER.size or value[_ACCOUNT.size :] != padding(key, _ACCOUNT.size):
            wrong += 1
        elif _ACCOUNT.unpack_from(value) != expected.get(_NUMBER.unpack(key)[0], (0, 0)):
            balances += 1
    for client, there in sorted(numbers.items()):
        yield f"present {client} {max(there)}"
        if len(there) != max(there):
            yield f"bad client {client} has {len(there)} entries up to {max(there)}: some are missing between"
    if wrong:
        yield f"bad {wrong} keys or values are not whole, or none that were written"
    if balances:
        yield f"bad {balances} accounts are not the sum of their entries"
    if found != ACCOUNTS:
        yield f"bad {ACCOUNTS} accounts were made, {found} are there"


def main(paths: list[str]) -> int:
    """Print what the two files come to."""
    entries, accounts = map(Path, paths)
    with entries.open(encoding="ascii") as first, accounts.open(encoding="ascii") as second:
        print(*checked(first, second), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
