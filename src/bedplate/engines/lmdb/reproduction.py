"""LMDB's data checked by its own tools, and what they print by a check that knows what was written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.visit.reproduction import ENTRIES_CHECK, ENTRIES_LINE, ENTRIES_NEED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from bedplate.host.command import Account
    from bedplate.visit.cut_engine import Subject
    from bedplate.visit.reproduction import Reproduction


class LmdbReproduction:
    """A damaged map ends mdb_dump by an error, by a signal, or never."""

    needs: Sequence[str] = ("mdb_dump (Debian: lmdb-utils)", ENTRIES_NEED)

    def places(self, subject: Subject) -> Mapping[str, str]:  # noqa: ARG002 -- of engines that are found by one
        """None."""
        return {}

    def files(self, subject: Subject) -> Mapping[str, Path]:  # noqa: ARG002 -- of engines that need others
        """The check of what the writer wrote."""
        return {ENTRIES_CHECK.name: ENTRIES_CHECK}

    def lines(self, subject: Subject, account: Account) -> Sequence[str]:  # noqa: ARG002 -- of a server
        """Every database read, then the rows of both."""
        return (
            'need mdb_dump "Debian: lmdb-utils"; need python3 "Debian: python3"',
            'timeout 300 mdb_dump -a "$data" > /dev/null 2> "$own/said" ||',
            '    bad "mdb_dump ends with $?: $(head -n 1 "$own/said")"',
            "for table in entries accounts; do",
            '    timeout 300 mdb_dump -s $table "$data" 2> "$own/said" | sed -n "s/^ //p" | paste -d " " - - > "$own/$table"',
            "done",
            ENTRIES_LINE,
        )


REPRODUCTION: Reproduction = LmdbReproduction()
