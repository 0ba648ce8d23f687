"""Questions to the end, made as small as they get, and what real file systems and a real cluster say of themselves."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.host.conftest import built
from tests.support.studies.study_lab import Lab

pytestmark = pytest.mark.host

# A question as it is, but for a body that takes seconds.
SMALL = """
import sys
from dataclasses import replace
from bedplate.campaign import questions
from bedplate.cli import main

def small(make):
    def made(*words, **how):
        found = make(*words, **how)
        body = found.body.replace('duration = "15 s"', 'duration = "2 s"\\nsought = 0')
        if "workload" not in body:
            body += RUNS
        return replace(found, body=body)
    return made

RUNS = '''
[[workload]]
type = "pgbench"
scale = 1
[[workload.run]]
script = "read-only"
warmup = "0 s"
rate = 100
duration = "1 s"
[canary]
enabled = false
'''
for name in ("filesystem_question", "own_question"):
    setattr(questions, name, small(getattr(questions, name)))
main()
"""
MKFS = {
    "ext4": ("mke2fs", "-q", "-F", "-t", "ext4", "-b", "1024"),
    "xfs": ("mkfs.xfs", "-q", "-f"),
    "btrfs": ("mkfs.btrfs", "-q", "-f"),
}


def asked(lab: Lab, *words: str | Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", SMALL, "ask", *map(str, words)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd=lab.base,
        env={**lab.environment, "COLUMNS": "100"},
    )
    assert 0 == done.returncode, done.stderr + done.stdout
    return done.stdout


@pytest.fixture
def mounted(lab: Lab) -> Iterator[dict[str, Path]]:
    """A small file system of each type, on a loop device."""
    places = {}
    try:
        for kind, mkfs in MKFS.items():
            image, place = lab.base / f"{kind}.img", lab.base / kind
            place.mkdir()
            with image.open("wb") as file:
                file.truncate(330 * 2**20)
            subprocess.run([*mkfs, image], check=True)
            options = "loop,noatime,commit=9" if kind == "ext4" else "loop,noatime"
            subprocess.run(["mount", "-o", options, image, place], check=True)
            places[kind] = place
        yield places
    finally:
        for place in places.values():
            subprocess.run(["umount", place], check=True)


def inspected(lab: Lab, path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(lab.call("doctor", path, "--json"))
    return found


def test_inspect_tells_real_file_systems_and_a_real_cluster(lab: Lab, mounted: dict[str, Path]) -> None:
    for kind, place in mounted.items():
        found = inspected(lab, place)
        standing = found["places"]["data"]
        expected = {"ext4": (1024, "internal"), "xfs": (4096, "internal"), "btrfs": (4096, None)}
        assert (kind, *expected[kind]) == (standing["type"], standing["block_bytes"], standing["journal"])
        assert standing["flushes"] is True
        first, second = standing["layers"][:2]
        assert ("loop device", str(lab.base / f"{kind}.img")) == (first["kind"], first["file"])
        assert 1 == second["depth"]
        assert "noatime" in standing["shown"]
        by_node = inspected(lab, Path("/dev") / first["name"])
        assert kind == by_node["places"]["data"]["type"]
    assert 'block_size = "1024 B"' in inspected(lab, mounted["ext4"])["plan"]

    data = mounted["ext4"] / "cluster"
    data.mkdir()
    account = pwd.getpwnam("nobody")
    os.chown(data, account.pw_uid, account.pw_gid)
    initdb = Path(built().prefix) / "bin/initdb"
    subprocess.run(
        ["setpriv", "--reuid", "nobody", "--clear-groups", initdb, "--no-sync", "-D", data],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    (data / "postgresql.auto.conf").write_text("full_page_writes = 'off'\n")
    before = {path: path.stat() for path in data.rglob("*")}
    found = inspected(lab, data)
    assert ("postgresql", "18", "off") == (
        found["directory"]["engine"],
        found["directory"]["version"],
        found["directory"]["settings"]["full_page_writes"],
    )
    assert [] == found["unknown"]
    assert "unsafe" == found["durability"]["volatile_cache"]
    now = {path: path.stat() for path in data.rglob("*")}
    assert {p: s.st_mtime_ns for p, s in before.items()} == {p: s.st_mtime_ns for p, s in now.items()}

    said = asked(lab, "safe", data, "--points", "4", "--yes")
    assert "full_page_writes = off" in said
    plan = (lab.base / "ask-own-ext4-cluster/plan.toml").read_text()
    for line in ('mount_options = ["noatime", "commit=9"]', 'full_page_writes = "off"', "points = 4"):
        assert line in plan
    _, report, answer = said.partition("report: ask-own-ext4-cluster/report.html\n")
    assert report
    assert 0 < len(answer.strip().splitlines()) <= 8


def test_ask_filesystem_looks_after_each_repetition_and_begins_none_beyond_its_budget(lab: Lab) -> None:
    # Built outside of the time that an answer may take.
    built()
    said = asked(lab, "filesystem", "--on", "ext4", "--repetitions", "2", "--budget", "1s", "--yes")
    before, look, rest = said.partition("After 1 repetition: each cell was seen once")
    assert "none is begun that would end more than 1 s after the yes" in before
    looked, end, rest = rest.partition("no repetition was begun behind number 1")
    assert look
    assert end
    assert "read-only" in looked
    assert "report: ask-filesystem-ext4/report.html\n" in looked
    _, report, answer = rest.partition("report: ask-filesystem-ext4/report.html\n")
    assert report
    assert 0 < len(answer.strip().splitlines()) <= 8
    assert (lab.base / "ask-filesystem-ext4/report.html").stat().st_size > 100_000
    status = json.loads(lab.call("show", "ask-filesystem-ext4/study", "--status", "--json"))
    assert (1, 1, 0) == (status["completed"], status["left"], status["failed"])
    assert [] == lab.left_behind()
