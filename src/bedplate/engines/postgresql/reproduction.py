"""PostgreSQL's data checked by a server of the same version, by the oracle's own statements."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from bedplate.engines.postgresql.builds.version import major_of
from bedplate.engines.postgresql.cluster import OBEYED, configuration_files, configuration_options
from bedplate.engines.postgresql.oracle import by_hand_checks
from bedplate.engines.postgresql.recorded import START_OPTIONS, filler, levels_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from bedplate.host.command import Account
    from bedplate.visit.cut_engine import Subject
    from bedplate.visit.reproduction import Reproduction

# As `check.sh` has it.
_OWN = "/tmp/own"  # noqa: S108 -- of a mount namespace of its own
_PORT_OPTIONS = (
    *("-c", f"unix_socket_directories={_OWN}", "-c", "listen_addresses=", "-c", "logging_collector=off"),
    *("-c", "archive_mode=off", *START_OPTIONS),
)
_NOTES = (
    "SELECT client || ' ' || max(sequence) || ' ' || (count(*) = max(sequence) AND min(sequence) = 1 AND "
    "count(DISTINCT sequence) = count(*))::int FROM note GROUP BY client"
)


class PostgresqlReproduction:
    """The programs are those of the folder PGBIN, or of PATH."""

    needs: Sequence[str] = (
        "postgres and psql of the major version and page size in `versions.txt`; PGBIN names their folder, which every account can read",
        "amcheck of the same PostgreSQL (Debian: in its server's package), and pg_checksums where pages have checksums",
    )

    def places(self, subject: Subject) -> Mapping[str, str]:
        """The folder of the build that is recorded."""
        return {"PGBIN": "" if subject.build is None else f"{subject.build.prefix}/bin"}

    def files(self, subject: Subject) -> Mapping[str, Path]:  # noqa: ARG002 -- of engines that need some
        """None."""
        return {}

    def lines(self, subject: Subject, account: Account) -> Sequence[str]:
        """The server starts, which replays its WAL, and is asked for what it has and whether it adds up."""
        return (*_fitting(subject), *_started(subject, account), *_asked(subject), *_stopped())


def _fitting(subject: Subject) -> Sequence[str]:
    """Another major version or page size would refuse healthy data."""
    lines = [
        '[ -z "${PGBIN:-}" ] || PATH=$PGBIN:$PATH',
        'for tool in postgres psql pg_controldata; do need $tool "PGBIN names its folder"; done',
    ]
    build = subject.build
    if build is not None:
        major = shlex.quote(str(major_of(build.version)))
        block = shlex.quote(str(build.block_size_bytes))
        lines += [
            "here=$(postgres -V | sed 's/^[^0-9]*\\([0-9]*\\).*/\\1/')",
            f'[ "$here" = {major} ] || cannot "postgres "{major}" made the data, and "$here" is here; PGBIN names the folder of another"',
            'mkdir -m 700 "$own/empty"; : > "$own/empty/postgresql.conf"',
            'here=$(postgres -C block_size -D "$own/empty" 2> /dev/null)',
            f'[ "$here" = {block} ] || cannot "pages of the data have "{block}" bytes, those of postgres here "$here"; PGBIN names another"',
        ]
    return lines


def _started(subject: Subject, account: Account) -> Sequence[str]:
    files = configuration_files(levels_of(subject), _OWN)
    places = shlex.join(configuration_options(f"{_OWN}/configuration"))
    return (
        # Nothing of what lies with the data is obeyed: it may be a stranger's.
        f'(cd "$data" && rm -f {shlex.join(OBEYED)})',
        'mkdir "$own/configuration"',
        *(f'printf %s {shlex.quote(text)} > "$own/configuration/{name}"' for name, text in files.items()),
        f'postgres -D "$data" {places} {shlex.join(_PORT_OPTIONS)} > "$own/server" 2>&1 &',
        "server=$!",
        f'ask() {{ psql -X -q -A -t -h "$own" -U {shlex.quote(account.name)} -d bedplate -v ON_ERROR_STOP=1 -c "$1" 2> "$own/said"; }}',
        # Line 8 is the server's own status (src/include/utils/pidfile.h): one that is ready may still refuse a connection.
        'status() { sed -n "8s/ *$//p" "$data/postmaster.pid" 2> /dev/null; }',
        'until [ "$(status)" = ready ]; do kill -0 $server 2> /dev/null || break; sleep 0.2; done',
        "if ! kill -0 $server 2> /dev/null; then",
        '    bad "the server does not start: $(grep -E "PANIC|FATAL" "$own/server" | tail -n 1)"; exit 0',
        "fi",
        'ask "SELECT 1" > /dev/null || { bad "the server refuses a connection: $(head -n 1 "$own/said")"; exit 0; }',
    )


def _asked(subject: Subject) -> Sequence[str]:
    """What an application sees, then what only a check sees. A statement that fails is the server's own complaint."""
    wrong = (
        "SELECT count(*) FROM account FULL JOIN (SELECT account, count(*) FROM note GROUP BY account) AS noted "  # noqa: S608 -- names of ours
        "ON noted.account = account.id WHERE balance IS DISTINCT FROM coalesce(count, 0) OR account.id IS NULL "
        f"OR filler IS DISTINCT FROM {filler('account.id', 'account.balance', subject.oracle)}"
    )
    lines = [
        'none() { found=$(ask "$2") || { bad "$1: $(head -n 1 "$own/said")"; return; }; [ "${found:-0}" = 0 ] || bad "$1: $(echo "$found" | tr "\\n" " ")"; }',
        f'ask "{_NOTES}" > "$own/last" || bad "note: $(head -n 1 "$own/said")"',
        "while read -r client last whole; do",
        '    echo "present $client $last"; [ "$whole" = 1 ] || bad "client $client: some of the notes up to $last are missing between, or twice"',
        'done < "$own/last"',
        f'none "accounts that are not the sum of their notes, or not whole" {shlex.quote(wrong)}',
        "found=$(ask 'SELECT count(*) FROM account')",
        f'[ "$found" = {int(subject.rows)} ] ||',
        f'    bad "{int(subject.rows)} accounts were made, and there are $found"',
        "amcheck=$(ask \"SELECT count(*) FROM pg_available_extensions WHERE name = 'amcheck'\")",
        '[ "$amcheck" != 0 ] || cannot "amcheck of this PostgreSQL is not installed"',
    ]
    return (*lines, *(f"none {name} {shlex.quote(statement)}" for name, statement in by_hand_checks()))


def _stopped() -> Sequence[str]:
    return (
        "kill -INT $server; wait $server",
        'sums=$(pg_controldata "$data" | sed -n "s/^Data page checksum version: *//p")',
        'if [ "${sums:-0}" != 0 ]; then',
        '    need pg_checksums "PGBIN names its folder"',
        '    pg_checksums --check -D "$data" > /dev/null 2> "$own/said"',
        # Maps that the server takes for empty ones where they are damaged.
        "    found=$(grep 'verification failed' \"$own/said\" | grep -v '_\\(fsm\\|vm\\)[.0-9]*\"' | head -n 1)",
        '    [ -z "$found" ] || bad "pg_checksums: $found"',
        "fi",
    )


REPRODUCTION: Reproduction = PostgresqlReproduction()
