"""Real guests: what they are, how they die, and that nothing is left of them.

One boot serves the visits that end well; each death costs the next visit a boot of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.host.conftest import built, run
from tests.support.guests.guest_lab import GuestLab, guest_lab

from bedplate.campaign.preparation import prepare_drivers
from bedplate.errors import MachineUnfit
from bedplate.executors.qemu.guest import KVM, TCG, Guest, GuestFailed
from bedplate.executors.qemu.runner import GuestRunner
from bedplate.host.block_tree import BlockTree
from bedplate.host.command import Commands
from bedplate.host.ledger import Ledger
from bedplate.host.mount import unmount
from bedplate.host.scratch_device import device_identity
from bedplate.model import codec
from bedplate.model.cell import BuildLevels, ClusterLevels, Dataset, DeviceLevels, Throttle
from bedplate.model.device_cache import sector_bytes_of
from bedplate.model.levels import Levels
from bedplate.model.visit import Outcome, ScratchDevice, VisitRecord, VisitRequest
from bedplate.units import MIB

pytestmark = [pytest.mark.host, pytest.mark.second_lane]

# Runs in the guest: a group of its own with a limit each, and what the limits hold.
LIMITS = """
import json, mmap, os, sys, time
from pathlib import Path
from bedplate.host.cgroups import Group
from bedplate.host.cgroups import read_hierarchy
from bedplate.host.ledger import Ledger
from bedplate.model.cell import Throttle

MIB = 1 << 20
state = Path("/run/guest/state")
hierarchy = read_hierarchy()
ledger = Ledger.open(state, "limits")
found = {"v1": sorted(hierarchy.v1), "memory": hierarchy.version_of("memory")}
disk = os.path.realpath("/dev/disk/by-id/virtio-bedplate-data")
number = Path("/sys/class/block", Path(disk).name, "dev").read_text().strip()
group = Group.create("limits", memory_bytes=48 * MIB, throttle=Throttle("slow", write_iops=50),
    device_number=number, ledger=ledger)
found["comparisons"] = [[c.name, c.asked, c.effective, c.matches] for c in group.comparisons]

def child(work):
    pid = os.fork()
    if pid == 0:
        group.enter()
        os.setuid(65534)
        work()
        os._exit(0)
    return os.waitpid(pid, 0)[1]

def allocate(size):
    data = bytearray(size)
    for place in range(0, size, 4096):
        data[place] = 1

found["small"] = child(lambda: allocate(8 * MIB))
found["large"] = child(lambda: allocate(128 * MIB))
found["peak"] = group.usage().memory_bytes_peak

os.chmod(disk, 0o666)
def write():
    file = os.open(disk, os.O_WRONLY | os.O_DIRECT)
    page = mmap.mmap(-1, 4096)
    for number in range(100):
        os.pwrite(file, page, number * 4096)

started = time.monotonic()
found["write"] = child(write)
found["write_s"] = time.monotonic() - started
group.release()
found["left"] = [str(p) for p in Path("/sys/fs/cgroup").glob("bedplate-*")]
ledger.close()
Path(sys.argv[2], "found.json").write_text(json.dumps(found))
Path(sys.argv[2], "visit.json").write_text('{"failed_step": null}')
"""

WRITES_TO_BOTH = """
import os, sys
from pathlib import Path
for name in ("data", "journal"):
    disk = os.path.realpath(f"/dev/disk/by-id/virtio-bedplate-{name}")
    size = int(Path("/sys/class/block", Path(disk).name, "size").read_text()) * 512
    print('{"event": "step", "step": "%s %d"}' % (disk, size))
    with open(disk, "r+b") as file:
        file.write(b"written in the guest")
        os.fsync(file.fileno())
Path(sys.argv[2], "visit.json").write_text("{}")
"""


@pytest.fixture(scope="module")
def lab() -> Iterator[GuestLab]:
    with guest_lab() as place:
        yield place
        for executor in place.executors:
            executor.close()
        assert [] == place.left_behind()


@pytest.fixture(scope="module")
def shared(lab: GuestLab) -> GuestRunner:
    return lab.executor()


def real_visit(lab: GuestLab, **changes: Any) -> VisitRequest:
    """A small pgbench visit in a guest of the default size whose server is limited inside."""
    base = lab.deed("visit", image_bytes=384 * MIB)
    build = built()
    cell = replace(
        base.cell,
        build=BuildLevels(block_size_bytes=build.block_size_bytes),
        cluster=ClusterLevels(settings=Levels({"shared_buffers": "16MB"})),
        device=DeviceLevels(**changes),
    )
    return replace(
        base,
        cell=cell,
        key=replace(base.key, cell=cell.id),
        dataset=Dataset("pgbench", Levels(scale=1)),
        runs=(run("read-write", script="read-write"),),
        build=build,
        native_drivers=prepare_drivers(["pgbench"]),
        provenance={"memory": "group"},
    )


def test_a_guest_lives_through_visits_one_after_the_other(lab: GuestLab, shared: GuestRunner) -> None:
    first = lab.live(shared, lab.deed("nothing"))
    assert ["0", str(64 * MIB // 512)] == lab.steps
    guests = lab.guests()
    assert 1 == len(guests)
    lab.live(shared, lab.deed("nothing", image_bytes=96 * MIB))
    assert ["0", str(96 * MIB // 512)] == lab.steps, "the guest sees the size of the new image"
    lab.live(shared, lab.deed("nothing", image_bytes=32 * MIB))
    assert ["0", str(32 * MIB // 512)] == lab.steps
    assert guests == lab.guests()
    assert (first / "visit.json").exists()
    asked = codec.read(VisitRequest, first / "request.json")
    assert asked.provenance["accelerator"] in {KVM, TCG}
    assert os.uname().release == asked.provenance["host_kernel"]


def test_version_2_limits_memory_and_requests_in_the_guest(lab: GuestLab, shared: GuestRunner) -> None:
    directory = lab.live(shared, lab.run(LIMITS))
    found = json.loads((directory / "found.json").read_text())
    assert [] == found["v1"]
    assert 2 == found["memory"]
    assert [
        ["device.memory_bytes", 48 * MIB, 48 * MIB, True],
        ["device.throttle.write_iops", 50, 50, True],
    ] == found["comparisons"]
    assert 0 == found["small"]
    assert signal.SIGKILL == found["large"] & 0x7F, "what does not fit the limit must not run"
    assert found["peak"] <= 48 * MIB
    assert 0 == found["write"]
    # 100 writes at 50 a second; the kernel may let one slice of them through at once.
    assert found["write_s"] >= 1.5
    assert [] == found["left"]


def test_a_real_visit_keeps_its_limits_on_version_2(lab: GuestLab, shared: GuestRunner) -> None:
    request = real_visit(lab, memory_bytes=320 * MIB, throttle=Throttle("slow", write_iops=4000))
    directory = lab.live(shared, request)
    record = codec.read(VisitRecord, directory / "visit.json")
    assert (Outcome.COMPLETED, ()) == (record.outcome, record.reasons)
    limits = {item.name: item for item in record.comparisons if item.name.startswith("device.")}
    assert 320 * MIB == limits["device.memory_bytes"].effective
    assert limits["device.memory_bytes"].source.endswith("/memory.max")
    assert 4000 == limits["device.throttle.write_iops"].effective
    assert limits["device.throttle.write_iops"].source.endswith("/io.max")
    assert "qemu" == record.executor == record.provenance["executor"]
    assert record.provenance["kernel"] == record.versions["kernel"] != record.provenance["host_kernel"]
    assert "clean" == record.filesystem_check
    assert {50, 100} >= {count.flushes for count in record.flush_counts} - {0}
    assert "image file on a virtio disk" == record.device_facts["kind"]
    under = BlockTree().sectors_at(lab.base)
    assert under == sector_bytes_of(record.device_facts), "what QEMU gives its disk is no property of any"
    assert (directory / "runs" / record.runs[0] / "record.json").exists()
    assert (directory / "logs/server.log").exists()


def test_a_second_guest_on_the_same_image_is_refused(lab: GuestLab, shared: GuestRunner) -> None:
    lab.live(shared, lab.deed("nothing"))
    assert shared._slot.guest is not None
    with (
        Ledger.open(lab.state, "second") as ledger,
        pytest.raises(GuestFailed, match=r"(?s)died while it booted.*lock"),
    ):
        Guest.boot(shared._slot.guest.spec, console=lab.base / "second.log", ledger=ledger, boot_s=60)
    assert 1 == len(lab.guests())


def test_a_panic_is_named_and_the_next_visit_gets_a_new_guest(lab: GuestLab, shared: GuestRunner) -> None:
    before = lab.live(shared, lab.deed("nothing"))
    (guest,) = lab.guests()
    with pytest.raises(GuestFailed, match="Kernel panic - not syncing: sysrq triggered crash") as caught:
        lab.live(shared, lab.deed("panic"))
    assert "its console's last lines: " in caught.value.reasons[-1]
    assert "sysrq triggered crash" in (lab.base / f"visit-{lab.visits}/logs/console.log").read_text()
    assert [] == lab.guests()
    lab.live(shared, lab.deed("nothing"))
    assert [guest] != lab.guests()
    assert (before / "visit.json").exists()


def test_a_guest_that_hangs_is_killed(
    lab: GuestLab, shared: GuestRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared._slot, "deadlines", replace(shared._slot.deadlines, silence_s=4))

    def stop(event: Any) -> None:
        if event.get("step") == "chatters":
            for pid in lab.guests():
                os.kill(pid, signal.SIGSTOP)

    with pytest.raises(GuestFailed, match="hangs: it said nothing for 4 s, and was killed"):
        lab.live(shared, lab.deed("chatter"), on_event=stop)
    assert [] == lab.guests()


def test_a_visit_that_never_ends_is_given_up(
    lab: GuestLab, shared: GuestRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared._slot, "deadlines", replace(shared._slot.deadlines, silence_s=60, visit_s=3))
    with pytest.raises(GuestFailed, match="was not done within 3 s"):
        lab.live(shared, lab.deed("chatter"))
    assert [] == lab.guests()


@pytest.mark.parametrize("seed", range(3))
def test_a_guest_that_is_killed_while_it_boots_fails_its_visit_alone(
    lab: GuestLab, shared: GuestRunner, seed: int
) -> None:
    moment_s = random.Random(seed).uniform(0.0, 4.0)
    timers = []

    def kill() -> None:
        for pid in lab.guests():
            os.kill(pid, signal.SIGKILL)

    def arm(event: Any) -> None:
        if event.get("step") == "boot":
            timers.append(threading.Timer(moment_s, kill))
            timers[0].start()

    with pytest.raises(GuestFailed, match="killed by signal 9"):
        lab.live(shared, lab.deed("hang"), on_event=arm)
    assert [] == lab.guests()
    assert (lab.base / f"visit-{lab.visits}/logs/console.log").exists()


def test_a_guest_that_is_killed_at_a_random_moment_loses_no_finished_visit(
    lab: GuestLab, shared: GuestRunner
) -> None:
    kept = lab.live(shared, lab.deed("nothing"))
    (guest,) = lab.guests()
    moment_s = random.Random(os.getpid()).uniform(0.0, 2.0)

    def arm(event: Any) -> None:
        # Not before: a guest that is dead by then is followed by another one, in which the visit would go on.
        if event.get("step") == "hand-over":
            threading.Timer(moment_s, os.kill, (guest, signal.SIGKILL)).start()

    with pytest.raises(GuestFailed, match="killed by signal 9"):
        lab.live(shared, lab.deed("chatter"), on_event=arm)
    assert (kept / "visit.json").exists()
    assert [] == lab.guests()


def test_a_full_result_disk_is_named(lab: GuestLab, shared: GuestRunner) -> None:
    shared.close()
    place = lab.base / "small"
    place.mkdir()
    commands = Commands()
    commands.run(["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(place)])
    try:
        with (
            contextlib.closing(lab.executor(place=place)) as executor,
            pytest.raises(MachineUnfit, match="No space left"),
        ):
            lab.live(executor, lab.deed("fill"))
        assert [] == list(place.iterdir())
    finally:
        unmount(place, commands=commands)
    assert [] == lab.guests()


def test_an_image_larger_than_its_disk_is_refused_before_the_boot(lab: GuestLab, shared: GuestRunner) -> None:
    with pytest.raises(MachineUnfit, match="use a smaller image"):
        lab.live(shared, lab.deed("nothing", image_bytes=1 << 50))
    assert "boot" not in [event.get("step") for event in lab.events]


@pytest.fixture
def real_device(lab: GuestLab) -> Iterator[tuple[str, Path]]:
    """A device of the host's with a stable name, and the file that its content can be read from."""
    commands = Commands()
    backing = lab.base / "backing"
    backing.write_bytes(bytes(48 * MIB))
    loop = commands.run(["losetup", "--find", "--show", str(backing)]).stdout.strip()
    name = Path(f"/dev/disk/by-id/bedplate-test-{os.getpid()}")
    folders = [folder for folder in (name.parent, name.parent.parent) if not folder.exists()]
    name.parent.mkdir(parents=True, exist_ok=True)
    name.symlink_to(loop)
    yield str(name), backing
    name.unlink()
    for folder in folders:
        # Somebody else may have come to use it.
        with contextlib.suppress(OSError):
            folder.rmdir()
    commands.run(["losetup", "--detach", loop])
    backing.unlink()


def test_a_device_of_the_hosts_and_a_journal_in_memory_are_two_disks(
    lab: GuestLab, shared: GuestRunner, real_device: tuple[str, Path]
) -> None:
    device, backing = real_device
    request = replace(lab.run(WRITES_TO_BOTH), journal_device=ScratchDevice(image_bytes=40 * MIB))
    with pytest.raises(MachineUnfit, match="name it again on the command line"):
        lab.live(shared, replace(request, scratch_device=ScratchDevice(device=device)))
    assert [] == lab.guests()
    recorded = device_identity(device)
    assert recorded is not None
    named = ScratchDevice(device=device, erase=(device,), recorded=recorded)
    other = replace(named, erase_foreign=True, recorded=replace(recorded, file_inode=1))
    with pytest.raises(MachineUnfit, match="that this study began with"):
        lab.live(shared, replace(request, scratch_device=other))
    assert [] == lab.guests()
    directory = lab.live(shared, replace(request, scratch_device=named))
    assert [f"/dev/vda {48 * MIB}", f"/dev/vdb {40 * MIB}"] == lab.steps
    asked = codec.read(VisitRequest, directory / "request.json")
    assert "block device on a virtio disk" == asked.provenance["disk"]
    shared.close()
    assert backing.read_bytes().startswith(b"written in the guest"), "a device is kept, and not written anew"
    assert [] == lab.left_behind()
