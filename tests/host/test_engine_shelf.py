"""Own engines that are built of their sources, shut in but for what fetches, and writers with planted faults, which cuts find."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.engines.test_engine_examples import acknowledged, checked

from bedplate.engines.external import build
from bedplate.engines.external.build import runnable
from bedplate.engines.external.prepare import read_folder
from bedplate.errors import EXIT_SOME_RUNS_FAILED, BuildFailed, PlanError, RequirementMissing

pytestmark = [pytest.mark.host, pytest.mark.second_lane]

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "engines"
SHELF = EXAMPLES / "shelf"

# Says who it is, tries to reach a port, to write elsewhere and to read what is root's, and leaves the answers in a file.
_TRIES = """
import os, pathlib, socket, sys
said = [f"uid {os.getuid()}"]
def tries(what, how):
    try:
        how()
        said.append(f"{what}: done")
    except OSError as error:
        said.append(f"{what}: {type(error).__name__}")
tries("network", lambda: socket.create_connection(("127.0.0.1", int(sys.argv[1])), 3))
tries("elsewhere", lambda: pathlib.Path(sys.argv[2], "planted").write_text("x"))
tries("root's", lambda: list(pathlib.Path("/root").glob("*")) or pathlib.Path("/root/nothing").read_text())
pathlib.Path(sys.argv[3]).write_text("\\n".join(said))
"""
_PROGRAM = "#!/bin/sh\nexit 0\n"


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    # Not tmp_path: its parents are closed to every account but root.
    with tempfile.TemporaryDirectory(prefix="bedplate-test-shelf-") as folder:
        Path(folder).chmod(0o711)
        monkeypatch.setenv("BEDPLATE_CACHE", f"{folder}/cache")
        yield Path(folder)


def sources(place: Path, table: str) -> Path:
    folder = place / "sources"
    folder.mkdir()
    (folder / "engine.toml").write_text(f'name = "built"\n[build]\n{table}')
    (folder / "tries.py").write_text(_TRIES)
    (folder / "program").write_text(_PROGRAM)
    (folder / "program").chmod(0o755)
    return folder


def commands(*more: str) -> str:
    lists = (*more, '["cp", "program", "writer"]', '["cp", "program", "checker"]')
    return f"run = [{', '.join(lists)}]\n"


def silent(_: str) -> None:
    """Of what is being built."""


def test_a_build_has_no_network_and_its_fetcher_alone_has_one(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=lambda: [listener.accept() for _ in range(9)], daemon=True).start()
    port, elsewhere = str(listener.getsockname()[1]), place / "open"
    elsewhere.mkdir()
    elsewhere.chmod(0o777)
    argv = ("python3", "tries.py", port, str(elsewhere))
    fetcher = build._Fetcher("python3", (*argv, "fetched"), ("/usr/bin/python3", "--version"), (), {})
    monkeypatch.setitem(build._FETCHERS, "pip", fetcher)
    words = ", ".join(f'"{word}"' for word in (*argv, "ran"))
    table = f'fetch = "pip"\nkeep = ["fetched", "ran"]\n{commands(f"[{words}]")}'
    folder = runnable(sources(place, table), plant=None, report=silent)
    assert {"engine.toml", "writer", "checker", "fetched", "ran"} == {path.name for path in folder.iterdir()}
    fetched, ran = ((folder / name).read_text().splitlines() for name in ("fetched", "ran"))
    assert "network: done" == fetched[1]
    assert "network: done" not in ran
    for said in (fetched, ran):
        assert "uid 0" != said[0]
        assert {"elsewhere: done", "root's: done"}.isdisjoint(said)
    assert [] == list(elsewhere.iterdir())
    assert {0} == {path.stat().st_uid for path in (folder, *folder.iterdir())}
    listener.close()


def test_what_is_built_is_kept_until_a_source_changes(place: Path) -> None:
    heard: list[str] = []
    folder = sources(place, commands())
    first = runnable(folder, plant=None, report=heard.append)
    assert first == runnable(folder, plant=None, report=heard.append)
    (folder / "tries.py").write_text("")
    assert first != runnable(folder, plant=None, report=heard.append)
    assert 2 == len(heard)


@pytest.mark.parametrize(
    ("table", "error", "said"),
    [
        (
            'run = [["cp", "nothing", "writer"]]',
            BuildFailed,
            "cannot be built: cp nothing writer: .*No such file",
        ),
        ('needs = ["libfoo-dev"]\nrun = [["false"]]', BuildFailed, "it needs the packages libfoo-dev"),
        ('run = [["true"]]', BuildFailed, r"its \[build\] ended well and made no file writer"),
        ('run = [["ln", "-s", "/etc/passwd", "writer"]]', BuildFailed, "made no file writer"),
        (
            'run = [["rm", "-r", "/tmp/engine/program"]]',
            BuildFailed,
            "cannot be built: rm .*Read-only file system|cannot be built: rm .*Permission denied",
        ),
    ],
)
def test_what_a_build_did_not_make_is_named(
    place: Path, table: str, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        runnable(sources(place, table), plant=None, report=silent)
    assert [] == [path for path in (place / "cache/engines").glob("*") if not path.name.startswith(".")]


def test_a_toolchain_that_is_not_there_is_named(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "find_tool", lambda _: None)
    with pytest.raises(
        RequirementMissing, match="built is built with cargo, which is not in the search path"
    ):
        runnable(sources(place, f'fetch = "cargo"\n{commands()}'), plant=None, report=silent)


@pytest.mark.parametrize("flags", [("-static",), ("-static-pie", "-fPIE")])
def test_a_writer_that_no_preloaded_library_reaches_is_refused(place: Path, flags: tuple[str, ...]) -> None:
    folder = sources(place, commands(str(["cc", *flags, "-o", "program", "program.c"])))
    (folder / "program.c").write_text("int main(void) { return 0; }\n")
    with pytest.raises(PlanError, match="writer is linked statically, so that no preloaded library"):
        runnable(folder, plant="drop-fsync", report=silent)


def test_a_linked_writer_is_reached(place: Path) -> None:
    folder = sources(place, commands('["cc", "-o", "program", "program.c"]'))
    (folder / "program.c").write_text("int main(void) { return 0; }\n")
    planted = read_folder(runnable(folder, plant="drop-third-fsync", report=silent))
    assert "built.drop-third-fsync" == planted.description.name


@pytest.mark.parametrize("plant", ["drop-third-fsync", "drop-directory-fsync"])
def test_cuts_find_each_plant_in_a_store_that_survives_without(place: Path, plant: str) -> None:
    words = ("--on", "ext4", "--points", "8", "--recut", "0", "--duration", "2", "--fail-if", "bad", "--yes")
    argv = [
        "power-cut",
        "try",
        str(EXAMPLES / "toy"),
        "--plant",
        plant,
        *words,
        "--directory",
        f"{place}/cuts",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "bedplate", *argv],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env={**os.environ, "PYTHONPATH": str(EXAMPLES.parents[1] / "src")},
    )
    assert EXIT_SOME_RUNS_FAILED == done.returncode, done.stdout + done.stderr


_LEVELDB, _ROCKSDB = "/usr/include/leveldb/db.h", "/usr/include/rocksdb/db.h"


@pytest.mark.parametrize(
    ("name", "needs", "options"),
    [
        ("bbolt", ("go",), ("--commit=batch",)),
        ("redb", ("cargo",), ("--durability=immediate",)),
        ("fjall", ("cargo",), ("--persist=all",)),
        ("shelve", (), ("--dbm=dumb",)),
        ("tinydb", (), ()),
        ("leveldb", ("g++", _LEVELDB), ("--sync=every-50th",)),
        ("rocksdb", ("g++", _ROCKSDB), ("--sync=every-50th",)),
        ("redis", ("redis-server",), ("--appendfsync=everysec",)),
    ],
)
def test_what_is_on_the_shelf_is_built_and_finds_what_it_wrote(
    name: str, needs: tuple[str, ...], options: tuple[str, ...], tmp_path: Path
) -> None:
    missing = [need for need in needs if shutil.which(need) is None and not Path(need).exists()]
    if missing:
        pytest.skip(f"{', '.join(missing)} is not installed")
    try:
        folder = runnable(SHELF / name, plant=None, report=silent)
    except BuildFailed as error:
        fetches = ("cargo fetch", "go mod download", "pip install")
        if any(words in str(error) for words in fetches):
            pytest.skip(f"what it is built of cannot be fetched here: {error}")
        raise
    engine = read_folder(folder)
    at_hand = Path(shutil.copytree(folder, tmp_path / "programs"))
    for program, path in (("writer", engine.description.writer), ("checker", engine.description.checker)):
        if path != program:
            shutil.copyfile(folder / path, at_hand / program)
        (at_hand / program).chmod(0o755)
    data = tmp_path / "data"
    data.mkdir()
    checked(at_hand, data, acknowledged(at_hand, data, *options))
