"""MariaDB's data checked by a server of the same release, by the oracle's own statements."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from bedplate.engines.mariadb.model import PAGE_SIZE, USUAL_PAGE_BYTES
from bedplate.engines.mariadb.oracle import by_hand_checks, page_ranges
from bedplate.engines.mariadb.recorded import recorded_settings
from bedplate.engines.mariadb.server import DATABASE, TEMPORARY
from bedplate.engines.mariadb.unpacked import Programs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from bedplate.host.command import Account
    from bedplate.model.levels import Scalar
    from bedplate.visit.cut_engine import Subject
    from bedplate.visit.reproduction import Reproduction

_PREFIX, _LIBRARIES = "MARIADB_PREFIX", "MARIADB_LIBRARIES"
_PACKAGES = "Debian: mariadb-server-core and mariadb-client-core"
_NOTES = (
    "SELECT CONCAT_WS(' ', client, MAX(sequence), COUNT(*) = MAX(sequence) AND MIN(sequence) = 1 AND "
    "COUNT(DISTINCT sequence) = COUNT(*)) FROM note GROUP BY client"
)


class MariadbReproduction:
    """The programs are those below MARIADB_PREFIX, or of /usr."""

    needs: Sequence[str] = (
        (
            f"mariadbd, mariadb and innochecksum of the release in `versions.txt` ({_PACKAGES}); {_PREFIX} names the folder above "
            f"their `bin` and `sbin` where it is not /usr, and {_LIBRARIES} a folder of libraries that they need besides"
        ),
    )

    def places(self, subject: Subject) -> Mapping[str, str]:
        """The unpacked packages that were recorded."""
        if subject.build is None:
            return {_PREFIX: "", _LIBRARIES: ""}
        programs = Programs(subject.build)
        return {_PREFIX: programs.prefix, _LIBRARIES: programs.environment.get("LD_LIBRARY_PATH", "")}

    def files(self, subject: Subject) -> Mapping[str, Path]:  # noqa: ARG002 -- of engines that need some
        """None."""
        return {}

    def lines(self, subject: Subject, account: Account) -> Sequence[str]:  # noqa: ARG002 -- the server's root is asked
        """The server starts, which recovers, and is asked for what it has and whether it adds up; then every page is looked at."""
        settings = _settings(subject.settings)
        return (
            *_fitting(subject),
            *_started(settings),
            *_asked(subject),
            *_pages(int(settings[PAGE_SIZE])),
        )


def _settings(asked: Mapping[str, Scalar]) -> Mapping[str, Scalar]:
    """Those of the recording, which whoever read its job has held against the rules of a plan."""
    return {PAGE_SIZE: USUAL_PAGE_BYTES, **recorded_settings(asked)}


def _fitting(subject: Subject) -> Sequence[str]:
    """Another release would refuse healthy data: the log of a server that was not shut down is of one format."""
    lines = [
        f"prefix=${{{_PREFIX}:-/usr}}; PATH=$prefix/sbin:$prefix/bin:$PATH",
        f'[ -z "${{{_LIBRARIES}:-}}" ] || {{ LD_LIBRARY_PATH=${_LIBRARIES}; export LD_LIBRARY_PATH; }}',
        f'for tool in mariadbd mariadb innochecksum; do need $tool "{_PACKAGES}; {_PREFIX} names another folder"; done',
    ]
    if subject.build is not None:
        release = shlex.quote(".".join(subject.build.version.split(".")[:2]))
        lines += [
            "here=$(mariadbd --no-defaults --version 2> /dev/null | sed -n 's/.*Ver \\([0-9]*\\.[0-9]*\\).*/\\1/p')",
            f'[ "$here" = {release} ] || cannot "mariadbd "{release}" made the data, and "$here" is here; {_PREFIX} names another"',
        ]
    return lines


def _started(settings: Mapping[str, Scalar]) -> Sequence[str]:
    """By its log: a server that recovers takes no connection yet."""
    asked = shlex.join(f"--{name.replace('_', '-')}={value}" for name, value in settings.items())
    return (
        'mkdir "$own/tmp"',
        'mariadbd --no-defaults --basedir="$prefix" --datadir="$data" --tmpdir="$own/tmp" --secure-file-priv="$own/tmp" \\',
        f'    --socket="$own/sock" --pid-file="$own/pid" --ignore-db-dirs={TEMPORARY} --skip-networking --skip-slave-start --skip-name-resolve \\',
        f'    --local-infile=OFF {asked} > "$own/server" 2>&1 &',
        "server=$!",
        'complaint() { grep -F "[ERROR] " "$own/server" | head -n 1 | sed "s/.*\\[ERROR\\] //"; }',
        'until grep -qF "ready for connections" "$own/server"; do kill -0 $server 2> /dev/null || break; sleep 0.2; done',
        "if ! kill -0 $server 2> /dev/null; then",
        '    wait $server; bad "the server does not start, status $?: $(complaint)"; exit 0',
        "fi",
        f'ask() {{ mariadb --no-defaults --batch --skip-column-names --socket="$own/sock" --user=root {DATABASE} -e "$1" 2> "$own/said"; }}',
    )


def _asked(subject: Subject) -> Sequence[str]:
    """What an application sees, then what only a check sees. A statement that fails is the server's own complaint."""
    lines = [
        'none() { found=$(ask "$2") || { bad "$1: $(head -n 1 "$own/said")"; return; }; [ "${found:-0}" = 0 ] || bad "$1: $(echo "$found" | tr "\\n\\t" "  ")"; }',
        f'ask "{_NOTES}" > "$own/last" || bad "note: $(head -n 1 "$own/said")"',
        "while read -r client last whole; do",
        '    echo "present $client $last"; [ "$whole" = 1 ] || bad "client $client: some of the notes up to $last are missing between, or twice"',
        'done < "$own/last"',
        "found=$(ask 'SELECT COUNT(DISTINCT id) FROM account')",
        f'[ "$found" = {int(subject.rows)} ] || bad "{int(subject.rows)} accounts were made, and there are $found"',
    ]
    return (
        *lines,
        *(f"none {shlex.quote(words)} {shlex.quote(statement)}" for words, statement in by_hand_checks()),
        'found=$(ask "CHECK TABLE account, note EXTENDED" | grep -v "status.OK$")',
        '[ -z "$found" ] || bad "CHECK TABLE: $(echo "$found" | head -n 1 | tr "\\t" " ")"',
        'found=$(complaint); [ -z "$found" ] || bad "the server says: $found"',
    )


def _pages(page_bytes: int) -> Sequence[str]:
    """Nothing else reads them all; and the server must be able to stop."""
    lines = [
        'kill -TERM $server; wait $server || bad "the server ended with $?: $(complaint)"',
        'sums() { innochecksum "$@" > "$own/said" 2>&1 || bad "innochecksum $1: $(tail -n 1 "$own/said")"; }',
    ]
    own = (f'sums {shlex.join(options)} "$data/ibdata1"' for options in page_ranges(page_bytes))
    return (*lines, *own, 'for file in "$data"/*/*.ibd; do sums "$file"; done')


REPRODUCTION: Reproduction = MariadbReproduction()
