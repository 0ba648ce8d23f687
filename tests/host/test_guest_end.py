"""bedplate itself is ended, or has no root: no guest outlives it, and none needs more rights than it has."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.guests.guest_lab import GuestLab, guest_lab
from tests.support.tools.patience import AT_MOST_S

from bedplate.host.command import Commands
from bedplate.host.files import cache_directory
from bedplate.host.ledger import release_orphans
from bedplate.host.process import wait_until_gone

pytestmark = [pytest.mark.host, pytest.mark.second_lane]

SOURCES = Path(__file__).resolve().parents[2]
# The signals as the command line takes them; the executor is closed as a study's run closes it.
CHILD = """
import json, signal, sys
from pathlib import Path
sys.path[:0] = [sys.argv[1] + "/src", sys.argv[1]]
from bedplate.executors.qemu.slot import GuestSlot
from bedplate.executors.qemu.runner import GuestRunner
from bedplate.executors.qemu.guest import Deadlines
from bedplate.model import codec
from bedplate.model.visit import VisitRequest

def interrupt(number, frame):
    raise KeyboardInterrupt

signal.signal(signal.SIGTERM, interrupt)
base = Path(sys.argv[2])
slot = GuestSlot(base / "place", state_directory=base / "state", interpreter=base / "interpreter",
    deadlines=Deadlines(boot_s=600, silence_s=300))
executor = GuestRunner(slot, memory_bytes=768 << 20)
(base / "out").mkdir()
try:
    executor.run_visit(codec.read(VisitRequest, base / "asked.json"), base / "out",
        lambda event: print(json.dumps(event), flush=True))
except KeyboardInterrupt:
    print("interrupted", flush=True)
finally:
    executor.close()
"""
# A Python that every account may read; the one of the tests may stand in root's home.
SYSTEM_PYTHON = Path("/usr/bin/python3")


@pytest.fixture
def lab() -> Iterator[GuestLab]:
    with guest_lab() as place:
        yield place


def start(
    lab: GuestLab, deed: str, *before: str, python: Path, sources: Path = SOURCES
) -> subprocess.Popen[str]:
    from bedplate.model import codec  # noqa: PLC0415

    lab.interpreter(python)
    codec.write(lab.base / "asked.json", lab.deed(deed))
    return subprocess.Popen(
        [*before, str(python), "-B", "-S", "-c", CHILD, str(sources), str(lab.base)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd="/",
        env={"PATH": os.environ["PATH"], "BEDPLATE_CACHE": str(cache_directory())},
        start_new_session=True,
    )


def read_until(process: subprocess.Popen[str], text: str) -> None:
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(line)
        if text in line:
            return
    raise AssertionError(f"it never said {text!r}: {''.join(said)}")


def wait_for_guest(lab: GuestLab) -> int:
    """QEMU is there a moment after `boot` was said."""
    for _ in range(6000):
        found = lab.guests()
        if found:
            return found[0]
        os.sched_yield()
        wait_until_gone((os.getpid(),), deadline_s=0.01)
    raise AssertionError("no guest was started")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_ended_bedplate_leaves_nothing(lab: GuestLab, number: signal.Signals) -> None:
    process = start(lab, "hang", python=Path(sys.executable))
    read_until(process, '"boot"')
    wait_for_guest(lab)
    process.send_signal(number)
    said, _ = process.communicate(timeout=AT_MOST_S)
    assert "interrupted" in said
    assert 0 == process.returncode
    shutil.rmtree(lab.base / "out")
    assert [] == lab.left_behind()


def test_a_killed_bedplate_takes_its_guest_along_and_release_frees_the_rest(lab: GuestLab) -> None:
    process = start(lab, "hang", python=Path(sys.executable))
    read_until(process, '"boot"')
    guest = wait_for_guest(lab)
    process.kill()
    process.communicate(timeout=AT_MOST_S)
    assert wait_until_gone((guest,), deadline_s=AT_MOST_S), "the guest outlives bedplate"
    assert lab.left_behind(), "images are left until they are released"
    report = release_orphans(lab.state, Commands())
    assert () == report.problems
    assert [] == lab.left_behind()


def test_an_account_without_rights_can_boot_a_guest(lab: GuestLab) -> None:
    version = subprocess.run(
        [SYSTEM_PYTHON, "-c", "import sys; print(sys.version_info >= (3, 11))"],
        capture_output=True,
        text=True,
        check=False,
    )
    if version.stdout.strip() != "True":
        pytest.skip(f"needs a {SYSTEM_PYTHON} of 3.11 or later, which every account may read")
    # A checkout may stand in root's home as well.
    sources = lab.base / "sources"
    shutil.copytree(SOURCES / "src", sources / "src", ignore=shutil.ignore_patterns("__pycache__"))
    os.chown(lab.base, 65534, 65534)
    nobody = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--bounding-set", "-all")
    process = start(lab, "nothing", *nobody, python=SYSTEM_PYTHON, sources=sources)
    said, _ = process.communicate(timeout=AT_MOST_S)
    os.chown(lab.state, 0, 0)
    assert 0 == process.returncode, said
    assert '{"event": "step", "step": "0"}' in said, "root in the guest, nobody on the host"
    status = (lab.base / "out/visit.json").stat()
    assert 65534 == status.st_uid
    assert [] == lab.left_behind()
