"""SQLite's data checked by its own shell, and what that prints by a check that knows what was written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.visit.reproduction import ENTRIES_CHECK, ENTRIES_LINE, ENTRIES_NEED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from bedplate.host.command import Account
    from bedplate.visit.cut_engine import Subject
    from bedplate.visit.reproduction import Reproduction

# `-safe`: no extension is loaded, no other file or program is opened, whatever the database or a file of the user's asks for.
# Not `-readonly`: opening has to roll a hot journal back, as any program's opening does.
_SHELL = "sqlite3 -safe -init /dev/null -batch -noheader -separator ' '"


class SqliteReproduction:
    """Opening the database rolls a hot journal back, as any program's opening does."""

    needs: Sequence[str] = ("sqlite3 from 3.37 on (Debian: sqlite3)", ENTRIES_NEED)

    def places(self, subject: Subject) -> Mapping[str, str]:  # noqa: ARG002 -- of engines that are found by one
        """None."""
        return {}

    def files(self, subject: Subject) -> Mapping[str, Path]:  # noqa: ARG002 -- of engines that need others
        """The check of what the writer wrote."""
        return {ENTRIES_CHECK.name: ENTRIES_CHECK}

    def lines(self, subject: Subject, account: Account) -> Sequence[str]:  # noqa: ARG002 -- of a server
        """`integrity_check`, then the rows of both tables."""
        return (
            'need sqlite3 "Debian: sqlite3"; need python3 "Debian: python3"',
            f"{_SHELL} :memory: 'SELECT 1' > /dev/null 2>&1 ||",
            '    cannot "sqlite3 has no option -safe: 3.37 or later is needed"',
            f'ask() {{ timeout 300 {_SHELL} "$data/test.db" "$1"; }}',
            'ask "PRAGMA integrity_check(3)" > "$own/said" 2>&1 || bad "sqlite3 ends with $?: $(head -n 1 "$own/said")"',
            'grep -qx ok "$own/said" || bad "integrity_check: $(head -n 1 "$own/said")"',
            "for table in entries accounts; do",
            '    ask "SELECT hex(key), hex(value) FROM $table" > "$own/$table" 2> "$own/said"',
            "done",
            ENTRIES_LINE,
        )


REPRODUCTION: Reproduction = SqliteReproduction()
