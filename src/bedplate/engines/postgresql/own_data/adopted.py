"""A cluster of somebody else's, copied for a visit: what makes it the visit's own, as statements.

Nobody here knows its roles, so the first is made by a server in single-user mode, which asks for none. Its database gets the name,
and the workload the role, that every visit has. That role is no superuser: it reads and writes every table, and owns none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bedplate.engines.postgresql.session import Session

# Databases and roles that have a name which is needed get this behind it.
_ASIDE = " of the copy"
_NAME_BYTES_MAX = 63
# All that is there has been set up by others, row security among it; the owner of a restored database is not held by that either.
_RIGHTS = "LOGIN BYPASSRLS IN ROLE pg_monitor, pg_checkpoint, pg_read_all_data, pg_write_all_data"


# Settings of databases and roles win over the command line. Those that say what a script's words mean, or what its commits promise,
# are the data's; any other one would change what the plan asks for, load a library, or write rows into the log.
_KEPT_SETTINGS = (
    "bytea_output",
    "client_encoding",
    "datestyle",
    "default_text_search_config",
    "default_transaction_isolation",
    "intervalstyle",
    "lc_monetary",
    "lc_numeric",
    "lc_time",
    "search_path",
    "synchronous_commit",
    "timezone",
)


def before_any_session(name: str) -> str:
    """For single-user mode, a statement a line: a superuser, whether or not there is a role of that name, and no settings but those kept."""
    role = identifier(name)
    kept = ", ".join(map(_text, _KEPT_SETTINGS))
    settings = f"SELECT array_agg(one) FROM unnest(setconfig) AS one WHERE lower(split_part(one, '=', 1)) IN ({kept})"  # noqa: S608 -- quoted
    return "".join(
        f"{statement}\n"
        for statement in (
            f"CREATE ROLE {role} SUPERUSER LOGIN",
            f"ALTER ROLE {role} SUPERUSER LOGIN",
            f"UPDATE pg_db_role_setting SET setconfig = ({settings})",  # noqa: S608 -- quoted
            "DELETE FROM pg_db_role_setting WHERE setconfig IS NULL",
        )
    )


def adopt(session: Session, *, database: str, as_database: str, client: str) -> None:
    """By that superuser, from another database: the names and the role of a visit; SessionFailed with the server's words."""
    for statement in _statements(session, database, as_database, client):
        session.execute(statement)


def identifier(name: str) -> str:
    """A name as SQL has it, whatever stands in it."""
    return '"' + name.replace('"', '""') + '"'


def _statements(session: Session, database: str, as_database: str, client: str) -> Iterator[str]:
    if session.value(f"SELECT count(*) FROM pg_roles WHERE rolname = {_text(client)}") != "0":  # noqa: S608 -- quoted
        # Theirs may be a superuser.
        yield f"ALTER ROLE {identifier(client)} RENAME TO {identifier(client + _ASIDE)}"
    if database != as_database:
        if session.value(f"SELECT count(*) FROM pg_database WHERE datname = {_text(as_database)}") != "0":  # noqa: S608
            yield f"ALTER DATABASE {identifier(as_database)} RENAME TO {identifier(as_database + _ASIDE)}"
        yield f"ALTER DATABASE {identifier(database)} RENAME TO {identifier(as_database)}"
    yield f"ALTER DATABASE {identifier(as_database)} ALLOW_CONNECTIONS true CONNECTION LIMIT -1"
    yield f"CREATE ROLE {identifier(client)} {_RIGHTS}"
    yield f"GRANT CONNECT, TEMPORARY, CREATE ON DATABASE {identifier(as_database)} TO {identifier(client)}"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def database_name(value: object) -> str:
    """The name of a database; ValueError for what is none."""
    if isinstance(value, str) and value.isprintable() and 0 < len(value.encode()) <= _NAME_BYTES_MAX:
        return value
    raise ValueError(f"allowed is the name of a database, of 1 to {_NAME_BYTES_MAX} bytes")
