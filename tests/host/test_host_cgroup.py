"""Control groups on this machine: a limit counts only if device reads and IOPS show it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.tools.patience import AT_MOST_S

from bedplate.host.block_tree import BlockTree
from bedplate.host.cgroups import Group, drop_page_cache, read_hierarchy
from bedplate.host.command import Commands
from bedplate.host.ledger import Holding, Ledger, release_orphans
from bedplate.host.mount import mount, unmount
from bedplate.host.scratch_device import prepare, release_device
from bedplate.model.cell import Throttle
from bedplate.model.visit import ScratchDevice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bedplate.host.scratch_device import AttachedDevice

pytestmark = pytest.mark.host

MIB = 1 << 20
FILE_BYTES = 96 * MIB
LIMIT_BYTES = 48 * MIB
READS = 3000

RANDOM_READS = """
import os, random, sys
file = os.open(sys.argv[1], os.O_RDONLY)
os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)
draw, blocks = random.Random(int(sys.argv[3])), os.fstat(file).st_size // 8192
for _ in range(int(sys.argv[2])):
    os.pread(file, 8192, draw.randrange(blocks) * 8192)
"""
# Of something that a loaded machine may fail to show at once, and a limit that stays never shows.
_TRIES = 40
DIRECT_READS = """
import mmap, os, sys, time
file = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)
page, count, end = mmap.mmap(-1, 4096), 0, time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    os.preadv(file, [page], count % 1024 * 4096)
    count += 1
print(count)
"""


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "state", f"cgroup-{os.getpid()}") as opened:
        yield opened
        assert () == opened.release(Commands())


@pytest.fixture
def device(tmp_path: Path, ledger: Ledger) -> Iterator[AttachedDevice]:
    commands = Commands()
    scratch = ScratchDevice(image_bytes=128 * MIB)
    attached = prepare(scratch, ledger=ledger, commands=commands, directory=tmp_path)
    yield attached
    release_device(attached, ledger=ledger, commands=commands)


@pytest.fixture
def target(device: AttachedDevice, ledger: Ledger) -> Iterator[Path]:
    """A freshly mounted ext4 with a file `data` of which nothing is in the page cache."""
    commands = Commands()
    commands.run(["mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0", device.path])
    path = ledger.directory / "mnt"
    path.mkdir()
    ledger.note(Holding("mount", str(path), device.path))
    mount(device.path, path, "ext4", ("noatime",), commands=commands)
    (path / "data").write_bytes(os.urandom(MIB) * (FILE_BYTES // MIB))
    # A fresh mount: pages belong to the group that first touches them.
    unmount(path, commands=commands)
    mount(device.path, path, "ext4", ("noatime",), commands=commands)
    yield path
    unmount(path, commands=commands)
    ledger.settled(Holding("mount", str(path)))


def _python(script: str, *words: str, enter: Callable[[], None] | None = None) -> str:
    argv = [sys.executable, "-S", "-c", script, *words]
    return subprocess.run(
        argv,
        check=True,
        capture_output=True,
        text=True,
        preexec_fn=enter,
        timeout=AT_MOST_S,
    ).stdout


def _reads(device: AttachedDevice) -> int:
    return int(device.stat.read_text().split()[0])


def _needs_limits() -> None:
    if read_hierarchy().version_of("memory") is None:
        pytest.skip("no control group of this machine limits memory")


def test_memory_limit_shows_in_device_reads(
    device: AttachedDevice, target: Path, ledger: Ledger, tmp_path: Path
) -> None:
    _needs_limits()
    group = Group.create("reads", memory_bytes=LIMIT_BYTES, ledger=ledger, vm=_vm(tmp_path))
    data = str(target / "data")
    _python(RANDOM_READS, data, str(2 * READS), "1", enter=group.enter)
    before = _reads(device)
    _python(RANDOM_READS, data, str(READS), "2", enter=group.enter)
    share = (_reads(device) - before) / READS
    print(f"{share:.3f} of the reads reached the device")
    # The cache holds at most the limit: 1 - 48/96 of the reads reach the device, give or take the draw.
    assert 0.47 <= share <= 1.01
    usage = group.usage()
    assert usage.memory_bytes_peak is None or usage.memory_bytes_peak <= LIMIT_BYTES
    group.release()

    def from_the_device() -> float:
        Path(data).read_bytes()
        before = _reads(device)
        _python(RANDOM_READS, data, str(READS), "3")
        return (_reads(device) - before) / READS

    # Again, as other programs drop what the machine has cached.
    assert any(from_the_device() < 0.01 for _ in range(_TRIES))


def test_throttle_shows_in_iops_and_ends_with_the_group(device: AttachedDevice, ledger: Ledger) -> None:
    if read_hierarchy().version_of("blkio", "io") is None:
        pytest.skip("no control group of this machine throttles devices")
    number = BlockTree().number(device.name)
    group = Group.create(
        "iops", throttle=Throttle("slow", read_iops=200), device_number=number, ledger=ledger
    )
    asked = {item.name: (item.asked, item.effective, item.matches) for item in group.comparisons}
    assert {"device.throttle.read_iops": (200, 200, True)} == asked
    slow = int(_python(DIRECT_READS, device.path, "1.5", enter=group.enter))
    group.release()
    # Other work makes both fewer, and the limited one never more.
    assert 0 < slow <= 260 * 1.5
    assert any(int(_python(DIRECT_READS, device.path, "1.5")) > 260 * 1.5 for _ in range(_TRIES))


def test_dirty_limits_follow_the_memory_on_version_1_and_come_back(ledger: Ledger) -> None:
    if read_hierarchy().version_of("memory") != 1:
        pytest.skip("version 2 limits dirty pages in the group itself")
    vm = Path("/proc/sys/vm")
    names = ("dirty_ratio", "dirty_bytes", "dirty_background_ratio", "dirty_background_bytes")
    before = {name: (vm / name).read_text() for name in names}
    group = Group.create("dirty", memory_bytes=512 * MIB, ledger=ledger)
    assert str(512 * MIB // 5) == (vm / "dirty_bytes").read_text().strip()
    assert str(512 * MIB // 10) == (vm / "dirty_background_bytes").read_text().strip()
    group.release()
    assert before == {name: (vm / name).read_text() for name in names}


def test_group_without_limits_counts_the_cpu_of_its_members(ledger: Ledger) -> None:
    group = Group.create("cpu", ledger=ledger)
    burn = "import time\nwhile time.process_time() < 0.3: pass"
    _python(burn, enter=group.enter)
    inside = group.cpu_seconds()
    assert inside is not None
    # What came before the entry counts elsewhere; an interpreter's own start costs more where others take the caches.
    assert 0.27 <= inside <= 2.0
    _python(burn)
    assert inside == group.cpu_seconds()
    assert () == group.comparisons
    group.release()
    assert () == ledger.holdings()


def test_release_kills_whatever_is_inside(ledger: Ledger) -> None:
    group = Group.create("kill", ledger=ledger)
    children = [subprocess.Popen(["sleep", "600"]) for _ in range(3)]
    for child in children:
        group.add(child.pid)
    held = [Path(holding.name) for holding in ledger.holdings()]
    assert held
    group.release()
    assert [-9, -9, -9] == [child.wait() for child in children]
    assert not any(path.exists() for path in held)
    group.release()


def test_dropped_page_cache_is_read_again(device: AttachedDevice, target: Path) -> None:
    (target / "data").read_bytes()
    drop_page_cache()
    before = _reads(device)
    (target / "data").read_bytes()
    assert _reads(device) > before


def test_group_of_a_dead_owner_is_removed(tmp_path: Path) -> None:
    source = Path(__file__).resolve().parents[2] / "src"
    script = (
        "import os, sys; from pathlib import Path\n"
        "from bedplate.host.cgroups import Group; from bedplate.host.ledger import Ledger\n"
        "ledger = Ledger.open(Path(sys.argv[1]), 'dead')\n"
        "Group.create(f'dead-{os.getpid()}', ledger=ledger).enter()\n"
        "print([item.name for item in ledger.holdings()][0], flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(source)}
    argv = [sys.executable, "-c", script, str(tmp_path / "state")]
    done = subprocess.run(argv, check=False, capture_output=True, text=True, env=environment)
    assert -9 == done.returncode, done.stderr
    directory = Path(done.stdout.strip())
    assert directory.is_dir()
    report = release_orphans(tmp_path / "state", Commands())
    assert () == report.problems
    assert any(str(directory) in line for line in report.released)
    assert not directory.exists()


def _vm(base: Path) -> Path:
    """The machine's own limits stay as they are where a test needs only the group's."""
    vm = base / "vm"
    vm.mkdir()
    for name, value in (("ratio", "20"), ("bytes", "0")):
        (vm / f"dirty_{name}").write_text(value)
        (vm / f"dirty_background_{name}").write_text(value)
    return vm
