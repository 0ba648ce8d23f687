"""A bundle, and a study, of a stranger's: what it holds is looked at, and neither obeyed nor followed."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.tools.scratch_disk import looped

from bedplate.engines.external.oracle import REPRODUCTION as EXTERNAL
from bedplate.engines.external.prepare import PROGRAMS_KEY
from bedplate.engines.sqlite.oracle import REPRODUCTION as SQLITE
from bedplate.host.account import server_account
from bedplate.model.cell import FilesystemLevels
from bedplate.model.levels import Levels
from bedplate.visit.cuts import Subject
from bedplate.workloads.power_cut.bench import ReplayJob
from bedplate.workloads.power_cut.bundle import NO_VERDICT, scripts

pytestmark = [
    pytest.mark.host,
    pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root"),
    pytest.mark.skipif(shutil.which("mkfs.ext4") is None, reason="mkfs.ext4 is not installed"),
]

EXT4 = FilesystemLevels("ext4")
CHECKER = """#!/bin/sh
rights=$(id -u)$(grep -s CapEff /proc/self/status | tr -d '[:alpha:][:space:]:0')
touch /var/tmp/{seen} /etc/{seen} 2> /dev/null
echo "{{\\"clients\\": {{}}, \\"wrong\\": [\\"uid $rights\\", \\"net $(grep -c : /proc/net/dev)\\", \\"$(printf '\\\\\\\\u001b[2J')\\"]}}"
"""


@pytest.fixture
def job() -> ReplayJob:
    subject = Subject("sqlite", 10_000, Levels(), Levels())
    return ReplayJob(EXT4, subject, (), 32 * 2**20, 2**20, 0)


def made(
    folder: Path,
    job: ReplayJob,
    content: Path,
    check: list[str],
    engine: dict[str, Path],
    *,
    size: str = "32M",
    variables: tuple[str, ...] = (),
) -> Path:
    """A bundle as a stranger makes it: an image of `content`, and what his job says."""
    bundle = folder / "bundle"
    bundle.mkdir()
    image = folder / "disk"
    subprocess.run(["truncate", f"--size={size}", image], check=True)
    subprocess.run(["mkfs.ext4", "-q", "-d", content, image], check=True)
    argv = [
        "tar",
        "--create",
        "--sparse",
        "--xz",
        f"--directory={folder}",
        f"--file={bundle / 'disk.tar.xz'}",
        "disk",
    ]
    subprocess.run(argv, check=True)
    for name, text in scripts(job, ("disk",), check, variables, has_mended=False).items():
        (bundle / name).write_text(text)
    (bundle / "promised.txt").write_text("")
    for name, path in engine.items():
        target = bundle / "engine" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)
    return bundle


def reproduced(bundle: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    argv = ["unshare", "--mount", "--propagation", "private", "sh", str(bundle / "reproduce.sh")]
    return subprocess.run(
        argv, capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin", **environment}
    )


def test_options_of_a_study_stay_words_of_one_mount(job: ReplayJob, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    content = tmp_path / "content"
    (content / "data").mkdir(parents=True)
    hostile = replace(
        job, filesystem=FilesystemLevels("ext4", mount_options=(f"x';touch {seen};'$(touch {seen})",))
    )
    done = reproduced(made(tmp_path, hostile, content, [], {}))
    assert not seen.exists()
    assert "bad: the file system is lost" in done.stdout, (done.stdout, done.stderr)


def test_a_device_that_another_program_protected_is_no_bad_cut(job: ReplayJob, tmp_path: Path) -> None:
    """The kernel keeps the mark when the file behind the device is gone, and gives the device to the next one."""
    (tmp_path / "content" / "data").mkdir(parents=True)
    bundle = made(tmp_path, job, tmp_path / "content", [], {})
    with looped(tmp_path) as node:
        subprocess.run(["blockdev", "--setro", node], check=True)
    try:
        done = reproduced(bundle)
    finally:
        subprocess.run(["blockdev", "--setrw", node], check=True)
    assert (1, "all is well\n") == (done.returncode, done.stdout), done.stderr


def test_an_engines_folder_that_is_a_link_is_not_followed(job: ReplayJob, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "postmaster.pid").touch()
    content = tmp_path / "content"
    content.mkdir()
    (content / "data").symlink_to(outside)
    done = reproduced(made(tmp_path, job, content, ['rm -f "$data/postmaster.pid"'], {}))
    assert (0, "bad: the engine's folder is gone\n") == (done.returncode, done.stdout), done.stderr
    assert (outside / "postmaster.pid").exists()
    assert 0 == outside.stat().st_uid


def test_a_link_in_the_engines_folder_gives_nothing_away(job: ReplayJob, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    secret.chmod(0o600)
    data = tmp_path / "content" / "data"
    data.mkdir(parents=True)
    (data / "test.db").symlink_to(secret)
    done = reproduced(
        made(tmp_path, job, data.parent, ['bad "read $(cat "$data/test.db" 2> /dev/null)"'], {})
    )
    assert "bad: read \n" == done.stdout, done.stderr
    assert (0, 0o100600) == (secret.stat().st_uid, secret.stat().st_mode)


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="sqlite3 is not installed")
def test_sqlites_shell_obeys_neither_an_init_file_nor_the_database(job: ReplayJob, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    seen.mkdir()
    seen.chmod(0o777)
    data = tmp_path / "content" / "data"
    data.mkdir(parents=True)
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    (home / ".sqliterc").write_text(f".shell touch {seen}/init\n")
    (data / ".sqliterc").write_text(f".shell touch {seen}/data\n")
    with closing(sqlite3.connect(data / "test.db")) as database:
        database.execute("CREATE TABLE accounts (key blob, value blob)")
        database.execute(
            f"CREATE VIEW entries AS SELECT writefile('{seen}/view', 'x') AS key, load_extension('x') AS value"
        )
    lines = list(SQLITE.lines(job.subject, server_account()))
    bundle = made(tmp_path, job, data.parent, lines, dict(SQLITE.files(job.subject)))
    done = reproduced(bundle, HOME=str(home))
    assert [] == list(seen.iterdir())
    # An empty table of accounts is found, so the shell was asked.
    assert "bad: 10000 accounts were made, 0 are there" in done.stdout, (done.stdout, done.stderr)


def test_a_strangers_programs_have_no_rights_no_network_and_no_say_over_the_terminal(
    job: ReplayJob, tmp_path: Path
) -> None:
    name = f"seen-{os.getpid()}"
    folder = tmp_path / "engine"
    folder.mkdir()
    (folder / "engine.toml").write_text('name = "planted"\nwriter = "checker"\nchecker = "checker"\n')
    (folder / "checker").write_text(CHECKER.format(seen=name))
    (folder / "checker").chmod(0o755)
    (folder / "shadow").symlink_to("/etc/shadow")
    (tmp_path / "content" / "data").mkdir(parents=True)
    subject = Subject("external", 0, Levels(), Levels({PROGRAMS_KEY: str(folder)}))
    files = EXTERNAL.files(subject)
    assert {"own/engine.toml", "own/checker"} == set(files)
    lines = list(EXTERNAL.lines(subject, server_account()))
    done = reproduced(made(tmp_path, replace(job, subject=subject), tmp_path / "content", lines, dict(files)))
    assert ["bad: uid 65534", "bad: net 1", "bad: ?[2J"] == done.stdout.splitlines(), (
        done.stdout,
        done.stderr,
    )
    assert not any(Path(place, name).exists() for place in ("/var/tmp", "/etc"))


_LINK = """
import os, subprocess, sys
from pathlib import Path
from bedplate.filesystem.after_cut import follow_no_links
from bedplate.host.mount import enter_own_namespaces
enter_own_namespaces()
place = Path(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "none", place], check=True)
(place / "link").symlink_to("/etc/passwd")
(place / "folder").symlink_to("/etc")
(place / "link").read_text()
follow_no_links(place)
for path in (place / "link", place / "folder/passwd"):
    try:
        path.read_text()
        print("followed")
    except OSError as error:
        print(error.strerror)
print((place / "link").readlink(), *(word for word in ("nosuid", "nodev", "noexec") if word in Path("/proc/self/mountinfo").read_text()))
"""


def test_no_link_of_an_image_is_followed_by_root(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", _LINK, tmp_path], capture_output=True, text=True, check=True)
    refused = os.strerror(errno.ELOOP)
    assert [refused, refused, "/etc/passwd nosuid nodev noexec"] == done.stdout.splitlines()


def knows_module(name: str) -> bool:
    """Whether the kernel could load it."""
    argv = ["modprobe", "--dry-run", "--quiet", name]
    return shutil.which("modprobe") is not None and subprocess.run(argv, check=False).returncode == 0


@pytest.mark.parametrize(
    ("levels", "check", "said"),
    [
        (EXT4, ["need no-such-tool 'Debian: none'"], "no-such-tool is not there (Debian: none)"),
        (EXT4, ["exit 9"], "check.sh ended with 9"),
        (FilesystemLevels("reiserfs"), [], "reiserfs"),
    ],
)
def test_what_is_missing_here_is_no_verdict(
    job: ReplayJob, tmp_path: Path, levels: FilesystemLevels, check: list[str], said: str
) -> None:
    if said in Path("/proc/filesystems").read_text() or knows_module(said):
        pytest.skip(f"this kernel has {said}")
    (tmp_path / "content" / "data").mkdir(parents=True)
    done = reproduced(made(tmp_path, replace(job, filesystem=levels), tmp_path / "content", check, {}))
    assert (NO_VERDICT, "") == (done.returncode, done.stdout), done.stderr
    assert done.stderr.startswith("no verdict: ")
    assert said in done.stderr
