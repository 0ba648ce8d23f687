"""The engines of examples/: their folders are understood, and what their writers acknowledge their checkers find."""

from __future__ import annotations

import json
import runpy
import shutil
import subprocess
from pathlib import Path

import pytest

from bedplate.engines.external.oracle import judge_document
from bedplate.engines.external.prepare import read_description
from bedplate.model.levels import Levels

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "engines"
# What makes a program of a source, without what makes it fast.
COMPILERS = {
    ".c": ("cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-o"),
    ".go": ("go", "build", "-o"),
    ".rs": ("rustc", "-o"),
}


def made(folder: Path, place: Path) -> Path:
    """A copy whose programs are compiled; skipped where their compiler is not there."""
    copied = Path(shutil.copytree(folder, place / folder.name))
    for source in sorted(copied.iterdir()):
        words = COMPILERS.get(source.suffix)
        if words is None:
            continue
        if shutil.which(words[0]) is None:
            pytest.skip(f"{words[0]} is not installed")
        subprocess.run(
            [*words, source.stem, source.name], cwd=copied, check=True, capture_output=True, timeout=300
        )
    return copied


def acknowledged(folder: Path, data: Path, *options: str) -> dict[int, int]:
    """The last number of each client that a second's run acknowledged."""
    argv = [str(folder / "writer"), str(data), "--clients=2", "--seed=7", "--duration=1", *options]
    done = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60)
    begin, *lines = done.stdout.splitlines()
    assert "begin" == begin
    assert done.stderr
    last: dict[int, int] = {}
    for line in lines:
        client, number = map(int, line.removeprefix("ack ").split())
        assert last.get(client, 0) + 1 == number
        last[client] = number
    assert {0, 1} == set(last)
    return last


def checked(folder: Path, data: Path, promised: dict[int, int]) -> None:
    done = subprocess.run(
        [str(folder / "checker"), str(data)], check=True, capture_output=True, text=True, timeout=60
    )
    found = judge_document(done.stdout, promised, oracle_s=None)
    assert (promised, (), ()) == (found.present, found.detected, found.silent), json.dumps(done.stdout)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("toy", ()),
        ("sqlite", ("--journal_mode=wal", "--synchronous=full", "--page_size=4096")),
        ("templates/c", ()),
        ("templates/go", ()),
        ("templates/rust", ()),
        ("templates/python", ()),
    ],
)
def test_what_a_writer_acknowledges_its_checker_finds(
    name: str, options: tuple[str, ...], tmp_path: Path
) -> None:
    folder = made(EXAMPLES / name, tmp_path)
    assert read_description((folder / "engine.toml").read_text()).name == name.replace("s/", "-")
    data = tmp_path / "data"
    data.mkdir()
    checked(folder, data, acknowledged(folder, data, *options))


@pytest.mark.parametrize(
    ("journal", "synchronous", "promised"),
    [
        ("delete", "full", "bounded loss"),
        ("delete", "extra", "durable"),
        ("wal", "full", "durable"),
        ("wal", "normal", "bounded loss"),
        ("persist", "full", "durable"),
        ("truncate", "off", "unsafe"),
    ],
)
def test_sqlite_promises_what_its_manual_does(journal: str, synchronous: str, promised: str) -> None:
    description = read_description((EXAMPLES / "sqlite" / "engine.toml").read_text())
    promise = description.promise(Levels(journal_mode=journal, synchronous=synchronous))
    assert promise is not None
    assert promised == promise.durability


@pytest.mark.parametrize("name", sorted(folder.name for folder in (EXAMPLES / "shelf").iterdir()))
def test_every_store_of_the_shelf_promises_something_at_each_level(name: str) -> None:
    description = read_description((EXAMPLES / "shelf" / name / "engine.toml").read_text())
    assert name == description.name
    for setting, kind in description.settings.items():
        for level in kind.levels:
            settings = Levels(description.options_for(Levels(**{setting: level})))
            assert description.promise(settings) is not None, f"{setting}={level}"


@pytest.mark.parametrize("kept", range(29))
def test_the_toy_takes_no_commit_record_whose_end_a_cut_tore_off(tmp_path: Path, kept: int) -> None:
    """Nor one whose fields are there without their length: zeros are the checksum of nothing."""
    namespace = runpy.run_path(str(EXAMPLES / "toy" / "store.py"))
    store = namespace["Store"](str(tmp_path))
    store.commit(0, 1, b"first")
    store.commit(1, 1, b"second")
    segment = tmp_path / "segment-000000"
    begin = 28 + len(b"first")
    content = segment.read_bytes()
    segment.write_bytes(content[: begin + kept] + bytes(len(content) - begin - kept))
    assert [(0, 1, b"first")] == namespace["Store"](str(tmp_path)).transactions
