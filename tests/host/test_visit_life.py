"""Real visits: what a good one records, and what becomes of one that goes wrong."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.tools.patience import AT_MOST_S

from bedplate.errors import EXIT_REQUIREMENT_MISSING
from bedplate.filesystem.registry import filesystem_for
from bedplate.host.block_tree import attached_to
from bedplate.host.requirement import look
from bedplate.host.scratch_device import MEMORY_DIRECTORY
from bedplate.model import codec
from bedplate.model.cell import DeviceLevels, FilesystemLevels, RunSpec
from bedplate.model.levels import Levels
from bedplate.model.visit import CheckOutcome, EngineBuild, Outcome, RunRecord
from bedplate.units import MIB

if TYPE_CHECKING:
    Bench = Any

pytestmark = pytest.mark.host


@pytest.mark.parametrize(
    ("levels", "block_size_bytes", "flushes"),
    [
        (FilesystemLevels("ext4", barrier=True, mount_options=("noatime",)), 8192, True),
        (FilesystemLevels("ext2", block_size_bytes=1024, barrier=False), 4096, False),
        (FilesystemLevels("xfs", barrier=False), 8192, False),
        (FilesystemLevels("btrfs", features=Levels(nodatacow=True)), 4096, True),
    ],
    ids=["ext4", "ext2", "xfs-without-flushes", "btrfs-nodatacow"],
)
def test_a_visit_records_what_was_asked_and_what_was_in_force(  # noqa: PLR0917 -- fixtures
    bench: Bench,
    build_of: Callable[[int], EngineBuild],
    make_run: Callable[..., RunSpec],
    levels: FilesystemLevels,
    block_size_bytes: int,
    flushes: bool,
) -> None:
    runs = tuple(make_run(script, script=script, warmup_s=1) for script in ("read-only", "read-write"))
    build = build_of(block_size_bytes)
    record = bench.live(bench.request(levels, build=build, runs=runs, data_checksums=False))
    assert (Outcome.COMPLETED, ()) == (record.outcome, record.reasons)
    assert {True, None} >= {item.matches for item in record.comparisons}
    in_force = {item.name: item.effective for item in record.comparisons}
    assert block_size_bytes == in_force["database block size"]
    assert in_force["data checksums"] is False
    assert flushes == any(count.flushes for count in record.flush_counts)
    assert record.durability is not None
    assert ("durable" if flushes else "unsafe") == record.durability.volatile_cache
    assert ("clean", CheckOutcome.CLEAN) == (record.filesystem_check, record.filesystem_check_outcome)
    assert [] == bench.left_behind()
    for name in record.runs:
        run = codec.read(RunRecord, bench.directory / "runs" / name / "record.json")
        assert ["warmup", "measure"] == [phase.name for phase in run.phases]
        assert run.before is not None
        assert run.after is not None
        assert run.after.values["postgresql.xact_commit"] > run.before.values["postgresql.xact_commit"]
        assert (bench.directory / "runs" / name / "measure.bin").stat().st_size > 0


def test_a_memory_limit_makes_the_device_answer(bench: Bench, make_run: Callable[..., RunSpec]) -> None:
    # 375 MB of rows under a limit of 256 MB: without the limit no read would reach the device.
    runs = (make_run("read-only", script="read-only", warmup_s=1, duration_s=4, rate_tps=None),)
    limited = bench.live(
        bench.request(
            scale=25, image_bytes=1024 * MIB, runs=runs, device=DeviceLevels(memory_bytes=256 * MIB)
        )
    )
    assert (Outcome.COMPLETED, ()) == (limited.outcome, limited.reasons)
    run = codec.read(RunRecord, bench.directory / "runs" / limited.runs[0] / "record.json")
    assert run.before is not None
    assert run.after is not None
    reads = run.after.values["device.reads"] - run.before.values["device.reads"]
    commits = run.after.values["postgresql.xact_commit"] - run.before.values["postgresql.xact_commit"]
    assert reads > 0.1 * commits


@pytest.mark.parametrize(
    ("changes", "step", "words"),
    [
        ({"filesystem": FilesystemLevels("ext4", mkfs_options=("-I", "77"))}, "mkfs", "77"),
        ({"filesystem": FilesystemLevels("xfs", mount_options=("nobarrier",))}, "mount", "nobarrier"),
        ({"filesystem": FilesystemLevels("ext2", mount_options=("nobh",))}, "read back", "nobh"),
        ({"settings": {"shared_buffers": "900TB"}}, "server start", "shared_buffers"),
        ({"settings": {"no_such_setting": "1"}}, "server start", "no_such_setting"),
        ({"scale": 60}, "load", "space"),
        ({"device": DeviceLevels(memory_bytes=2**60)}, "preflight", "memory"),
    ],
    ids=["mkfs", "mount", "ignored-option", "setting", "unknown-setting", "full", "memory"],
)
def test_a_failing_visit_says_at_which_step_and_why(
    bench: Bench, changes: dict[str, Any], step: str, words: str
) -> None:
    record = bench.live(bench.request(changes.pop("filesystem", None), **changes))
    assert (Outcome.FAILED, step) == (record.outcome, record.failed_step)
    assert any(words in reason.sentence for reason in record.reasons), record.reasons
    assert [] == bench.left_behind()


def test_what_another_containers_process_of_this_number_left_is_in_nobodys_way(bench: Bench) -> None:
    left = MEMORY_DIRECTORY / f"bedplate-{os.getpid()}"
    left.mkdir()
    try:
        assert bench.live(bench.request()).outcome is Outcome.COMPLETED
        assert left.is_dir()
    finally:
        left.rmdir()


def test_what_every_visit_would_lack_is_said_and_not_recorded(bench: Bench) -> None:
    visit = bench.start(bench.request(image_bytes=2**50))
    visit.communicate(timeout=AT_MOST_S)
    assert EXIT_REQUIREMENT_MISSING == visit.returncode
    assert "free; the image needs" in (bench.base / "errors").read_text()
    assert not (bench.directory / "visit.json").exists()
    assert [] == bench.left_behind()


def run_in(bench: Bench, *words: str) -> None:
    """As root would by hand, in the mounts of the visit under way."""
    pid = str(bench.started[-1].pid)
    subprocess.run(["nsenter", "--target", pid, "--mount", *words], check=True)


def unmount_lazily(bench: Bench) -> None:
    run_in(bench, "umount", "--lazy", str(next(bench.state.glob("*/mount"))))


def protect(bench: Bench) -> None:
    subprocess.run(["blockdev", "--setro", device_of(bench)], check=True)


def detach(bench: Bench) -> None:
    # It goes with its last user, at the unmount.
    subprocess.run(["losetup", "--detach", device_of(bench)], check=True)


def shut_down(bench: Bench) -> None:
    """As the kernel does after an error of the journal."""
    target = next(bench.state_inside.glob("*/mount"))
    folder = os.open(target, os.O_RDONLY)
    # EXT4_IOC_SHUTDOWN and XFS_IOC_GOINGDOWN, without a flush of the log.
    fcntl.ioctl(folder, 0x8004587D, struct.pack("I", 2))
    os.close(folder)


def device_of(bench: Bench) -> str:
    image = next(bench.base.glob("**/*.img"))
    return f"/dev/{attached_to(image)[0]}"


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
@pytest.mark.parametrize(
    ("deed", "words"),
    [
        (unmount_lazily, "is no longer mounted: something unmounted it"),
        (protect, "is write-protected, and was not when the visit began"),
        (detach, "is no longer attached to"),
        (shut_down, "the kernel has shut it down"),
    ],
    ids=["unmounted", "write-protected", "detached", "shut-down"],
)
def test_what_becomes_of_device_and_file_system_is_named_and_accuses_no_fsck(
    bench: Bench, make_run: Callable[..., RunSpec], kind: str, deed: Callable[[Bench], None], words: str
) -> None:
    done: list[str] = []

    def interfere(line: str) -> None:
        event = json.loads(line)
        if event["event"] == "second" and event["phase"] == "measure" and not done:
            done.append(device_of(bench))
            deed(bench)

    runs = (make_run("only", script="read-write", duration_s=3),)
    record = bench.live(bench.request(FilesystemLevels(kind), runs=runs), interfere)
    try:
        assert (1, Outcome.FAILED) == (len(done), record.outcome)
        assert words in " | ".join(map(str, record.reasons))
        assert "fsck" not in " | ".join(map(str, record.reasons))
        assert record.filesystem_check_outcome is not CheckOutcome.ERRORS
        # A loop device goes with its last user, after the sizes were read.
        assert deed is detach or {} == record.sizes
        assert [] == bench.left_behind()
        # The next visit on the same loop device has nothing of it.
        again = bench.live(bench.request(FilesystemLevels(kind), runs=runs))
        assert (Outcome.COMPLETED, ()) == (again.outcome, again.reasons)
    finally:
        subprocess.run(["blockdev", "--setrw", done[0]], check=False)


def test_a_killed_backend_costs_seconds(bench: Bench, make_run: Callable[..., RunSpec]) -> None:
    killed: list[int] = []

    def kill_a_backend(line: str) -> None:
        event = json.loads(line)
        if event["event"] == "second" and event["phase"] == "measure" and not killed:
            postmaster = bench.postmaster()
            children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
            names = {pid: Path(f"/proc/{pid}/cmdline").read_text() for pid in children}
            killed.append(next(int(pid) for pid, name in names.items() if "[local]" in name))
            os.kill(killed[0], signal.SIGKILL)

    runs = (make_run("only", script="read-write", duration_s=3),)
    record = bench.live(bench.request(runs=runs), kill_a_backend)
    assert Outcome.FAILED == record.outcome
    (stop,) = [timing.seconds for timing in record.timings if timing.step == "stop"]
    # A server that is asked politely waits for ever; what it takes to kill it is ten seconds at most.
    assert stop < 60
    assert CheckOutcome.CLEAN is record.filesystem_check_outcome
    assert [] == bench.left_behind()


def test_a_script_that_fails_fails_its_run_and_not_the_next(
    bench: Bench, make_run: Callable[..., RunSpec]
) -> None:
    runs = (
        make_run("broken", script="custom", script_text="SELECT * FROM no_such_table;"),
        make_run("read-only", script="read-only"),
    )
    record = bench.live(bench.request(runs=runs))
    assert Outcome.FAILED == record.outcome
    assert any("no_such_table" in reason.sentence for reason in record.reasons), record.reasons
    outcomes = [
        codec.read(RunRecord, bench.directory / "runs" / name / "record.json").outcome for name in record.runs
    ]
    assert [Outcome.FAILED, Outcome.COMPLETED] == outcomes


def test_a_server_that_dies_is_named_and_the_rest_is_not_run(
    bench: Bench, make_run: Callable[..., RunSpec]
) -> None:
    killed: list[int] = []

    def kill_at_the_first_second(line: str) -> None:
        event = json.loads(line)
        if event["event"] == "second" and event["phase"] == "measure" and not killed:
            pid = bench.postmaster()
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)

    runs = (make_run("first", script="read-write", duration_s=8), make_run("second", script="read-only"))
    record = bench.live(bench.request(runs=runs), kill_at_the_first_second)
    assert killed
    assert Outcome.FAILED == record.outcome
    assert any("server died" in reason.sentence for reason in record.reasons), record.reasons
    outcomes = [
        codec.read(RunRecord, bench.directory / "runs" / name / "record.json").outcome for name in record.runs
    ]
    assert [Outcome.FAILED, Outcome.NOT_RUN] == outcomes
    assert [] == bench.left_behind()


def test_a_device_that_vanishes_fails_the_visit_and_leaves_nothing(
    bench: Bench, make_run: Callable[..., RunSpec]
) -> None:
    gone: list[Path] = []

    def take_the_image_away(line: str) -> None:
        if json.loads(line)["event"] == "second" and not gone:
            image = next(path for path in bench.base.glob("**/*.img"))
            os.truncate(image, 0)
            gone.append(image)

    record = bench.live(
        bench.request(runs=(make_run("read-write", script="read-write", duration_s=5),)), take_the_image_away
    )
    assert gone
    assert Outcome.FAILED == record.outcome
    assert record.reasons
    assert [] == bench.left_behind()


def test_an_own_script_and_configuration_and_a_warm_up_that_ends_gently(
    bench: Bench, make_run: Callable[..., RunSpec]
) -> None:
    # Division by zero if pgbench took 1 for the scale; the sleep makes the rate steady on any machine.
    script = "SELECT 1 / (:scale - 1);\nSELECT pg_sleep(0.01);"
    steady = make_run("own", script="custom", script_text=script, warmup="until steady", warmup_s=100)
    own = "max_wal_size = 2GB\nshared_buffers = 64MB\nport = 6000\nrandom_page_cost = 1.5\n"
    record = bench.live(bench.request(scale=2, runs=(steady,), configuration=own))
    assert (Outcome.COMPLETED, ()) == (record.outcome, record.reasons)
    asked = {
        item.name: item.asked
        for item in record.comparisons
        if item.name.startswith("setting ") and item.asked
    }
    # The plan's settings win over its file, and bedplate's needs over both.
    assert {
        "setting max_wal_size": "2GB",
        "setting random_page_cost": "1.5",
        "setting shared_buffers": "16MB",
    } == asked
    run = codec.read(RunRecord, bench.directory / "runs" / record.runs[0] / "record.json")
    assert "steady" == run.facts["warmup_ended"]
    assert 0 == run.facts["warmup_pgbench_status"]
    # Files of a MiB and more, of 30 MiB in all, in at least one piece each.
    pieces, size_bytes = run.facts["data_extents"], run.facts["data_bytes"]
    assert isinstance(size_bytes, int)
    assert isinstance(pieces, int)
    assert 1 <= pieces <= size_bytes // 4096
    assert 20 * MIB < size_bytes < 100 * MIB
    assert "FATAL" not in (bench.directory / "logs" / "server.log").read_text()


def test_a_file_system_in_user_space_is_limited_with_its_server(bench: Bench) -> None:
    if look(filesystem_for("ntfs-3g").needs)[0].found is False or not Path("/dev/fuse").exists():
        pytest.skip("ntfs-3g is not installed, or this kernel has no FUSE")
    members: list[str] = []

    def look_inside(line: str) -> None:
        if json.loads(line).get("step") == "initdb":
            pids = {visit.pid for visit in bench.started}
            for group in Path("/sys/fs/cgroup").glob("**/bedplate-[0-9]*/cgroup.procs"):
                if any(str(pid) in group.parent.name for pid in pids):
                    members.extend(
                        Path("/proc", pid, "comm").read_text().strip() for pid in group.read_text().split()
                    )

    record = bench.live(
        bench.request(FilesystemLevels("ntfs-3g", barrier=True), device=DeviceLevels(memory_bytes=512 * MIB)),
        look_inside,
    )
    assert (Outcome.COMPLETED, ()) == (record.outcome, record.reasons)
    assert "ntfs-3g" in members
    assert "clean" == record.filesystem_check
    assert all(count.flushes >= count.calls for count in record.flush_counts)
    assert [] == bench.left_behind()
