"""What a server of somebody else's data is kept from: writing elsewhere, networks, sockets and processes of others."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.tools import breaking_out

from bedplate.host.account import server_account
from bedplate.host.command import Commands
from bedplate.host.shut_in import Confinement, own_processes, restrict

pytestmark = pytest.mark.host

_RESTRICTED = """
import os, socket, sys
from pathlib import Path
from bedplate.host.shut_in import restrict
own, read, *sockets = sys.argv[1:]
restrict((Path(own),), (Path(read),))
for folder in (own, read, "/etc"):
    try:
        Path(folder, "file").touch()
        print("wrote")
    except OSError as error:
        print(error.strerror)
print(*sorted(line.split(":")[0].strip() for line in Path("/proc/net/dev").read_text().splitlines()[2:]))
print(sorted(os.listdir(read)), Path(own, "before").read_text())
print(sorted(os.listdir("/run")), *(path for path in ("/tmp", "/var/tmp") if "bedplate-test" in " ".join(os.listdir(path))))
for address in sockets:
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(address.replace("@", chr(0)))
            print("connected to", address)
        except OSError as error:
            print(error.strerror)
"""


def _restricted(own: Path, read: Path, *sockets: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _RESTRICTED, str(own), str(read), *sockets],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("place", ["/tmp", "/run", "/opt"])
def test_a_restricted_process_writes_nowhere_else_has_no_network_and_reaches_no_socket(
    place: str, listening: list[str]
) -> None:
    with tempfile.TemporaryDirectory(dir=place) as folder:
        own, read = Path(folder, "own"), Path(folder, "read")
        own.mkdir()
        read.mkdir()
        (own / "before").write_text("kept")
        (read / "program").touch()
        done = _restricted(own, read, *listening)
        assert (0, "") == (done.returncode, done.stderr)
        told = done.stdout.splitlines()
        assert ["wrote", "Read-only file system", "Read-only file system"] == told[:3]
        assert (own / "file").exists()
    assert {"lo"} >= set(told[3].split()) - {
        "tunl0",
        "sit0",
        "ip6tnl0",
        "gre0",
        "gretap0",
        "erspan0",
        "ip_vti0",
        "ip6_vti0",
        "ip6gre0",
    }
    assert "program" in told[4]
    assert told[4].endswith(" kept")
    assert told[5] == (str([Path(folder).name]) if place == "/run" else "[]")
    refused, gone = "Connection refused", "No such file or directory"
    assert [refused, gone, gone, gone, refused] == told[6:]


def test_a_server_that_would_work_among_the_sockets_of_others_is_refused(tmp_path_factory: Any) -> None:
    own = tmp_path_factory.mktemp("own")
    for writable, readable in (("/", own), ("/tmp", own), ("/var", own), (own, "/run")):
        done = _restricted(Path(writable), Path(readable))
        assert done.returncode == 1
        assert (
            "where the machine's sockets and shared memory are; put its folders below another one"
            in done.stderr
        )


def test_a_process_that_begins_apart_sees_and_traces_no_other_of_its_account(
    tmp_path_factory: Any, listening: list[str]
) -> None:
    own, in_run = tmp_path_factory.mktemp("own"), listening[1]
    look = "import glob, sys; print(sys.argv[1:], sorted(glob.glob('/proc/[0-9]*')), glob.glob('/proc/*/root/run/*/socket'))"
    account = server_account()

    def become() -> None:
        restrict((own,))
        os.setgid(account.gid)
        os.setuid(account.uid)

    # Outside, as a workload's client is.
    with subprocess.Popen(["/bin/sleep", "60"], user=account.uid, group=account.gid) as client:
        assert Path(f"/proc/{client.pid}/root{in_run}").is_socket()
        with own_processes():
            process = subprocess.Popen(
                ["/usr/bin/env", "python3", "-c", look],
                preexec_fn=become,  # noqa: PLW1509 -- no threads
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                cwd="/",
            )
        with process:
            told, _ = process.communicate(timeout=60)
        client.kill()
    assert "[] ['/proc/1'] []\n" == told
    # This process is where it was.
    assert Path("/proc/self/ns/pid").readlink().name == Path("/proc/self/ns/pid_for_children").readlink().name


# A program of everybody's: that of the tests may lie in a folder of root's.
_PYTHON = "/usr/bin/python3"


@pytest.fixture
def prison(listening: list[str]) -> Iterator[tuple[Path, Path, tuple[str, ...]]]:
    """A folder to work in, one to read with the program that breaks out, and the words that it takes."""
    with (
        tempfile.TemporaryDirectory(prefix="bedplate-test-", dir="/opt") as folder,
        tempfile.NamedTemporaryFile(prefix="bedplate-test-", dir="/dev/shm") as shared,
    ):
        base, account = Path(folder), server_account()
        base.chmod(0o755)
        for name, mode in (("own", 0o755), ("programs", 0o755), ("everybodys", 0o777)):
            (base / name).mkdir()
            (base / name).chmod(mode)
        os.chown(base / "own", account.uid, account.gid)
        Path(shared.name).chmod(0o644)
        setuid = base / "id"
        shutil.copy("/usr/bin/id", setuid)
        setuid.chmod(0o4755)
        program = base / "programs" / "breaking_out.py"
        program.write_text(f"#!{_PYTHON}\n{Path(breaking_out.__file__).read_text()}")
        program.chmod(0o755)
        words = (shared.name, str(base / "everybodys"), str(setuid), *listening)
        yield base / "own", base / "programs", words
        assert [] == list((base / "everybodys").iterdir())


def test_a_restricted_program_has_no_way_out(prison: tuple[Path, Path, tuple[str, ...]]) -> None:
    own, programs, words = prison
    account = server_account()
    # Nothing of it is a wall to this process.
    assert {"AF_INET", "shared memory of others", "keys", "io_uring", *words[3:]} <= set(
        breaking_out.open_ways(words[0], words[1], words[2], words[3:])
    )
    (Path(words[1]) / "left").unlink()

    def become() -> None:
        restrict((own,), (programs,))
        os.setgroups([])
        os.setgid(account.gid)
        os.setuid(account.uid)

    with own_processes():
        process = subprocess.Popen(
            [programs / "breaking_out.py", *words],
            preexec_fn=become,  # noqa: PLW1509 -- no threads
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd="/",
        )
    with process:
        told, _ = process.communicate(timeout=60)
    assert [] == json.loads(told)


def test_a_confined_program_has_no_way_out_but_an_io_uring(
    prison: tuple[Path, Path, tuple[str, ...]],
) -> None:
    own, programs, words = prison
    confined = Confinement(
        ("/tmp/engine/breaking_out.py", *words),
        own,
        programs,
        server_account(),
    )
    told = Commands().run(confined.argv, confinement=confined)
    # An engine may do its I/O by it.
    assert ["io_uring"] == json.loads(told.stdout)


def test_a_confined_program_ends_as_it_did_and_one_that_cannot_begin_says_why(tmp_path_factory: Any) -> None:
    own, account = tmp_path_factory.mktemp("own"), server_account()
    os.chown(own, account.uid, account.gid)
    for name, text in (
        ("ends", "exit 7"),
        ("crashes", "kill -SEGV $$"),
        ("leaves", "sleep 1000 & setsid sleep 1000 & exit 0"),
    ):
        (own / name).write_text(f"#!/bin/sh\n{text}\n")
        (own / name).chmod(0o755)
    for argv, status, said in (
        (("/tmp/engine/ends",), 7, ""),
        (("/tmp/engine/crashes",), 139, ""),
        (("/tmp/engine/leaves",), 0, ""),
        (("/tmp/engine/none",), 127, "/tmp/engine/none: No such file or directory\n"),
        (("/etc/passwd",), 126, "/etc/passwd: Permission denied\n"),
    ):
        confined = Confinement(argv, own, own, account)
        done = Commands().run(argv, check=False, confinement=confined)
        assert (status, said) == (done.status, done.stderr)
    unfit = Confinement(("/bin/true",), Path("/tmp"), own, account)
    done = Commands().run(unfit.argv, check=False, confinement=unfit)
    assert (125, True) == (done.status, "cannot work in /tmp, where" in done.stderr)
