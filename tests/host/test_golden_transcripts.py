"""Every program that a small study of each workload and engine starts, by itself and in its visits, held as text.

What differs from machine to machine and from start to start (places, numbers of processes and devices) has a name in place of it, and a start that
is repeated stands once.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.goldens.held_text import hold
from tests.support.studies.study_lab import SOURCES, Lab
from tests.support.tools import transcript
from tests.support.tools.patience import AT_MOST_S

from bedplate.campaign.planning import planned_study
from bedplate.campaign.preparation import drivers_of_plan, prepare_programs
from bedplate.host.files import cache_directory

pytestmark = [pytest.mark.host, pytest.mark.third_lane]

HEAD = """
title = "transcript"
repetitions = 1
seed = 3
[canary]
enabled = false
[scratch_device]
image_size = "512 MB"
"""
EXT4 = """
[[filesystem]]
type = "ext4"
mount_options = ["noatime"]
"""
POSTGRESQL = """
[postgresql]
version = "18"
[postgresql.settings]
shared_buffers = "16MB"
"""
PGBENCH = """
[[workload]]
type = "pgbench"
scale = 1
[[workload.run]]
script = "read-write"
clients = 2
jobs = 1
warmup = "1 s"
rate = 1000
duration = "1 s"
"""
PLANS = {
    "pgbench": EXT4 + POSTGRESQL + PGBENCH,
    "sysbench": EXT4
    + POSTGRESQL
    + """
[mariadb.settings]
innodb_buffer_pool_size = "32 MB"
innodb_log_file_size = "8 MB"
[[workload]]
type = "sysbench"
engine = { vary = ["mariadb", "postgresql"] }
tables = 1
table_size = 1000
[[workload.run]]
script = "oltp_read_write"
warmup = "1 s"
duration = "1 s"
""",
    "microbenchmark": EXT4
    + """
[[workload]]
type = "microbenchmark"
engine = { vary = ["sqlite", "lmdb"] }
entries = 1000
tests = ["fillseqsync", "fillrandbatch", "readrandom", "readseq"]
reads = ["cold", "warm"]
""",
    "acks": EXT4
    + f"""
[engine]
path = "{SOURCES}/examples/engines/sqlite"
[[workload]]
type = "acks"
clients = 2
warmup = "1 s"
duration = "2 s"
""",
}


@pytest.mark.parametrize("name", PLANS)
def test_a_study_starts_what_it_started(lab: Lab, name: str) -> None:
    plan = lab.base / "plan.toml"
    plan.write_text(HEAD + PLANS[name], encoding="utf-8")
    # What a cache lacks is compiled once, which is no part of what a start does.
    study_plan = planned_study(plan)
    drivers_of_plan(study_plan.plan, study_plan.workloads)
    prepare_programs(study_plan.plan.engines)
    log = lab.base / "transcript"
    done = subprocess.run(
        [
            sys.executable,
            transcript.__file__,
            str(log),
            "bedplate",
            "run",
            str(plan),
            "--study",
            str(lab.study),
            "--yes",
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=AT_MOST_S,
        cwd=lab.base,
        env={**lab.environment, transcript.CANARY: "1"},
    )
    assert 0 == done.returncode, done.stdout + done.stderr
    entries = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    hold(f"transcripts/{name}.txt", text_of(entries, lab))


# By the module that a process began with; whatever else a visit begins with works beside others of its kind.
_ROLES = {"bedplate": "start", "bedplate.visit.command": "visits"}
_WORKERS = "workers"


def text_of(entries: list[dict[str, Any]], lab: Lab) -> str:
    """The starts of each kind of process, each once, in the order in which they first came; of workers beside each other in that of the alphabet."""
    plain = _names(lab)
    by_role: dict[str, dict[str, None]] = {}
    for entry in _without_what_is_cached(_without_repeated_ends(entries)):
        role = _ROLES.get(entry["of"], _WORKERS)
        # A sampler's statements come between others' starts by the clock.
        part = f"{Path(entry['to']).name} < {role}" if "to" in entry else role
        by_role.setdefault(part, {})[plain(_words(entry))] = None
    parts = []
    for role, starts in by_role.items():
        parts += [f"== {role}", *(sorted(starts) if role.endswith(_WORKERS) else starts), ""]
    return "\n".join(parts)


def _without_what_is_cached(entries: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Of the start itself what it shuts in and the visits: the versions that it asks for and what it makes hang on the machine and its cache."""
    for entry in entries:
        if entry["of"] != "bedplate" or entry.get("becomes") or "-m" in entry.get("argv", ()):
            yield entry


def _without_repeated_ends(entries: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """What a session writes behind each statement stands with the first statement of its program alone."""
    ends: dict[str, str] = {}
    for entry in entries:
        statement, _, end = entry.get("words", "").partition(";\n")
        if end and ends.setdefault(entry["to"], "") == end:
            yield {**entry, "words": f"{statement};"}
        else:
            yield entry
        if end:
            ends[entry["to"]] = ends[entry["to"]] or end


def _words(entry: dict[str, Any]) -> str:
    if "to" in entry:
        return "\n".join(f"    {Path(entry['to']).name} < {line}" for line in entry["words"].splitlines())
    lines = [shlex.join(entry["argv"])]
    if "failed" in entry:
        lines.append(f"    failed: {entry['failed']}")
    account = f", as {entry['user']}:{entry['group']}" if "user" in entry else ""
    lines.append(f"    in {entry['cwd']}, sees {entry['sees']}{account}")
    more = entry.get("environment", {})
    lines += [f"    {name}={value}" for name, value in sorted(more.items()) if name not in _EVERYWHERE]
    child = entry["becomes"]
    if child == "by itself":
        lines.append("    shuts itself in, and becomes the program by itself")
    elif child is not None:
        has_none = int(child["rights"].pop("CapEff"), 16) == 0
        rights = " ".join(f"{key}={value}" for key, value in child["rights"].items())
        lines.append(
            f"    as {child['account']} with{'out' if has_none else ''} capabilities, {rights}; of its own: {' '.join(child['namespaces'])}"
        )
        lines.append(f"    may write below: {' '.join(child['writable'])}")
    return "\n".join(lines)


_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")
# What every child gets (`host/command.py`).
_EVERYWHERE = {"LC_ALL", "LANGUAGE", "TZ", "PATH"}


def _names(lab: Lab) -> Callable[[str], str]:
    places = {
        str(lab.study): "<study>",
        str(lab.state): "<state>",
        str(lab.base): "<base>",
        str(cache_directory()): "<cache>",
        str(SOURCES): "<sources>",
        sys.executable: "<python>",
        str(Path(sys.executable).resolve()): "<python>",
    }
    patterns: dict[str, str | Callable[[re.Match[str]], str]] = {
        # A visit's own folder, here and in memory: its process and something drawn.
        r"(?<=/)(bedplate-)?\d+-[0-9a-f]{8}(?=[-/,\s]|$)": "OWN",
        r"/tmp/bedplate-([a-z-]+)-\w{8}\b": r"/tmp/bedplate-\1-DRAWN",
        r"/dev/loop\d+": "/dev/loopN",
        r"\bloop\d+\b": "loopN",
        r"\b(postgresql|mariadb)-\d+\.[\d.]+": r"\1-VERSION",
        r"\b[0-9a-f]{12,64}\b": "DIGEST",
        r"/proc/\d+": "/proc/PID",
        r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]+": "UUID",
        r"--parent \d+": "--parent PID",
        # As many as there are processors, and what each of them is about.
        r"\breplay-\d+": "replay-N",
        r"--share \d+ --of \d+": "--share N --of N",
        # Transactions whose numbers are drawn.
        r"(?<= < )BEGIN.*": lambda found: re.sub(r"\d+", "N", found[0]),
        r"-m bedplate\.[\w.]+": "-m <module>",
    }

    def plain(text: str) -> str:
        for place, name in sorted(places.items(), key=lambda item: -len(item[0])):
            text = text.replace(place, name)
        for pattern, instead in patterns.items():
            text = re.sub(pattern, instead, text)
        return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)

    return plain
