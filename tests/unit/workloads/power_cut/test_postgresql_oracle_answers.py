"""What the oracle makes of the answers of a server, whatever their order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from bedplate.engines.postgresql.oracle import ask
from bedplate.engines.postgresql.visit import Cluster, Session
from bedplate.host.command import Account, Commands
from bedplate.host.ledger import NoLedger
from bedplate.model.visit import EngineBuild
from bedplate.visit.server import ServerProcess, ServerSite

_NOTES = 20_000
_SUMS = [
    ["account_pkey", "10000", "50005000"],
    ["note_pkey", str(_NOTES), "10060000000"],
    ["note_account", str(_NOTES), "100010000"],
]


class Answers:
    """A server whose tables are whole; `by_index` are the rows that its indexes are asked for, in their order."""

    def __init__(self, by_index: Sequence[Sequence[str]]) -> None:
        self._by_index = by_index

    def rows(self, question: str, *, timeout_s: float) -> list[list[str]]:
        if "GROUP BY client" in question:
            return [["1", str(_NOTES), str(_NOTES), "1", str(_NOTES)]]
        if "FULL JOIN" in question:
            return [["10000", str(_NOTES), "0", "0", "10000", "0"]]
        if "UNION ALL" in question:
            return [list(row) for row in (self._by_index if "enable_seqscan" in question else _SUMS)]
        return []


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (0, 2, 1)])
def test_indexes_that_answer_in_another_order_are_no_damage(order: Sequence[int]) -> None:
    session = cast(Session, Answers([_SUMS[place] for place in order]))
    answer = ask(session, {1: _NOTES}, rows=10_000)
    assert ((), ()) == (answer.detected, answer.silent)


def test_an_index_that_lacks_a_row_is_named_whatever_the_order() -> None:
    lacking = [[*_SUMS[2][:1], str(_NOTES - 1), "100009999"], _SUMS[0], _SUMS[1]]
    answer = ask(cast(Session, Answers(lacking)), {1: _NOTES}, rows=10_000)
    (said,) = answer.silent
    assert said.startswith(f"note has {_NOTES} rows by its pages and {_NOTES - 1} by note_account; ")


@pytest.mark.parametrize(
    ("version", "thrown_away", "expected"),
    [
        ("18.1", True, {"recovery_init_sync_method=syncfs", "io_method=sync"}),
        ("17.4", True, {"recovery_init_sync_method=syncfs"}),
        # A recovery that is recorded is written and flushed as the recorded server would.
        ("18.1", False, set()),
    ],
)
def test_a_server_on_a_copy_that_is_thrown_away_does_not_wait_for_its_device(
    version: str, thrown_away: bool, expected: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Sequence[str]] = []
    monkeypatch.setattr(ServerProcess, "start", lambda _, argv, **__: started.append(argv))
    monkeypatch.setattr(Cluster, "wait_until_ready", lambda *_, **__: None)
    build = EngineBuild(str(tmp_path), version, 8192, 8192, "", "", "", (), "d")
    site = ServerSite(
        build,
        tmp_path,
        tmp_path,
        tmp_path / "log",
        Account("me", 1, 1),
        Commands(),
        NoLedger(),
        thrown_away=thrown_away,
    )
    Cluster(site).start()
    own = {word for word in started[0] if word.startswith(("recovery_", "io_method"))}
    assert expected == own
