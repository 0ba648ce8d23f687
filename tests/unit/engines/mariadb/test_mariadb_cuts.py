"""What a MariaDB that is cut is set to and asked, and what its answers mean; the session is played."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bedplate.engines.mariadb import oracle
from bedplate.engines.mariadb.oracle import POWER_CUT
from bedplate.host.command import Account
from bedplate.model.levels import Levels
from bedplate.model.visit import EngineBuild
from bedplate.units import MIB
from bedplate.visit.cuts import Subject
from bedplate.visit.server import SessionFailed

SETTINGS = {"innodb_flush_log_at_trx_commit": "1", "innodb_flush_log_at_timeout": "1"}


class PlayedOracle:
    """Answers by what a statement has in it; everything adds up until it is told otherwise."""

    def __init__(self, **answers: Any) -> None:
        self._answers: dict[str, Any] = {
            "GROUP BY client": [["0", "3", "3", "1", "3"]],
            "coalesce(sum(balance": [["10", "10", "3", "0", "0"]],
            "account.id IS NULL": [["0"]],
            "FROM account FORCE INDEX (PRIMARY)": [["10", "55", "55"]],
            "FROM note FORCE INDEX (PRIMARY)": [["3", "9", "6"]],
            "FROM note FORCE INDEX (note_account)": [["3", "9", "9"]],
            "CHECK TABLE": [
                ["bedplate.account", "check", "status", "OK"],
                ["bedplate.note", "check", "status", "OK"],
            ],
            **answers,
        }

    def rows(self, statement: str, *, timeout_s: float) -> list[list[str | None]]:
        assert timeout_s > 0
        answer = next(found for part, found in self._answers.items() if part in statement)
        if isinstance(answer, Exception):
            raise answer
        return cast("list[list[str | None]]", answer)


def asked(**answers: Any) -> Any:
    return oracle.ask(cast("Any", PlayedOracle(**answers)), {0: 3}, rows=10)


def test_what_adds_up_is_no_finding() -> None:
    found = asked()
    assert ({0: 3}, (), ()) == (found.present, found.detected, found.silent)


@pytest.mark.parametrize(
    ("part", "answer", "words"),
    [
        ("GROUP BY client", [["0", "2", "2", "1", "3"]], "some are missing between others"),
        ("GROUP BY client", [["0", "5", "5", "1", "5"]], "3 was the last acknowledged"),
        ("coalesce(sum(balance", [["9", "9", "3", "0", "0"]], "10 accounts were made, 9 are there"),
        ("coalesce(sum(balance", [["10", "10", "3", "2", "0"]], "2 accounts' balances are not"),
        ("coalesce(sum(balance", [["10", "10", "3", "0", "1"]], "1 accounts have a filler"),
        ("account.id IS NULL", [["4"]], "4 accounts' balances are not"),
        (
            "FROM note FORCE INDEX (note_account)",
            [["2", "8", "8"]],
            "3 rows by its primary key and 2 by note_account",
        ),
        (
            "CHECK TABLE",
            [["bedplate.note", "check", "error", "Corrupt"]],
            "CHECK TABLE bedplate.note: error: Corrupt",
        ),
    ],
)
def test_what_only_the_oracle_sees_is_silent(part: str, answer: Any, words: str) -> None:
    found = asked(**{part: answer})
    assert () == found.detected
    assert words in found.silent[0]


def test_what_the_server_refuses_is_detected() -> None:
    refused = SessionFailed("ERROR 1712: Index note is corrupted", message="ERROR 1712")
    found = asked(**{"FROM note FORCE INDEX (note_account)": refused})
    assert (("ERROR 1712: Index note is corrupted",), ()) == (found.detected, found.silent)
    assert None is asked(**{"GROUP BY client": refused}).present


def test_the_first_errors_of_the_log_are_quoted(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    server = cast("Any", SimpleNamespace(log=log))
    assert () == oracle.complaints(server)
    lines = [f"2026-11-23 14:35:35 0 [ERROR] InnoDB: wrong {number}" for number in (1, 1, 2, 3, 4)]
    log.write_text("\n".join(["2026-11-23 14:35:35 0 [Note] InnoDB: fine", *lines]))
    assert ("InnoDB: wrong 1", "InnoDB: wrong 2", "InnoDB: wrong 3") == oracle.complaints(server)
    noted = "InnoDB: IO Error: 5 during write of 16384 bytes, for file ./bedplate/note.ibd(42), returned 0"
    log.write_text(f"2026-11-27  7:01:30 0 [Note] InnoDB: fine\n2026-11-27  7:01:30 0 [Note] {noted}\n")
    assert (noted,) == oracle.complaints(server)


@pytest.mark.parametrize(
    ("page_bytes", "last", "first"), [(4096, "255", "768"), (16384, "63", "192"), (65536, "63", "192")]
)
def test_the_doublewrite_buffer_is_no_part_of_the_system_tablespaces_pages(
    page_bytes: int, last: str, first: str
) -> None:
    assert (("--end-page", last), ("--start-page", first)) == oracle.page_ranges(page_bytes)


def test_settings_are_small_where_the_plan_says_nothing() -> None:
    found = oracle.recorded_settings({"innodb_log_file_size": "67108864"}, clients=2)
    assert ("67108864", 8 * MIB, 20) == (
        found["innodb_log_file_size"],
        found["innodb_buffer_pool_size"],
        found["max_connections"],
    )
    assert 24 * MIB == oracle.recorded_settings({"innodb_page_size": 65536})["innodb_buffer_pool_size"]


def test_a_transaction_sets_what_it_computes_from_first() -> None:
    text, commit = oracle.transaction(1, 2, 3)
    assert text.startswith("BEGIN; INSERT INTO note VALUES (1, 2, 3); ")
    assert (True, "COMMIT") == (text.endswith("WHERE id = 3"), commit)
    # An UPDATE of MariaDB's sees its own earlier assignments.
    assert text.index("filler = ") < text.index("balance = balance + 1")


@pytest.mark.parametrize(
    ("changed", "bound"),
    [
        ({}, None),
        ({"innodb_flush_log_at_trx_commit": "3"}, None),
        ({"innodb_flush_log_at_trx_commit": "2"}, 2000.0),
    ],
)
def test_a_loss_is_bounded_by_the_interval_of_the_flushes(
    changed: dict[str, str], bound: float | None
) -> None:
    assert bound == oracle.bound_ms({**SETTINGS, **changed})


def test_the_same_by_hand_names_the_cells_settings() -> None:
    build = EngineBuild("/tree/usr", "10.11.19", 0, 0, "", "", "", (), "d")
    subject = Subject("mariadb", 10, Levels(innodb_page_size=4096), Levels({}), build)
    lines = list(POWER_CUT.by_hand(subject, Path("/image/data"), Account("nobody", 1, 1), "as nobody"))
    assert "--datadir=/image/data" in lines[1]
    assert "--innodb_page_size=4096" in lines[1]
    assert lines[1].startswith("as nobody /tree/usr/sbin/mariadbd --no-defaults")
    assert "kill $!; wait" == lines[-1]
