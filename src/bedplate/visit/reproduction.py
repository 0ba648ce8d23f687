"""How an engine's data are checked without this program: the role `reproduction` of its folder.

Its shell lines go into the script `check.sh` of a bundle (`power-cut bundle`), which an account without rights runs. They find the engine's
files in `$data`, files of the role in /tmp/engine, and may write below `$own`. They print `present CLIENT LAST` for the last transaction of
a client that is there; `bad WORDS` says what is wrong, and `cannot WORDS` ends without a verdict where a tool is missing here or does not fit.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bedplate.host.command import Account
    from bedplate.visit.cut_engine import Subject

# Of the writer of native engines (drivers/power_cut.c): what its entries and accounts must be, from two files of hexadecimal lines.
ENTRIES_CHECK = Path(__file__).with_name("entries_check.py")
ENTRIES_LINE = (
    'python3 /tmp/engine/entries_check.py "$own/entries" "$own/accounts" || cannot "python3 failed"'
)
ENTRIES_NEED = "python3, for a check of 80 lines that knows what was written"


class Reproduction(Protocol):
    """Of one engine. `needs` are the programs that its lines start, with their packages, for a reader."""

    needs: Sequence[str]

    def places(self, subject: Subject) -> Mapping[str, str]:
        """Variables that name where the engine's programs are, which the lines may read, and their values on this machine.

        Whoever starts the script sets them; unset, the lines take what the search path has.
        """
        ...

    def files(self, subject: Subject) -> Mapping[str, Path]:
        """What the lines need besides, by the path in the bundle's folder `engine`."""
        ...

    def lines(self, subject: Subject, account: Account) -> Sequence[str]:
        """The check, in the words of a POSIX shell; `account` made the files that were recorded."""
        ...
