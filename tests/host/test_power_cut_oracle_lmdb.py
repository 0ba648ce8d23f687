"""The oracle of LMDB on planted faults: what was done to a whole environment by hand, and what it calls it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bedplate.campaign.preparation import prepare_drivers
from bedplate.host.account import server_account
from bedplate.host.command import Account, Commands
from bedplate.visit import cuts
from bedplate.visit.cuts import OracleAnswer

pytestmark = [pytest.mark.host, pytest.mark.third_lane]


def scribble(path: Path, offset: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)


@pytest.fixture(scope="module")
def lmdb_driver() -> str:
    return prepare_drivers(["power_cut"], ["lmdb"])["power_cut_lmdb"]


@dataclass
class Environment:
    """A closed environment and what was promised of it."""

    directory: Path
    promised: dict[int, int]
    driver: str
    account: Account

    @property
    def file(self) -> Path:
        return self.directory / "data.mdb"

    def examine(self, promised: dict[int, int] | None = None) -> OracleAnswer:
        return cuts.examine(
            self.directory,
            self.driver,
            self.promised if promised is None else promised,
            account=self.account,
            commands=Commands(),
        )


@pytest.fixture
def environment(lmdb_driver: str) -> Iterator[Environment]:
    base = Path(tempfile.mkdtemp(prefix="bedplate-test-oracle-", dir="/dev/shm"))
    base.chmod(0o755)
    account = server_account()
    directory, mark = base / "data", base / "marks"
    directory.mkdir()
    mark.touch()
    for path in (directory, mark):
        shutil.chown(path, account.uid, account.gid)
    words = ("write", f"--directory={directory}", f"--mark={mark}", "--duration-s=1", "--set=sync=nosync")
    try:
        Commands().run([lmdb_driver, *words], account=account)
        promised: dict[int, int] = {}
        for line in mark.read_text().splitlines():
            kind, *numbers = line.split()
            if kind == "A":
                promised[int(numbers[0])] = int(numbers[1])
        yield Environment(directory, promised, lmdb_driver, account)
    finally:
        shutil.rmtree(base)


def test_a_whole_environment_has_every_promise(environment: Environment) -> None:
    answer = environment.examine()
    assert (environment.promised, (), ()) == (answer.present, answer.detected, answer.silent)
    assert len(environment.promised) == 2


def test_an_environment_that_ends_early_is_detected(environment: Environment) -> None:
    os.truncate(environment.file, environment.file.stat().st_size // 2)
    answer = environment.examine()
    assert answer.present is None
    assert answer.detected


def test_zeroed_pages_of_an_environment_are_found(environment: Environment) -> None:
    pages = environment.file.stat().st_size // 4096
    scribble(environment.file, (pages // 2) * 4096, bytes(64 * 4096))
    answer = environment.examine()
    assert answer.detected or answer.silent


def test_an_older_commit_is_a_loss_and_consistent(environment: Environment) -> None:
    """LMDB keeps the last two commits in two pages: without the newer one the one before is in force."""
    newest = max((0, 1), key=lambda page: transaction_of(environment.file, page))
    scribble(environment.file, newest * 4096, environment.file.read_bytes()[(1 - newest) * 4096 :][:4096])
    answer = environment.examine()
    assert ((), ()) == (answer.detected, answer.silent)
    assert answer.present is not None
    assert sum(environment.promised.values()) - 1 == sum(answer.present.values())


def transaction_of(path: Path, page: int) -> int:
    """The transaction of a meta page: the last word of MDB_meta (mdb.c), 16 bytes of page header before it."""
    # magic 4, version 4, address 8, mapsize 8, two databases of 48, last page 8
    at = page * 4096 + 16 + 4 + 4 + 8 + 8 + 96 + 8
    return int.from_bytes(path.read_bytes()[at : at + 8], "little")


def test_a_foreign_document_is_not_understood(environment: Environment) -> None:
    found = subprocess.run(
        [environment.driver, "check", f"--directory={environment.directory}"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    document = json.loads(found.splitlines()[-1])
    document["balances_wrong"] = 3
    answer = cuts.judge_document(document, environment.promised, oracle_s=None)
    assert answer.silent == ("3 accounts are not the sum of their entries",)
