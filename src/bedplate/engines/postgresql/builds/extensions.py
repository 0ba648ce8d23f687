"""The extensions that a build of a release has: PostgreSQL's own contrib, whole, but for bridges to procedural languages."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_EVERY = frozenset(
    """
    amcheck autoinc bloom btree_gin btree_gist citext cube dblink dict_int dict_xsyn earthdistance file_fdw fuzzystrmatch hstore
    insert_username intagg intarray isn lo ltree moddatetime pageinspect pg_buffercache pg_freespacemap pg_prewarm pg_stat_statements
    pg_surgery pg_trgm pg_visibility pg_walinspect pgcrypto pgrowlocks pgstattuple plpgsql postgres_fdw refint seg sslinfo tablefunc tcn
    tsm_system_rows tsm_system_time unaccent uuid-ossp xml2
    """.split()  # noqa: SIM905 -- a list of names
)
_SINCE = {"pg_logicalinspect": 18}
_UNTIL = {"adminpack": 16, "old_snapshot": 16}


def extensions_of(major: int) -> frozenset[str]:
    """Their names, as CREATE EXTENSION takes them."""
    since = {name for name, first in _SINCE.items() if major >= first}
    return _EVERY | since | {name for name, last in _UNTIL.items() if major <= last}


def lacking_sentence(archive: str, names: Iterable[str]) -> str:
    """What is said of an archive that needs others."""
    return (
        f"{archive} needs extensions or languages that bedplate's PostgreSQL does not have: {', '.join(names)}; dump without "
        "them (pg_dump --exclude-extension since 17, else without the schemas that use them)"
    )
