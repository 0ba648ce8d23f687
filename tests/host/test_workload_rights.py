"""What a plan's own texts may do: no program runs in the server, and one that a client runs reaches nothing."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.host.conftest import built
from tests.support.tools.inner_process import descendants

from bedplate.campaign.preparation import MadeAnyway
from bedplate.engines.postgresql.visit import SQL, Cluster
from bedplate.errors import BedplateError
from bedplate.host.account import server_account
from bedplate.host.command import Commands
from bedplate.model.cell import (
    BuildLevels,
    Cell,
    ClusterLevels,
    Dataset,
    DeviceLevels,
    FilesystemLevels,
    KernelLevels,
)
from bedplate.model.levels import Levels
from bedplate.model.visit import Outcome
from bedplate.visit.server import ServerSite, SessionFailed
from bedplate.workloads.sysbench.prepare import INPUTS
from bedplate.workloads.sysbench.visit import Sysbench

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bedplate.model.cell import RunSpec

pytestmark = pytest.mark.host

PROGRAM = "COPY (SELECT 1) TO PROGRAM 'cat > {place}/program';\n"


def test_no_text_of_a_plan_starts_a_program(bench: Any, make_run: Callable[..., RunSpec]) -> None:
    place = Path(bench.base) / "open"
    place.mkdir()
    place.chmod(0o777)
    command = f"touch {place}/archived"
    own = f"archive_mode = on\narchive_command'{command}'\nport'1'\nwal_level = replica\nwork_mem = 5MB\n"
    scripts = {
        "program": PROGRAM.format(place=place),
        "file": f"COPY (SELECT 1) TO '{place}/file';\n",
        "system": "ALTER SYSTEM SET work_mem = '8MB';\n",
        "role": "SET SESSION AUTHORIZATION nobody;\n" + PROGRAM.format(place=place),
        "allowed": "SELECT count(*) FROM pg_stat_activity;\nCREATE TEMPORARY TABLE IF NOT EXISTS mine (id int);\n",
    }
    runs = tuple(
        make_run(name, script="custom", script_text=text, script_stem=name, clients=1)
        for name, text in scripts.items()
    )
    record = bench.live(bench.request(configuration=own, runs=runs))
    assert [] == sorted(path.name for path in place.iterdir())
    wrong = " ".join(map(str, record.reasons))
    assert "allowed" not in wrong, record.reasons
    assert Outcome.FAILED is record.outcome or wrong == ""
    asked = {item.name: item for item in record.comparisons}
    assert "5MB" == asked["setting work_mem"].effective
    assert "setting archive_command" not in asked
    assert [] == bench.left_behind()


def test_every_program_of_a_visit_that_is_not_bedplates_own_is_shut_in(
    bench: Any, make_run: Callable[..., RunSpec]
) -> None:
    found: dict[str, set[tuple[str, ...]]] = {}

    def look(line: str) -> None:
        event = json.loads(line)
        if event["event"] == "second" and event["phase"] == "measure":
            for status in descendants(bench.started[-1].pid):
                if status["Uid"].split()[0] != "0":
                    held = (status["NoNewPrivs"], status["Seccomp"])
                    found.setdefault(status["Name"], set()).add(held)

    record = bench.live(bench.request(runs=(make_run("only", script="read-write", duration_s=3),)), look)
    assert Outcome.COMPLETED is record.outcome, record.reasons
    assert {"postgres", "pgbench", "psql"} <= set(found)
    assert {("1", "2")} == set.union(*found.values())
    assert [] == bench.left_behind()


class _NothingHeld:
    """A test's server is ended by the test."""

    def note(self, holding: Any) -> None:
        """Nothing."""

    def settled(self, holding: Any) -> None:
        """Nothing."""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    account = server_account()
    with tempfile.TemporaryDirectory(prefix="bedplate-test-", dir="/dev/shm") as name:
        place = Path(name)
        place.chmod(0o755)
        for folder in ("data", "socket", "own"):
            (place / folder).mkdir(mode=0o700)
            shutil.chown(place / folder, account.uid, account.gid)
        found = Cluster(
            ServerSite(
                built(), place / "data", place / "socket", place / "log", account, Commands(), _NothingHeld()
            )
        )
        try:
            found.initialise(
                Cell(
                    DeviceLevels(),
                    KernelLevels(),
                    FilesystemLevels("none"),
                    BuildLevels(),
                    ClusterLevels(),
                )
            )
            found.start()
            found.create_database()
            yield found
        finally:
            found.kill()


# To a file that everybody may write and one that only root may read, by the network, by a socket with a path and by one without.
_REACH = """#!/usr/bin/python3
import glob, socket, sys
from pathlib import Path
own, mark, secret, port, *addresses = sys.argv[1:]
ways = [lambda: Path(mark).touch(), lambda: Path(secret).read_text(), lambda: socket.create_connection(("127.0.0.1", int(port)))]
for address in addresses:
    ways.append(lambda address=address: socket.socket(socket.AF_UNIX).connect(address.replace("@", chr(0))))
open_ = 0
for way in ways:
    try:
        way()
        open_ += 1
    except OSError:
        pass
held = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(("NoNewPrivs:", "Seccomp:"))]
Path(own, "told").write_text("; ".join((str(open_), *held)))
"""


@pytest.fixture
def marks() -> Iterator[Path]:
    """A folder of the machine in which everybody may write, with a file that only root may read."""
    with tempfile.TemporaryDirectory(prefix="bedplate-test-", dir="/opt") as name:
        folder = Path(name)
        (folder / "open").mkdir()
        (folder / "secret").write_text("secret")
        (folder / "secret").chmod(0o600)
        for path in (folder, folder / "open"):
            path.chmod(0o777)
        yield folder


@pytest.fixture
def sysbench() -> dict[str, str]:
    try:
        return dict(INPUTS.make(Dataset("sysbench", Levels({})), MadeAnyway(), lambda *_: None))
    except BedplateError as error:
        pytest.skip(f"the packages cannot be had here: {error}")


def program_that_reaches(
    folder: Path, own: Path, marks: Path, listener: socket.socket, listening: list[str]
) -> Path:
    """One of a name without blanks that tries every way out, and leaves in `own` how many are open."""
    words = [str(own), f"{marks}/open/mark", f"{marks}/secret", str(listener.getsockname()[1]), *listening]
    for name, text in (("reach", _REACH), ("run", f"#!/bin/sh\nexec {folder}/reach {' '.join(words)}\n")):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return folder / "run"


@pytest.mark.parametrize("program", ["psql", "pgbench", "fio", "sysbench"])
def test_what_a_client_starts_reaches_nothing(
    cluster: Cluster,
    listening: list[str],
    marks: Path,
    program: str,
    request: pytest.FixtureRequest,
) -> None:
    """A reader of scripts that misses a form, or an option that nobody knew: nothing is reached all the same."""
    if program == "fio" and shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    connection, place = cluster.connection, cluster.log.parent
    path, environment = str(connection.program(program)), None
    restriction = connection.restriction(writable=(place / "own",), readable=(place,))
    if program == "fio":
        path = program
    if program == "sysbench":
        inputs = request.getfixturevalue("sysbench")
        tool = Sysbench(inputs, SQL(cluster).endpoint, Dataset("sysbench", Levels({})))
        path, environment = tool.program, tool.environment()
        restriction = tool.restriction(connection.account, writable=(place / "own",), readable=(place,))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        # pgbench takes no long command.
        command = program_that_reaches(place, place / "own", marks, listener, listening)
        script = place / "script.lua"
        script.write_text(
            {
                "psql": f"\\! {command}\n",
                "pgbench": f"\\shell {command}\n",
                "fio": "",
                "sysbench": f'io.open("{marks}/open/lua", "w")\nos.execute("{command}")\nfunction event() end\n',
            }[program]
        )
        script.chmod(0o644)
        argv = {
            "psql": ("--no-psqlrc", f"--file={script}", *connection.options()),
            "pgbench": ("--no-vacuum", "--transactions=1", f"--file={script}", *connection.options()),
            "fio": (
                *("--name=x", "--size=4k", "--bs=4k", "--rw=write", f"--directory={place / 'own'}"),
                f"--exec_prerun={command}",
            ),
            "sysbench": ("--events=1", str(script), "run"),
        }[program]
        # Nothing holds this process.
        subprocess.run([command], check=True)
        assert (place / "own/told").read_text().startswith(f"{3 + len(listening)}; ")
        (marks / "open/mark").unlink()
        (place / "own/told").unlink()
        Commands().run(
            [path, *argv],
            confinement=restriction,
            check=False,
            directory=place / "own",
            extra_environment=environment,
        )
        assert "0; NoNewPrivs:\t1; Seccomp:\t2" == (place / "own/told").read_text()
        assert [] == list((marks / "open").iterdir())


def test_what_a_superuser_asks_of_the_server_reaches_nothing(
    listening: list[str], cluster: Cluster, marks: Path
) -> None:
    """In a copy of somebody's data, or on an image, views and triggers run with the owner's rights.

    The sockets are there before the server: one that is made later, where none are usually made, it does reach.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener, cluster.session() as session:
        # Where the server can read it.
        command = program_that_reaches(marks, cluster.data_directory, marks, listener, listening)
        session.execute("SELECT lo_from_bytea(77, 'x')")
        for statement in (
            f"SELECT lo_export(77, '{marks}/open/exported')",
            f"SELECT lo_import('{marks}/secret')",
            f"SELECT pg_read_file('{marks}/secret')",
            f"COPY (SELECT 1) TO '{marks}/open/copied'",
            f"SELECT pg_file_write('{marks}/open/written', 'x', false)",
        ):
            with pytest.raises(SessionFailed):
                session.execute(statement)
        session.execute(f"COPY (SELECT 1) TO PROGRAM '{command}'")
        assert "0; NoNewPrivs:\t1; Seccomp:\t2" == (cluster.data_directory / "told").read_text()
        assert [] == list((marks / "open").iterdir())
        # What it has for itself is there.
        session.execute(f"COPY (SELECT 1) TO '{cluster.data_directory}/copied'")
