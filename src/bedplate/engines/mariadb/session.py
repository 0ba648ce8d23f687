"""A session of the `mariadb` client, that of the server's own packages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from bedplate.engines.mariadb.unpacked import CLIENT
from bedplate.host.shut_in.restriction import Restriction
from bedplate.visit.piped_session import PipedSession

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.engines.mariadb.unpacked import Programs
    from bedplate.host.command import Account

# Codes of the client's library for a server that cannot be reached, or is gone (errmsg.h).
_LOST = re.compile(rb"^ERROR (?:2002|2003|2006|2013|2026|2055|1927|1053)\b", re.MULTILINE)


class MariadbSession(PipedSession):
    """Its statements may be several, with `;` between them: the answers follow each other.

    The client goes on after an error.
    """

    field: ClassVar[str] = "\t"
    null: ClassVar[str] = "NULL"
    end: ClassVar[str] = "@ bedplate end of answer @"
    ask_for_end: ClassVar[str] = f"SELECT '{end}';"
    errors: ClassVar[tuple[str, ...]] = ("ERROR ",)

    def __init__(self, programs: Programs, socket: Path, account: Account, *, database: str = "") -> None:
        argv = [
            programs.path(CLIENT),
            "--no-defaults",
            "--batch",
            "--skip-column-names",
            "--unbuffered",
            "--force",
            "--skip-reconnect",
            f"--socket={socket}",
            "--user=root",
            f"--database={database}",
        ]
        restriction = Restriction(account, readable=(programs.root,), sockets=(socket.parent,))
        super().__init__(argv, restriction, programs.environment)

    @staticmethod
    def has_gone(said: bytes) -> bool:
        """By the error's code: the line that asks for the end fails as well, and no answer comes."""
        return _LOST.search(said) is not None
