"""A private place for studies, and the command line in it: for the tests that start it for real."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.tools.left_in_memory import loops_below
from tests.support.tools.patience import AT_MOST_S
from tests.support.tools.processes import processes_naming

from bedplate.host.command import Commands
from bedplate.host.ledger import release_orphans
from bedplate.host.mount import read_mount_table
from bedplate.host.process import wait_until
from bedplate.model import codec
from bedplate.model.visit import VisitRecord

SOURCES = Path(__file__).resolve().parents[3]

PLAN = """
title = "Small"
seed = 3
repetitions = 1
[scratch_device]
image_size = "512 MB"
[[filesystem]]
type = "ext4"
[postgresql]
version = "18"
[postgresql.settings]
shared_buffers = "16MB"
[[workload]]
type = "pgbench"
scale = 1
[[workload.run]]
script = "read-only"
clients = 2
jobs = 1
warmup = "0 s"
rate = 1000
duration = "1 s"
[canary]
enabled = false
"""


# Nobody's rights, and with them only the reading of a Python that may stand in root's home.
NOBODY = (
    *("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"),
    *("--inh-caps", "-all,+dac_read_search", "--ambient-caps", "+dac_read_search"),
    *("--bounding-set", "-all,+dac_read_search"),
)


class Lab:
    """A private place with its own state directory, and the command line in it."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.study = base / "study"
        self.state = base / "state"
        self.started: list[subprocess.Popen[str]] = []
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("SUDO_")},
            "BEDPLATE_STATE": str(self.state),
            "PYTHONPATH": str(SOURCES / "src"),
        }

    def plan(self, *changes: tuple[str, str], name: str = "plan.toml") -> Path:
        text = PLAN
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        path = self.base / name
        path.write_text(text)
        return path

    def start(self, *words: str | Path, **changes: Any) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*changes.pop("before", ()), sys.executable, "-m", "bedplate", *map(str, words)],
            stdin=subprocess.DEVNULL,
            stdout=changes.pop("stdout", subprocess.PIPE),
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.base,
            env={**self.environment, **changes.pop("environment", {})},
            start_new_session=True,
            **changes,
        )
        self.started.append(process)
        return process

    def call(self, *words: str | Path, status: int = 0, **changes: Any) -> str:
        process = self.start(*words, **changes)
        said, _ = process.communicate(timeout=AT_MOST_S)
        assert status == process.returncode, said
        return said

    def run(self, plan: Path, *words: str | Path, status: int = 0, **changes: Any) -> str:
        return self.call("run", plan, "--study", self.study, *words, status=status, **changes)

    def start_until(self, text: str, *words: str | Path) -> subprocess.Popen[str]:
        """A start that has said so much."""
        process = self.start(*words)
        assert process.stdout is not None
        said = []
        for line in process.stdout:
            said.append(line)
            if text in line:
                return process
        raise AssertionError(f"it never said {text!r}: {''.join(said)}")

    def visit_process(self) -> int:
        """The pid of the visit under way."""
        found: list[int] = []

        def look() -> bool:
            found.extend(
                process.pid
                for process in processes_naming(str(self.base))
                if "bedplate.visit.command" in process.arguments
            )
            return bool(found)

        assert wait_until(look, deadline_s=AT_MOST_S)
        return found[0]

    def wait_for_step(self, visit: int, step: str) -> None:
        """Until the visit's server runs (`server`), or its file system is mounted (`mount`)."""
        marks = {"mount": f"{self.state}/", "server": "server.log"}

        def there() -> bool:
            if step == "mount":
                table = Path("/proc", str(visit), "mountinfo")
                return any(entry.target.startswith(marks[step]) for entry in read_mount_table(table))
            # A visit that ends meanwhile takes its folder away.
            with contextlib.suppress(FileNotFoundError):
                logs = self.base.glob("**/*.unfinished/logs/server.log")
                return any("ready to accept connections" in log.read_text() for log in logs)
            return False

        assert wait_until(there, deadline_s=AT_MOST_S)

    def visits(self, study: Path | None = None) -> dict[str, VisitRecord]:
        """Finished visits by their place; the place must be the one that the record names."""
        root = (study or self.study) / "visits"
        found = {}
        for path in sorted(root.glob("*/*/*/visit.json")):
            if ".unfinished" not in path.parent.name:
                record = codec.read(VisitRecord, path)
                assert f"{record.key.repetition}.{record.key.attempt}" == path.parent.name
                found[str(path.parent.relative_to(root))] = record
        return found

    def left_behind(self) -> list[str]:
        """Everything of ours that the machine, or the study, still holds."""
        found = [f"mount {entry.target}" for entry in read_mount_table() if str(self.state) in entry.target]
        found += [f"image {path}" for path in self.base.glob("**/*.img")]
        found += loops_below(self.base)
        found += [f"state {path}" for path in self.state.glob("[0-9]*")]
        found += [f"half a visit {path}" for path in self.base.glob("**/*.unfinished")]
        found += [f"half a file {path}" for path in self.base.glob("**/.*.part")]
        found += [f"process {process.line:.100}" for process in processes_naming(str(self.base))]
        return found


@contextmanager
def study_lab() -> Iterator[Lab]:
    # Not tmp_path: the server's account must be able to reach the mount point.
    base = Path(tempfile.mkdtemp(prefix="bedplate-test-study-"))
    base.chmod(0o755)
    place = Lab(base)
    try:
        yield place
    finally:
        for process in place.started:
            if process.poll() is None:
                process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
        if place.state.is_dir():
            release_orphans(place.state, Commands())
        for entry in read_mount_table():
            if str(base) in entry.target:
                subprocess.run(["umount", "--lazy", entry.target], check=False)
        shutil.rmtree(base, ignore_errors=True)
        assert wait_until(lambda: not loops_below(base), deadline_s=AT_MOST_S), loops_below(base)


@contextmanager
def tmpfs(path: Path, size: str) -> Iterator[None]:
    path.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def identities(study: Path) -> dict[str, tuple[int, int]]:
    """Inode and time of every file of every finished visit."""
    files = [path for path in (study / "visits").rglob("*") if path.is_file()]
    return {
        str(path): (path.stat().st_ino, path.stat().st_mtime_ns)
        for path in files
        if ".unfinished" not in str(path)
    }
