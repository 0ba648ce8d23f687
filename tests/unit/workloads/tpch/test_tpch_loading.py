"""The load on a server that is played: what is said to it, and what becomes of its failures."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.runs.played_tpch import (
    Play,
    Rows,
    usual_answer,
)

from bedplate.errors import BedplateError
from bedplate.model.reason import sentences
from bedplate.model.visit import Outcome
from bedplate.visit.server import SessionFailed
from bedplate.workloads.tpch.model import LOAD_PHASES
from bedplate.workloads.tpch.queries import TABLES, Statement
from bedplate.workloads.tpch.visit import copy_command, csv_rows


def test_a_table_is_loaded_in_one_transaction_that_empties_it(play: Play) -> None:
    play.write_data()
    record = play.run("load")
    assert (Outcome.COMPLETED, ()) == (record.outcome, record.reasons)
    said = play.server.said
    begins = [place for place, text in enumerate(said) if text == "BEGIN"]
    assert len(TABLES) == len(begins)
    for name, place in zip(TABLES, begins, strict=True):
        assert [
            f"TRUNCATE {name}",
            f"\\copy {name} from '{play.base}/data/{name}.csv' with (format csv, header match, freeze)",
            "SELECT :ROW_COUNT",
            "COMMIT",
        ] == said[place + 1 : place + 5]
    # Bare tables first, and no autovacuum on any of them.
    assert all(text.startswith("create table") for text in said[: len(TABLES)])
    assert all(text.endswith("with (autovacuum_enabled = off)") for text in said[: len(TABLES)])


def test_the_steps_of_a_load_follow_one_another(play: Play) -> None:
    play.write_data()
    record = play.run("load")
    assert LOAD_PHASES == tuple(phase.name for phase in record.phases)
    assert LOAD_PHASES == tuple(counters.phase for counters in record.phase_counters)
    kinds = [
        next(
            (
                kind
                for kind in (
                    "copy",
                    "primary key",
                    "foreign key",
                    "create index",
                    "default_statistics_target = 1000",
                    "ANALYZE",
                    "CHECKPOINT",
                )
                if kind in text
            ),
            "",
        )
        for text in play.server.said
    ]
    assert [
        "copy",
        "primary key",
        "foreign key",
        "create index",
        "default_statistics_target = 1000",
        "ANALYZE",
        "CHECKPOINT",
    ] == list(dict.fromkeys(filter(None, kinds)))
    assert {"load", "primary keys", "foreign keys", "indexes"} == {item.phase for item in record.items}
    assert 4096 == record.facts["database_bytes"] == record.facts["wal_bytes_on_disk"]
    told = [(event["done"], event["of"]) for event in play.events]
    assert [(place, len(told) - 1) for place in range(len(told))] == told
    assert all(session.closed for session in play.server.sessions)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ({"nation": 24}, ["nation.csv has 24 rows, and nation has 25 at scale factor 0.001"]),
        ({"region": 6, "orders": 0}, ["region.csv has 6 rows", "orders.csv has 0 rows"]),
    ],
)
def test_data_of_the_wrong_length_are_not_loaded(play: Play, rows: dict[str, int], words: list[str]) -> None:
    play.write_data(rows)
    record = play.run("load")
    assert Outcome.FAILED == record.outcome
    for word, reason in zip(words, sentences(record.reasons), strict=True):
        assert word in reason
    assert [] == play.server.said


def test_every_file_that_is_missing_is_named(play: Play) -> None:
    assert 8 == len(play.run("load").reasons)
    play.inputs = {}
    (reason,) = sentences(play.run("load").reasons)
    assert "no folder of CSV files" in reason


def test_what_psql_says_of_a_copy_is_an_error_be_it_no_error_of_the_server(play: Play) -> None:
    play.write_data()

    def answer(statement: str) -> Rows:
        return [["/data/part.csv: Permission denied"]] if "\\copy part " in statement else []

    play.server.answer = answer
    record = play.run("load")
    assert ("part cannot be loaded: /data/part.csv: Permission denied",) == sentences(record.reasons)
    assert "COMMIT" not in play.server.said[play.server.said.index("TRUNCATE part") :]


def test_a_copy_that_took_other_rows_than_its_file_has_fails(play: Play) -> None:
    play.write_data()

    def lose_a_row(statement: str) -> Rows:
        if "\\copy orders" in statement:
            (play.base / "data" / "orders.csv").write_text("header\n1\n")
        return usual_answer(statement)

    play.server.answer = lose_a_row
    record = play.run("load")
    (reason,) = sentences(record.reasons)
    assert "orders took 1 rows" in reason
    assert "has 1500" in reason


def test_a_load_that_fails_keeps_what_it_measured_and_names_the_server(play: Play) -> None:
    play.write_data()

    def die(statement: str) -> Rows:
        if "foreign key" in statement:
            play.server.alive = False
            raise SessionFailed("the server closed the connection: no message")
        return usual_answer(statement)

    play.server.answer = die
    record = play.run("load")
    assert Outcome.FAILED == record.outcome
    assert "the server closed the connection: no message" in sentences(record.reasons)
    assert any("the server died" in reason for reason in sentences(record.reasons))
    assert 16 == len(record.items)
    assert ("load", "primary keys") == tuple(counters.phase for counters in record.phase_counters)
    assert record.before is not None
    assert record.after is None


@settings(deadline=None)
@given(rows=st.lists(st.text(alphabet='ab,"', max_size=5)), ends=st.booleans())
def test_rows_are_the_lines_without_the_header(
    tmp_path_factory: pytest.TempPathFactory, rows: list[str], ends: bool
) -> None:
    path = tmp_path_factory.mktemp("csv") / "x.csv"
    # A last line that is empty and does not end is no line.
    text = "\n".join(["header", *rows]) + ("\n" if ends or (rows and not rows[-1]) else "")
    path.write_text(text)
    assert len(rows) == csv_rows(path)


def test_a_file_without_even_a_header_has_no_rows(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"")
    assert 0 == csv_rows(tmp_path / "x.csv")
    with pytest.raises(BedplateError, match="cannot be read"):
        csv_rows(tmp_path / "y.csv")


def test_lines_are_counted_over_more_than_one_chunk(tmp_path: Path) -> None:
    with (tmp_path / "x.csv").open("wb") as file:
        file.write(b"x" * (1 << 20) + b"\n" + b"1|2\n" * 400_000)
    assert 400_000 == csv_rows(tmp_path / "x.csv")


def test_a_path_is_quoted_for_psql() -> None:
    statement = Statement("part", "copy part from stdin with (format csv)")
    assert "\\copy part from '/it''s from stdin here/part.csv' with (format csv)" == copy_command(
        statement, Path("/it's from stdin here/part.csv")
    )
    with pytest.raises(BedplateError, match="line break"):
        copy_command(statement, Path("/a\n\\! rm/part.csv"))
