"""The LMDB driver of power cuts: what it wrote is told exactly, and each planted fault is found."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.tools.patience import AT_MOST_S

from bedplate.campaign.preparation import prepare_drivers
from bedplate.engines.lmdb.visit import LIBLMDB
from bedplate.host.command import Commands
from bedplate.host.native_driver import library_requirement
from bedplate.units import MIB

pytestmark = [pytest.mark.host, pytest.mark.third_lane]

WRONG = ("balances_wrong", "values_wrong", "order_wrong", "counts_wrong", "pages_unaccounted")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@pytest.fixture(scope="module")
def driver() -> Path:
    requirement = library_requirement(LIBLMDB, reason="the LMDB driver of power cuts", commands=Commands())
    if not requirement.found:
        pytest.skip(requirement.sentence)
    return Path(prepare_drivers(["power_cut"], ["lmdb"])["power_cut_lmdb"])


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="bedplate-test-lmdb-", dir="/dev/shm") as found:
        (Path(found) / "data").mkdir()
        yield Path(found)


def written(driver: Path, folder: Path, *words: str) -> tuple[dict[str, Any], list[str]]:
    """The document of a second's transactions, and the marks."""
    marks = folder / "marks"
    marks.write_bytes(b"")
    argv = [
        str(driver),
        "write",
        f"--directory={folder / 'data'}",
        f"--mark={marks}",
        "--duration-s=1",
        *words,
    ]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=AT_MOST_S)
    ready, document = done.stdout.splitlines()
    assert {"ready": True} == json.loads(ready)
    return json.loads(document), marks.read_text().splitlines()


def checked(driver: Path, folder: Path, *, status: int = 0) -> dict[str, Any]:
    argv = [str(driver), "check", f"--directory={folder / 'data'}"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=AT_MOST_S)
    assert status == done.returncode, done.stdout
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    "words",
    [
        ("--clients=3",),
        ("--set=sync=nometasync", "--set=preallocation=written", f"--set=map_bytes={64 * MIB}"),
        ("--set=sync=nosync", "--pressure-ms=20", "--set=readahead=false"),
        ("--set=writemap=true", "--set=preallocation=fallocate"),
        ("--set=writemap=true", "--set=sync=mapasync", "--set=preallocation=ftruncate"),
    ],
)
def test_everything_that_was_committed_is_found(driver: Path, folder: Path, words: tuple[str, ...]) -> None:
    document, marks = written(driver, folder, *words)
    found = checked(driver, folder)
    clients = 3 if "--clients=3" in words else 2
    assert document["transactions"] == found["entries"] == sum(client["last"] for client in found["clients"])
    assert list(range(clients)) == [client["client"] for client in found["clients"]]
    assert {0} == {client["gaps"] for client in found["clients"]}
    assert dict.fromkeys(WRONG, 0) == {name: found[name] for name in WRONG}
    assert found["failure"] is None
    assert (marks[0], marks[-1]) == ("begin", "end")
    assert document["transactions"] == len(marks) - 2
    told = [tuple(map(int, mark.split()[1:])) for mark in marks[1:-1]]
    assert [(number % clients, number // clients + 1) for number in range(len(told))] == [
        (client, sequence) for client, sequence, _ in told
    ]
    times = [time_us for _, _, time_us in told]
    assert times == sorted(times)


def test_a_killed_writer_leaves_what_it_marked(driver: Path, folder: Path) -> None:
    marks = folder / "marks"
    marks.write_bytes(b"")
    argv = [str(driver), "write", f"--directory={folder / 'data'}", f"--mark={marks}", "--duration-s=60"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b'{"ready": true}\n'
        while marks.read_bytes().count(b"\n") < 100:
            os.sched_yield()
        writer.send_signal(signal.SIGKILL)
    acknowledged = marks.read_bytes().count(b"\nA ")
    found = checked(driver, folder)
    # The last commit may be there without its mark.
    assert acknowledged <= found["entries"] <= acknowledged + 1
    assert dict.fromkeys(WRONG, 0) == {name: found[name] for name in WRONG}


def test_an_older_state_is_consistent_and_shorter(driver: Path, folder: Path) -> None:
    """LMDB keeps two meta pages: without the newer one the last commit never was."""
    document, _ = written(driver, folder)
    data = folder / "data/data.mdb"
    content = bytearray(data.read_bytes())
    # Each meta page ends in its transaction's number, at a place that holds for 64 bits.
    numbers = [struct.unpack_from("<Q", content, page * _PAGE_BYTES + 16 + 128)[0] for page in (0, 1)]
    newer = numbers.index(max(numbers))
    content[newer * _PAGE_BYTES + 16 : newer * _PAGE_BYTES + 160] = content[
        (1 - newer) * _PAGE_BYTES + 16 : (1 - newer) * _PAGE_BYTES + 160
    ]
    data.write_bytes(content)
    found = checked(driver, folder)
    assert document["transactions"] - 1 == found["entries"]
    assert dict.fromkeys(WRONG, 0) == {name: found[name] for name in WRONG}


@pytest.mark.parametrize(
    ("key", "offset", "wrong"),
    [
        # Half a transaction: an entry that says another change than the accounts got.
        (struct.pack(">IQ", 1, 7), 12, "balances_wrong"),
        # A torn value, behind what it says.
        (struct.pack(">IQ", 1, 7), 60, "values_wrong"),
    ],
)
def test_a_changed_byte_of_an_entry_is_found(
    driver: Path, folder: Path, key: bytes, offset: int, wrong: str
) -> None:
    written(driver, folder)
    data = folder / "data/data.mdb"
    content = bytearray(data.read_bytes())
    pages = [at for at in _all_of(content, key) if at % _PAGE_BYTES]
    for at in pages:
        content[at + len(key) + offset] ^= 0x40
    data.write_bytes(content)
    found = checked(driver, folder)
    assert 1 <= found[wrong]


def _all_of(content: bytearray, key: bytes) -> list[int]:
    found, at = [], content.find(key)
    while at >= 0:
        found.append(at)
        at = content.find(key, at + 1)
    return found


def test_a_zeroed_page_is_found_or_ends_the_check(driver: Path, folder: Path) -> None:
    """Every page that is in use, one after the other; what is free may be zero without harm."""
    written(driver, folder, "--accounts=100")
    data = folder / "data/data.mdb"
    whole = data.read_bytes()
    clean = checked(driver, folder)
    pages = range(2, clean["pages"]["last"] + 1, max(1, clean["pages"]["last"] // 60))
    harmless = 0
    for page in pages:
        content = bytearray(whole)
        content[page * _PAGE_BYTES : (page + 1) * _PAGE_BYTES] = bytes(_PAGE_BYTES)
        data.write_bytes(content)
        argv = [str(driver), "check", f"--directory={folder / 'data'}"]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=AT_MOST_S)
        if done.returncode == 0:
            found = json.loads(done.stdout)
            harmless += not any(found[name] for name in WRONG) and found["entries"] == clean["entries"]
    # Which are free is chance: all of these may be among those that were tried.
    assert harmless <= clean["pages"]["free"]
    assert harmless < len(pages) // 2


def test_an_environment_that_is_not_there_is_a_failure(driver: Path, folder: Path) -> None:
    found = checked(driver, folder, status=1)
    assert ("open the environment", 2) == (found["failure"]["step"], found["failure"]["code"])


def test_a_full_map_is_said(driver: Path, folder: Path) -> None:
    argv = [
        str(driver),
        "write",
        f"--directory={folder / 'data'}",
        f"--set=map_bytes={4 * MIB}",
        "--duration-s=60",
    ]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=AT_MOST_S)
    assert 1 == done.returncode
    failure = json.loads(done.stdout.splitlines()[-1])["failure"]
    assert "MDB_MAP_FULL" in failure["error"]


def test_an_environment_is_not_written_twice(driver: Path, folder: Path) -> None:
    written(driver, folder)
    argv = [str(driver), "write", f"--directory={folder / 'data'}", "--duration-s=1"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=AT_MOST_S)
    assert 1 == done.returncode
    assert "make a new environment" == json.loads(done.stdout)["failure"]["step"]


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("write",),
        ("read", "--directory=/x"),
        ("write", "--directory=/x", "--set=sync=mapasync"),
        ("write", "--directory=/x", "--clients=-1"),
        ("write", "--directory=/x", "--set=map_bytes=5000"),
    ],
)
def test_a_wrong_call_is_told(driver: Path, words: tuple[str, ...]) -> None:
    done = subprocess.run([str(driver), *words], capture_output=True, text=True, check=False)
    assert 2 == done.returncode
    assert done.stderr.startswith("bedplate-power-cut: ")


def test_a_mark_that_cannot_be_written_ends_the_writer(driver: Path, folder: Path) -> None:
    argv = [str(driver), "write", f"--directory={folder / 'data'}", "--mark=/dev/full", "--duration-s=1"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=AT_MOST_S)
    assert 1 == done.returncode
    assert "write a mark" == json.loads(done.stdout.splitlines()[-1])["failure"]["step"]
