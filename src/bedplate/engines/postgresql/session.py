"""A session of psql, the build's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from bedplate.visit.piped_session import PipedSession

if TYPE_CHECKING:
    from pathlib import Path

    from bedplate.engines.postgresql.cluster import Connection


class Session(PipedSession):
    r"""Its statements may be several, with `\\;` between them: one message to the server."""

    field: ClassVar[str] = "\x1f"
    null: ClassVar[str] = "\x1a"
    end: ClassVar[str] = "\x1e bedplate end of answer \x1e"
    # A server that ended while nobody asked leaves no error in the words: psql says that the connection is closed, and goes on.
    failed: ClassVar[str | None] = "\x1a bedplate: the statement failed \x1a"
    ask_for_end: ClassVar[str] = f"\\if :ERROR\n\\echo '{failed}'\n\\endif\n\\echo '{end}'"
    errors: ClassVar[tuple[str, ...]] = ("ERROR:", "FATAL:", "PANIC:", "psql:")

    def __init__(self, connection: Connection, readable: tuple[Path, ...] = ()) -> None:
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
        options = " ".join(f"-c {name}={value}" for name, value in connection.session_settings.items())
        restriction = connection.restriction(readable=readable)
        super().__init__(argv, restriction, {"PGOPTIONS": options} if options else None)
