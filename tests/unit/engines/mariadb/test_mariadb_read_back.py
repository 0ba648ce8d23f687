"""What a MariaDB is asked once it runs, and what its answers mean; the session is played."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, cast

import pytest

from bedplate.engines.mariadb.prepare import PACKAGES, build_of
from bedplate.engines.mariadb.reading import parse_server_log
from bedplate.engines.mariadb.visit import MariadbSession, double_writes, opened_directly, read_back
from bedplate.errors import RequirementMissing
from bedplate.host.apt import PackageTree
from bedplate.host.command import Account
from bedplate.model.reason import reasons_of
from bedplate.visit.server import CONNECTION_LOST, SessionFailed

if TYPE_CHECKING:
    from pathlib import Path

NO_PROCESS = 2**22 + 1


class PlayedMariadb:
    """Answers from two tables."""

    def __init__(self, variables: dict[str, str], counters: dict[str, int]) -> None:
        self.variables, self.counters = variables, counters

    def rows(self, statement: str) -> list[list[str]]:
        if statement == "SHOW GLOBAL VARIABLES":
            return [[name, value] for name, value in self.variables.items()]
        return [[name, str(value)] for name, value in self.counters.items() if f"'{name}'" in statement]

    def execute(self, statement: str) -> None:
        """Nothing to keep."""


def played(pages: int, twice: int, **variables: str) -> Any:
    counters = {"Innodb_buffer_pool_pages_flushed": pages, "Innodb_dblwr_pages_written": twice}
    return PlayedMariadb(variables, counters)


@pytest.mark.parametrize(
    ("pages", "twice", "variables", "effective", "matches"),
    [
        (9, 9, {"innodb_doublewrite": "ON"}, "ON", True),
        (9, 0, {"innodb_doublewrite": "OFF"}, "OFF", True),
        (9, 3, {"innodb_doublewrite": "OFF"}, "ON", False),
        (9, 0, {"innodb_doublewrite": "ON", "innodb_use_atomic_writes": "OFF"}, "OFF", False),
        # The device may have claimed that it writes a page whole.
        (9, 0, {"innodb_doublewrite": "ON", "innodb_use_atomic_writes": "ON"}, "OFF", None),
        (0, 0, {"innodb_doublewrite": "ON"}, None, None),
    ],
)
def test_double_writes_are_held_against_the_servers_own_count(
    pages: int, twice: int, variables: dict[str, str], effective: str | None, matches: bool | None
) -> None:
    session = played(pages, twice, **variables)
    found = double_writes(session, session.variables)
    assert (effective, matches) == (found.effective, found.matches)


def test_every_asked_setting_is_compared_and_what_decides_a_result_is_read_anyway() -> None:
    session = played(1, 1, innodb_doublewrite="ON", innodb_page_size="16384", innodb_io_capacity="100")
    asked: dict[str, int | str] = {"innodb_page_size": 4096, "innodb_io_capacity": "100", "innodb_gone": "1"}
    found = {item.name: item for item in read_back(session, asked, NO_PROCESS)}
    assert [False, True, False] == [found[f"setting {name}"].matches for name in asked]
    assert None is found["setting innodb_gone"].effective
    assert (None, "ON") == (
        found["setting innodb_doublewrite"].asked,
        found["setting innodb_doublewrite"].effective,
    )
    assert None is found["ibdata1 open with O_DIRECT"].effective


@pytest.mark.parametrize(("flags", "direct"), [(os.O_RDWR | os.O_DIRECT, True), (os.O_RDWR, False)])
def test_how_the_data_file_is_open_is_seen_from_outside(tmp_path: Path, flags: int, direct: bool) -> None:
    for name in ("fd", "fdinfo"):
        (tmp_path / "7" / name).mkdir(parents=True)
    (tmp_path / "7/fd/3").symlink_to("/data/ib_logfile0")
    (tmp_path / "7/fd/4").symlink_to("/data/ibdata1")
    (tmp_path / "7/fdinfo/4").write_text(f"pos:\t0\nflags:\t0{flags:o}\nmnt_id:\t9\n")
    assert direct is opened_directly(7, tmp_path)
    assert None is opened_directly(8, tmp_path)


def test_errors_and_a_crash_are_taken_from_the_log_on_the_clock_of_the_run() -> None:
    found = parse_server_log(
        [
            "2026-11-23  1:35:35 0 [Note] InnoDB: Using io_uring\n",
            "2026-11-23 14:35:35 12 [ERROR] InnoDB: Write to file ./ibdata1 failed\n",
            "261123 14:35:36 [ERROR] mysqld got signal 11 ;\n",
            "Sorry, we probably made a mistake\n",
        ]
    )
    assert () == found.checkpoints
    assert ["ERROR", "CRASH"] == [each.severity for each in found.complaints]
    assert 1.0 == found.complaints[1].wall_s - found.complaints[0].wall_s


def tree(root: Path, version: str) -> PackageTree:
    for name in ("sbin/mariadbd", "bin/mariadb", "bin/mariadb-install-db", "bin/innochecksum"):
        path = root / "usr" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    packages = dict.fromkeys(PACKAGES, version)
    return PackageTree(root, packages, {name: f"sha of {name} {version}" for name in packages})


def test_a_tree_becomes_a_build_whose_digest_covers_its_packages(tmp_path: Path) -> None:
    first, second = (build_of(tree(tmp_path, f"1:10.11.{patch}-0+deb12u1")) for patch in (18, 19))
    assert ("10.11.18", str(tmp_path / "usr")) == (first.version, first.prefix)
    assert first.digest != second.digest


def test_an_old_version_and_a_package_without_its_programs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        RequirementMissing, match=r"is 10\.3\.39; bedplate reads counters that came with 10\.6"
    ):
        build_of(tree(tmp_path, "1:10.3.39-0+deb10u2"))
    whole = tree(tmp_path, "1:11.8.6-1")
    (tmp_path / "usr/bin/innochecksum").unlink()
    with pytest.raises(RequirementMissing, match="were unpacked and lack bin/innochecksum"):
        build_of(whole)


# It goes on after errors, as the client does with --force. Of a server that is gone there is no end of an answer.
_CLIENT = r"""#!/bin/sh
while read -r line; do
    case $line in
        *gone*) printf -- '--------------\nERROR 2013 (HY000) at line 1: Lost connection to server during query\n' ;;
        *wrong*) echo "ERROR 1054 (42S22) at line 2: Unknown column" ;;
        *bedplate*) echo "@ bedplate end of answer @" ;;
        *) printf '1\tNULL\n' ;;
    esac
done
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="a session drops its groups, which root alone may")
def test_a_session_tells_an_error_from_a_server_that_is_gone(tmp_path: Path) -> None:
    client = tmp_path / "mariadb"
    client.write_text(_CLIENT, encoding="utf-8")
    client.chmod(0o755)
    programs = cast(
        "Any", type("At", (), {"path": lambda _, __: str(client), "environment": {}, "root": tmp_path})()
    )
    with MariadbSession(programs, tmp_path / "socket", Account("root", 0, 0)) as session:
        assert [["1", None]] == session.rows("SELECT 1, NULL", timeout_s=30)
        with pytest.raises(SessionFailed, match="wrong: ERROR 1054"):
            session.execute("SELECT wrong", timeout_s=30)
        lost = [session.has_lost_connection]
        with pytest.raises(SessionFailed) as failed:
            session.execute("SELECT gone", timeout_s=30)
        lost.append(session.has_lost_connection)
    assert [False, True] == lost
    assert [CONNECTION_LOST] == [reason.code for reason in reasons_of(failed.value)]
