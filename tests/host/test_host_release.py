"""A process takes everything a visit takes and is killed with SIGKILL, at every stage and at any moment."""

from __future__ import annotations

import contextlib
import mmap
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.studies.study_lab import tmpfs
from tests.support.tools.left_in_memory import loops_below
from tests.support.tools.patience import AT_MOST_S

from bedplate.errors import DeviceInUse
from bedplate.host.block_tree import attached_to, backing_file
from bedplate.host.cgroups import read_hierarchy
from bedplate.host.command import Commands
from bedplate.host.ledger import Holding, Ledger, release_orphans
from bedplate.host.mount import find_mount, read_mount_table
from bedplate.host.process import start_time, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.host

STAGES = ("ledger", "device", "queue", "mkfs", "mount", "group", "server", "tool", "process")

# What a visit does, in its order. `_stage` says where it is, and in step mode waits there.
TAKER = """
import os, subprocess, sys, time
from pathlib import Path
from bedplate.host.block_tree import BlockTree
from bedplate.host.cgroups import Group
from bedplate.host.command import Commands
from bedplate.host.ledger import Holding, Ledger
from bedplate.host.mount import mount
from bedplate.host.process import start_time
from bedplate.host.scratch_device import prepare
from bedplate.host.tunables import queue_settings
from bedplate.model.cell import Throttle
from bedplate.model.visit import ScratchDevice

base, stop_at, owner = Path(sys.argv[1]), sys.argv[2], sys.argv[3]

def _stage(name):
    print(name, flush=True)
    if name == stop_at:
        time.sleep(600)

commands = Commands()
ledger = Ledger.open(base / "state", owner)
_stage("ledger")
scratch = ScratchDevice(image_bytes=16 << 20)
device = prepare(scratch, ledger=ledger, commands=commands, directory=base)
_stage("device")
queue_settings(device, read_ahead_kb=4, scheduler="mq-deadline", write_back=False, ledger=ledger)
_stage("queue")
commands.run(["mkfs.ext4", "-q", "-F", "-E", "nodiscard", "-L", "bedplate", device.path])
_stage("mkfs")
target = ledger.directory / "mnt"
target.mkdir()
ledger.note(Holding("mount", str(target), device.path))
mount(device.path, target, "ext4", ("noatime",), commands=commands)
_stage("mount")
group = Group.create(owner, memory_bytes=64 << 20, throttle=Throttle("slow", read_iops=1000),
    device_number=BlockTree().number(device.name), ledger=ledger, vm=base / "vm")
_stage("group")
data = target / "data"
data.mkdir()
ledger.note(Holding("server", str(data), str(base / "prefix")))
server = subprocess.Popen([str(base / "prefix/bin/postgres"), "600"], cwd=data, preexec_fn=group.enter,
    start_new_session=True, stdout=subprocess.DEVNULL)
(data / "postmaster.pid").write_text(f"{server.pid}\\n")
_stage("server")
tool = subprocess.Popen(["sleep", "600"], cwd=target, start_new_session=True, stdout=subprocess.DEVNULL)
_stage("tool")
other = subprocess.Popen(["sleep", "600"], stdout=subprocess.DEVNULL)
ledger.note(Holding("process", str(other.pid), start_time(other.pid)))
_stage("process")
time.sleep(600)
"""


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Path]:
    """A folder with a server's stand-in, cleared of mounts and loops whatever the test did."""
    programs = tmp_path / "prefix/bin"
    programs.mkdir(parents=True)
    shutil.copy2(shutil.which("sleep") or "/bin/sleep", programs / "postgres")
    vm = tmp_path / "vm"
    vm.mkdir()
    for name, value in (("ratio", "20"), ("bytes", "0")):
        (vm / f"dirty_{name}").write_text(value)
        (vm / f"dirty_background_{name}").write_text(value)
    yield tmp_path
    release_orphans(tmp_path / "state", Commands())
    assert _left(tmp_path) == []


def _left(base: Path) -> list[str]:
    """Whatever of this test is still on the machine."""
    inside = f"{base}/"
    left = [f"mount {entry.target}" for entry in read_mount_table() if entry.target.startswith(inside)]
    left += [f"loop {name}" for image in base.glob("*.img") for name in attached_to(image)]
    left += loops_below(base)
    left += [f"image {image}" for image in base.glob("*.img")]
    hierarchy = read_hierarchy()
    parents = {*hierarchy.v1.values(), *((hierarchy.v2,) if hierarchy.v2 else ())}
    left += [f"group {path}" for parent in parents for path in parent.glob(f"bedplate-{_owner(base)}*")]
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            here = str((folder / "cwd").readlink()), str((folder / "exe").readlink())
            marked = f"BEDPLATE_LEDGER={base}/".encode() in (folder / "environ").read_bytes()
        except OSError:
            continue
        if marked or any(link.startswith(inside) for link in here):
            left.append(f"process {folder.name} {here}")
    state = base / "state"
    left += [str(path) for path in state.iterdir() if path.name != ".locks"] if state.is_dir() else []
    return left


def _owner(base: Path) -> str:
    return f"test-{base.name}"


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2] / "src")}


def _start(base: Path, stop_at: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", TAKER, str(base), stop_at, _owner(base)],
        env=_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _run_until(base: Path, stage: str) -> subprocess.Popen[str]:
    child = _start(base, stage)
    assert child.stdout is not None
    for line in child.stdout:
        if line.strip() == stage:
            return child
    assert child.stderr is not None
    pytest.fail(f"the taker never reached {stage}: {child.stderr.read()}")


def _end(child: subprocess.Popen[str]) -> None:
    child.kill()
    child.wait()
    for stream in (child.stdout, child.stderr):
        assert stream is not None
        stream.close()


@pytest.mark.parametrize("stage", STAGES)
def test_nothing_is_left_after_a_kill_at_each_stage(base: Path, stage: str) -> None:
    child = _run_until(base, stage)
    alive = release_orphans(base / "state", Commands())
    assert ((), ()) == (alive.released, alive.problems)
    assert 1 == len(alive.alive)
    _end(child)
    loops = [f"/dev/{name}" for image in base.glob("*.img") for name in attached_to(image)]
    report = release_orphans(base / "state", Commands())
    assert () == report.problems
    assert [] == _left(base)
    assert ("ledger" == stage) == (() == report.released)
    wanted = {"server": "server on", "tool": "server on", "mount": "unmounted", "group": "control group"}
    assert any(wanted.get(stage, "") in line for line in report.released) or stage == "ledger"
    for loop in loops:
        queue = Path("/sys/block") / Path(loop).name / "queue"
        assert "write back" == (queue / "write_cache").read_text().strip()
        assert "[none]" in (queue / "scheduler").read_text()
        numbers = Path("/sys/fs/cgroup/blkio/blkio.throttle.read_iops_device")
        number = (queue.parent / "dev").read_text().strip()
        assert not numbers.exists() or number not in numbers.read_text().split()
    assert "20" == (base / "vm/dirty_ratio").read_text()
    again = release_orphans(base / "state", Commands())
    assert ((), (), ()) == (again.released, again.problems, again.alive)


def test_nothing_is_left_after_a_kill_at_any_moment(base: Path) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    moments = random.Random(seed)
    whole_s = _seconds_to_take_everything(base)
    for _ in range(6):
        child = _start(base, "")
        assert child.stdout is not None
        child.stdout.readline()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(moments.uniform(0, whole_s))
        _end(child)
        report = release_orphans(base / "state", Commands())
        assert () == report.problems
        assert [] == _left(base)


def _seconds_to_take_everything(base: Path) -> float:
    child = _start(base, STAGES[-1])
    assert child.stdout is not None
    child.stdout.readline()
    started = time.monotonic()
    for line in child.stdout:
        if line.strip() == STAGES[-1]:
            break
    seconds = time.monotonic() - started
    _end(child)
    release_orphans(base / "state", Commands())
    return seconds


def test_a_loop_device_is_given_back_whose_file_has_lost_its_name_with_a_namespace(base: Path) -> None:
    """The study's disk is a mount, and the visit's own copy of it ended with the visit."""
    script = (
        "import os, sys; from pathlib import Path\n"
        "from bedplate.host.command import Commands; from bedplate.host.ledger import Holding, Ledger\n"
        "from bedplate.host.scratch_device import attach_loop; from bedplate.host.mount import enter_own_namespaces\n"
        "enter_own_namespaces()\n"
        "ledger, image = Ledger.open(Path(sys.argv[1]), sys.argv[2]), Path(sys.argv[3])\n"
        "ledger.note(Holding('image', str(image))); image.write_bytes(bytes(1 << 20))\n"
        "print(attach_loop(image, ledger=ledger, commands=Commands(), in_memory=True).name, flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    image = base / "disk/bedplate-scratch.img"
    with tmpfs(image.parent, "4m"):
        argv = [sys.executable, "-c", script, str(base / "state"), _owner(base), str(image)]
        done = subprocess.run(argv, env=_environment(), capture_output=True, text=True, check=False)
        assert -9 == done.returncode, done.stderr
        name = done.stdout.strip()
        assert wait_until(lambda: backing_file(name) == "/bedplate-scratch.img", deadline_s=AT_MOST_S)
        report = release_orphans(base / "state", Commands())
        assert ((f"/dev/{name} detached from {image}", f"{image} deleted"), ()) == (
            report.released,
            report.problems,
        )
        # Another program may have it by now.
        assert backing_file(name) != "/bedplate-scratch.img"


def test_a_loop_device_is_given_back_whose_folder_was_moved(base: Path) -> None:
    """Somebody moves the study while a visit runs, and the visit is killed."""
    script = (
        "import os, sys; from pathlib import Path\n"
        "from bedplate.host.command import Commands; from bedplate.host.ledger import Holding, Ledger\n"
        "from bedplate.host.scratch_device import attach_loop\n"
        "ledger, image = Ledger.open(Path(sys.argv[1]), sys.argv[2]), Path(sys.argv[3])\n"
        "ledger.note(Holding('image', str(image))); image.write_bytes(bytes(1 << 20))\n"
        "print(attach_loop(image, ledger=ledger, commands=Commands(), in_memory=True).name, flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    image = base / "study/bedplate-scratch.img"
    image.parent.mkdir()
    argv = [sys.executable, "-c", script, str(base / "state"), _owner(base), str(image)]
    done = subprocess.run(argv, env=_environment(), capture_output=True, text=True, check=False)
    assert -9 == done.returncode, done.stderr
    name = done.stdout.strip()
    image.parent.rename(base / "elsewhere")
    report = release_orphans(base / "state", Commands())
    told = f"/dev/{name} detached from {image}; its folder was moved since: remove {image.name} there"
    assert ((told,), ()) == (report.released, report.problems)
    assert () == attached_to(base / "elsewhere" / image.name)


def test_release_that_is_killed_itself_is_finished_by_the_next(base: Path) -> None:
    moments = random.Random(7)
    releaser = (
        "import sys; from pathlib import Path\n"
        "from bedplate.host.command import Commands; from bedplate.host.ledger import release_orphans\n"
        "print('ready', flush=True); release_orphans(Path(sys.argv[1]), Commands())\n"
    )
    for _ in range(3):
        _end(_run_until(base, STAGES[-1]))
        argv = [sys.executable, "-c", releaser, str(base / "state")]
        first = subprocess.Popen(
            argv, env=_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert first.stdout is not None
        first.stdout.readline()
        with contextlib.suppress(subprocess.TimeoutExpired):
            first.wait(moments.uniform(0, 0.15))
        _end(first)
        assert () == release_orphans(base / "state", Commands()).problems
        assert [] == _left(base)


def test_visit_of_a_killed_executor_is_ended_and_its_things_given_back(base: Path) -> None:
    executor = (
        "import subprocess, sys, time; from pathlib import Path\n"
        "from bedplate.host.ledger import Holding, Ledger\n"
        "ledger = Ledger.open(Path(sys.argv[1]), sys.argv[2])\n"
        "image = Path(sys.argv[3]); ledger.note(Holding('image', str(image))); image.touch()\n"
        "if len(sys.argv) > 4:\n"
        "    inner = [sys.executable, '-c', sys.argv[4], *sys.argv[1:2], 'a-visit', str(image) + '.visit']\n"
        "    subprocess.Popen(inner, start_new_session=True)\n"
        "print(sys.argv[2], flush=True); time.sleep(600)\n"
    )
    images = [base / "x", base / "x.visit"]
    argv = [sys.executable, "-c", executor, str(base / "state"), "executor", str(images[0]), executor]
    child = subprocess.Popen(
        argv, env=_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert {"executor", "a-visit"} == {child.stdout.readline().strip() for _ in range(2)}
    assert 2 == len(release_orphans(base / "state", Commands()).alive)
    _end(child)
    report = release_orphans(base / "state", Commands())
    assert ((), ()) == (report.problems, report.alive)
    assert {f"{image} deleted" for image in images} < set(report.released)
    assert 3 == len(report.released)


def test_normal_release_gives_everything_back_in_reverse(base: Path) -> None:
    ledger = Ledger.open(base / "state", _owner(base))
    target = ledger.directory / "mnt"
    target.mkdir()
    ledger.note(Holding("mount", str(target), "tmpfs"))
    commands = Commands()
    commands.run(["mount", "-t", "tmpfs", "tmpfs", str(target)])
    sleeper = subprocess.Popen(["sleep", "600"], cwd=target)
    ledger.note(Holding("process", str(sleeper.pid), start_time(sleeper.pid) or ""))
    assert () == ledger.release(commands)
    assert -15 == sleeper.wait()
    assert find_mount(target) is None
    ledger.close()
    assert not ledger.directory.exists()


def test_mount_held_by_a_stranger_is_detached_lazily_and_named(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bedplate.host.ledger._PATIENCE_S", 0.3)
    ledger = Ledger.open(base / "state", _owner(base))
    target = ledger.directory / "mnt"
    target.mkdir()
    ledger.note(Holding("mount", str(target), "tmpfs"))
    commands = Commands()
    commands.run(["mount", "-t", "tmpfs", "tmpfs", str(target)])
    without_mark = {name: value for name, value in os.environ.items() if name != "BEDPLATE_LEDGER"}
    stranger = subprocess.Popen(["sleep", "600"], cwd=target, env=without_mark)
    try:
        problems = ledger.release(commands)
        assert 1 == len(problems)
        assert f"process {stranger.pid} (sleep)" in problems[0]
        assert stranger.poll() is None
        assert find_mount(target) is None
    finally:
        stranger.kill()
        stranger.wait()
    ledger.close()


def test_segments_of_a_server_that_a_container_does_not_see_stay(tmp_path: Path) -> None:
    """A container may have processes of its own and the host's /dev/shm."""
    used, left = tmp_path / "PostgreSQL.1", tmp_path / "PostgreSQL.2"
    used.write_bytes(b"segment")
    left.write_bytes(b"segment")
    release = (
        "import sys; from pathlib import Path; from bedplate.host.ledger import *;"
        "print(*remove_orphaned_segments(0, 0.0, directory=Path(sys.argv[1])))"
    )
    apart = ("unshare", "--pid", "--fork", "--mount", "--mount-proc")
    with used.open("r+b") as file, mmap.mmap(file.fileno(), 0):
        removed = subprocess.check_output([*apart, sys.executable, "-c", release, str(tmp_path)], text=True)
    assert [str(left)] == removed.split()
    assert used.exists()


def test_mount_that_is_not_ours_is_left_alone(base: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    commands = Commands()
    commands.run(["mount", "-t", "tmpfs", "foreign", str(elsewhere)])
    try:
        with Ledger.open(base / "state", _owner(base)) as ledger:
            ledger.note(Holding("mount", str(elsewhere), "/dev/loop77"))
            problems = ledger.release(commands)
            assert 1 == len(problems)
            assert "left alone" in problems[0]
            assert find_mount(elsewhere) is not None
    finally:
        commands.run(["umount", str(elsewhere)])


def test_owner_that_left_something_blocks_its_name(base: Path) -> None:
    _end(_run_until(base, "ledger"))
    with pytest.raises(DeviceInUse, match="is gone; `bedplate release`"):
        Ledger.open(base / "state", _owner(base))
    release_orphans(base / "state", Commands())
    Ledger.open(base / "state", _owner(base)).close()
