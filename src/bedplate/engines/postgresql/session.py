"""A session of psql, the build's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from bedplate.visit.piped_session import PipedSession

if TYPE_CHECKING:
    from bedplate.engines.postgresql.cluster import Connection


class Session(PipedSession):
    r"""Its statements may be several, with `\\;` between them: one message to the server."""

    field: ClassVar[str] = "\x1f"
    null: ClassVar[str] = "\x1a"
    end: ClassVar[str] = "\x1e bedplate end of answer \x1e"
    ask_for_end: ClassVar[str] = f"\\echo '{end}'"
    errors: ClassVar[tuple[str, ...]] = ("ERROR:", "FATAL:", "PANIC:", "psql:")

    def __init__(self, connection: Connection) -> None:
        argv = [
            str(connection.program("psql")),
            "--no-psqlrc",
            "--quiet",
            "--no-align",
            "--tuples-only",
            f"--field-separator={self.field}",
            f"--pset=null={self.null}",
            *connection.options(),
        ]
        super().__init__(argv, connection.account)
