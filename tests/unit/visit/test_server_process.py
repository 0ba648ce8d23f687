"""The process of a server that reads its commands and ends by itself."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bedplate.host.command import Account, Commands
from bedplate.visit.server import ServerFailed, ServerProcess, ServerSite

if TYPE_CHECKING:
    from bedplate.host.ledger import Holding


class _Noted:
    def __init__(self) -> None:
        self.held: list[str] = []

    def note(self, holding: Holding) -> None:
        self.held.append(holding.name)

    def settled(self, holding: Holding) -> None:
        self.held.remove(holding.name)


@pytest.fixture
def noted() -> _Noted:
    return _Noted()


@pytest.fixture
def process(tmp_path: Path, noted: _Noted) -> ServerProcess:
    """One that would run as who runs the test."""
    own = Account("self", os.getuid(), os.getgid())
    site = ServerSite(None, tmp_path / "data", tmp_path, tmp_path / "server.log", own, Commands(), noted)
    return ServerProcess(site, "/bin")


def test_commands_are_read_to_their_end_and_nothing_is_held_behind_it(
    process: ServerProcess, noted: _Noted, tmp_path: Path
) -> None:
    process.start(("/bin/cat",), commands="first\nsecond\n")
    process.demand_end(60)
    assert ("first\nsecond\n", []) == ((tmp_path / "server.log").read_text(), noted.held)


def test_an_end_that_is_none_in_order_is_told_by_the_last_words(
    process: ServerProcess, noted: _Noted
) -> None:
    process.start(("/bin/sh",), commands="echo no checkpoint record; exit 3\n")
    with pytest.raises(ServerFailed, match="ended with status 3: no checkpoint record"):
        process.demand_end(60)
    process.start(("/bin/sh",), commands="exec sleep 600\n")
    with pytest.raises(ServerFailed, match=r"did not end within 0\.2 s"):
        process.demand_end(0.2)
    assert [] == noted.held
