"""Facts, kernel log, account, lock, processes and signatures, all without root."""

from __future__ import annotations

import json
import os
import pwd
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedplate.errors import CommandFailed, DeviceInUse, OutputNotUnderstood, RequirementMissing
from bedplate.host.account import server_account
from bedplate.host.block_tree import erase_signatures, read_signatures
from bedplate.host.command import Commands, Completed
from bedplate.host.facts import distribution, read_machine, tool_versions
from bedplate.host.kernel_log import KernelLog, messages_of_ours, parse_records
from bedplate.host.lock import device_lock
from bedplate.host.process import end_process, is_running, marked_with, servers_of, start_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


def _tree(base: Path, **files: str) -> Path:
    for name, text in files.items():
        path = base / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return base


def test_this_machine_is_read_without_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*_: object, **__: object) -> None:
        raise AssertionError("started a program")

    monkeypatch.setattr(subprocess, "Popen", nothing)
    machine = read_machine()
    assert machine.memory_bytes > 2**27
    assert machine.cpu_count >= 1
    assert {} == machine.tools
    assert "tmpfs" in machine.filesystems


@pytest.mark.parametrize("place", ["updates/dkms/zfs.ko", "kernel/zfs/zfs.ko.zst", "extra/zfs/zfs.ko.xz"])
def test_zfs_is_found_where_its_packager_put_it(tmp_path: Path, place: str) -> None:
    modules = f"{place}: updates/dkms/spl.ko\nupdates/dkms/spl.ko:\nupdates/nvidia.ko:\n"
    root = _tree(
        tmp_path,
        **{
            "proc/sys/kernel/osrelease": "6.1.0-9\n",
            "proc/sys/kernel/random/boot_id": "abc\n",
            "proc/self/mountinfo": "",
            "lib/modules/6.1.0-9/modules.dep": modules,
        },
    )
    assert ("zfs",) == read_machine(root).filesystems


def test_facts_of_another_machine(tmp_path: Path) -> None:
    root = _tree(
        tmp_path,
        **{
            "proc/sys/kernel/osrelease": "6.1.0-9\n",
            "proc/sys/kernel/hostname": "lab\n",
            "proc/sys/kernel/random/boot_id": "abc\n",
            "proc/cpuinfo": "model name\t: AMD  EPYC\t7B12\nflags\t\t: fpu hypervisor sse\n",
            "proc/meminfo": "MemTotal:       16384000 kB\nMemFree: 1 kB\n",
            "proc/filesystems": "nodev\tproc\n\text4\n",
            "proc/self/mountinfo": "30 23 0:26 / /cg rw - cgroup cgroup rw,memory\n",
            "proc/pressure/io": "some avg10=0.00\n",
            "proc/cmdline": "root=/dev/sda1 mitigations=off iscsi_password=secret quiet\n",
            "lib/modules/6.1.0-9/modules.dep": (
                "kernel/fs/xfs/xfs.ko.zst: kernel/lib/libcrc32c.ko\nkernel/fs/jfs/jfs.ko:\nkernel/net/x.ko:\n"
            ),
            "lib/modules/6.1.0-9/modules.builtin": "kernel/fs/btrfs/btrfs.ko\n",
            "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
            "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
            "sys/class/dmi/id/sys_vendor": "QEMU\n",
            "etc/os-release": 'NAME=Debian\nPRETTY_NAME="Debian 12"\n',
        },
    )
    machine = read_machine(root)
    assert ("lab", "Debian 12", "6.1.0-9", "abc") == (
        machine.hostname,
        machine.distribution,
        machine.kernel_release,
        machine.boot_id,
    )
    assert ("AMD EPYC 7B12", 16384000 * 1024) == (machine.cpu_model, machine.memory_bytes)
    assert ("btrfs", "ext4", "jfs", "proc", "xfs") == machine.filesystems
    assert (1, True, "QEMU") == (machine.cgroup_version, machine.pressure_available, machine.virtualisation)
    assert {
        "governor": "performance",
        "transparent_hugepage": "madvise",
        "kernel.command_line": "mitigations=off",
    } == machine.tunables


def test_bare_metal_has_no_hypervisor_and_a_silent_one_is_unknown(tmp_path: Path) -> None:
    boot = {"proc/sys/kernel/random/boot_id": "a", "proc/self/mountinfo": ""}
    bare = _tree(tmp_path / "bare", **boot, **{"proc/cpuinfo": "flags : fpu sse\n"})
    guest = _tree(tmp_path / "guest", **boot, **{"proc/cpuinfo": "flags : fpu hypervisor\n"})
    laptop = _tree(
        tmp_path / "laptop",
        **boot,
        **{
            "sys/class/dmi/id/sys_vendor": "Microsoft Corporation",
            "sys/class/dmi/id/product_name": "Surface",
        },
    )
    found = [read_machine(root).virtualisation for root in (bare, guest, laptop)]
    assert [None, "unknown hypervisor", None] == found
    assert read_machine(bare).cgroup_version is None
    assert not read_machine(bare).pressure_available


def test_distribution_is_the_pretty_name_without_quotes() -> None:
    assert "Ubuntu 24.04 LTS" == distribution("NAME='x'\nPRETTY_NAME='Ubuntu 24.04 LTS'\n")
    assert "" == distribution("ID=void\n")


def test_versions_are_those_of_tools_that_are_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, script in {
        "fio": "echo fio-3.33",
        "mkfs.xfs": "exit 3",
        "mke2fs": "echo mke2fs 1.47 >&2",
    }.items():
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    def find(name: str) -> Path | None:
        return tmp_path / name if (tmp_path / name).exists() else None

    monkeypatch.setattr("bedplate.host.facts.find_tool", find)
    assert {"mke2fs": "mke2fs 1.47", "fio": "fio-3.33"} == tool_versions()


RECORDS = """\
6,100,5,-;loop3: detected capacity change
 SUBSYSTEM=block
4,101,6,-;EXT4-fs warning (device loop3): x\\x5cy
30,102,7,-;usb 1-1: new device
3,103,8,-,caller=T1;I/O error, dev sdb; sector 8
"""


def test_records_have_the_level_without_the_facility() -> None:
    assert (
        (6, 100, "loop3: detected capacity change"),
        (4, 101, "EXT4-fs warning (device loop3): x\\y"),
        (6, 102, "usb 1-1: new device"),
        (3, 103, "I/O error, dev sdb; sector 8"),
    ) == parse_records(RECORDS)


@given(st.text())
def test_no_text_breaks_the_record_parser(text: str) -> None:
    assert all(0 <= priority <= 7 for priority, _, _ in parse_records(text))


def test_log_keeps_warnings_and_lines_about_our_device(tmp_path: Path) -> None:
    fifo = tmp_path / "kmsg"
    fifo.touch()
    log = KernelLog(fifo)
    with fifo.open("a") as writer:
        writer.write(RECORDS)
        writer.write("6,110,9,-;loop33: other\n")
    expected = (
        "loop3: detected capacity change",
        "EXT4-fs warning (device loop3): x\\y",
        "I/O error, dev sdb; sector 8",
        "(6 kernel messages were overwritten before they could be read)",
    )
    assert expected == log.messages(about=("loop3",))
    assert expected == log.messages(about=("loop3",))
    log.close()
    log.close()


def test_log_begins_with_its_opening(tmp_path: Path) -> None:
    file = tmp_path / "kmsg"
    file.write_text(RECORDS)
    with KernelLog(file) as log:
        assert () == log.messages()


def test_what_was_overwritten_before_the_first_look_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "kmsg"
    file.touch()
    with KernelLog(file) as log:
        answers: Iterator[BrokenPipeError | bytes]
        answers = iter([BrokenPipeError(), b"4,100,9,-;EXT4-fs warning (device loop3): x\n", b""])

        def read(*_: object) -> bytes:
            answer = next(answers)
            if isinstance(answer, BrokenPipeError):
                raise answer
            return answer

        monkeypatch.setattr(os, "read", read)
        log.forget()
        assert 0 == log.lost_count
        answers = iter([BrokenPipeError(), b"4,105,9,-;EXT4-fs warning (device loop3): y\n", b""])
        log.messages()
        assert 4 == log.lost_count
    with KernelLog(file) as log:
        answers = iter([BrokenPipeError(), b""])
        log.messages()
        assert 1 == log.lost_count


def test_forbidden_log_is_not_known_to_be_silent(tmp_path: Path) -> None:
    with KernelLog(tmp_path / "none") as log:
        assert log.messages() is None


def _accounts(monkeypatch: pytest.MonkeyPatch, **uids: int) -> None:
    def find(name: str) -> pwd.struct_passwd:
        return pwd.struct_passwd((name, "x", uids[name], uids[name], "", "/", "/bin/sh"))

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(pwd, "getpwnam", find)


def test_root_prefers_an_account_of_bedplates_own(monkeypatch: pytest.MonkeyPatch) -> None:
    _accounts(monkeypatch, bedplate=990, nobody=65534)
    assert ("bedplate", 990) == (server_account().name, server_account().uid)
    _accounts(monkeypatch, nobody=65534)
    assert "nobody" == server_account().name


def test_root_by_another_name_and_no_account_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    _accounts(monkeypatch, bedplate=0)
    with pytest.raises(RequirementMissing, match="uid 0"):
        server_account()
    _accounts(monkeypatch)
    with pytest.raises(RequirementMissing, match="useradd --system bedplate"):
        server_account()


def test_user_runs_servers_as_himself(monkeypatch: pytest.MonkeyPatch) -> None:
    own = pwd.getpwall()[1]
    monkeypatch.setattr(os, "geteuid", lambda: own.pw_uid)
    assert own.pw_uid == server_account().uid


HOLDER = """
import sys; from pathlib import Path
from bedplate.host.lock import device_lock
with device_lock(Path(sys.argv[1]), sys.argv[2], study="winter"):
    print("held", flush=True); sys.stdin.read()
"""


def test_second_holder_is_told_the_first_and_another_name_is_the_same_lock(tmp_path: Path) -> None:
    device, alias = tmp_path / "device", tmp_path / "alias"
    device.touch()
    alias.symlink_to(device)
    source = Path(__file__).resolve().parents[3] / "src"
    argv = [sys.executable, "-c", HOLDER, str(tmp_path / "state"), str(device)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    holder = subprocess.Popen(argv, env={**os.environ, "PYTHONPATH": str(source)}, **pipes)  # type: ignore[call-overload]
    try:
        assert b"held\n" == holder.stdout.readline()
        with (
            pytest.raises(DeviceInUse, match=f"process {holder.pid}, study winter"),
            device_lock(tmp_path / "state", str(alias)),
        ):
            pass
        with device_lock(tmp_path / "state", str(tmp_path / "another")):
            pass
    finally:
        holder.kill()
        holder.communicate()
    with device_lock(tmp_path / "state", str(alias)):
        pass


def test_start_time_is_found_behind_any_name(tmp_path: Path) -> None:
    fields = " ".join(str(number) for number in range(4, 53))
    for state, expected in (("S", "22"), ("Z", None)):
        _tree(tmp_path, **{"7/stat": f"7 (a) R ) b) {state} {fields}\n"})
        assert expected == start_time(7, tmp_path)
    assert start_time(8, tmp_path) is None


def test_process_with_the_same_pid_but_another_start_is_a_stranger() -> None:
    own = start_time(os.getpid())
    assert own is not None
    assert is_running(os.getpid(), own)
    assert not is_running(os.getpid(), str(int(own) - 1))
    assert not is_running(os.getpid(), "")


def test_deaf_process_is_killed_after_the_grace() -> None:
    script = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(60)"
    child = subprocess.Popen([sys.executable, "-S", "-c", script], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    assert end_process(child.pid, gently=signal.SIGTERM, grace_s=0.2)
    assert -signal.SIGKILL == child.wait()
    assert end_process(child.pid)
    child.stdout.close()


def test_marked_processes_are_found_exactly() -> None:
    environment = {**os.environ, "BEDPLATE_TEST_MARK": "/x/a"}
    child = subprocess.Popen(["sleep", "60"], env=environment)
    try:
        assert (child.pid,) == marked_with("BEDPLATE_TEST_MARK", "/x/a")
        assert () == marked_with("BEDPLATE_TEST_MARK", "/x")
        assert () == marked_with("PLATE_TEST_MARK", "/x/a")
    finally:
        child.kill()
        child.wait()


def test_a_program_that_has_no_environment_yet_is_waited_for_and_one_that_has_none_is_not(
    tmp_path: Path,
) -> None:
    def process(pid: str, environment: bytes, ends_at: str) -> Path:
        place = tmp_path / pid
        place.mkdir()
        (place / "environ").write_bytes(environment)
        (place / "exe").symlink_to("/bin/true")
        (place / "stat").write_text(f"{pid} (a) b) S {'0 ' * 47}{ends_at} 0")
        return place

    process("1", b"", "140000000000")
    begins = process("2", b"", "0")
    looked: list[int] = []

    def looks(done: Callable[[], bool], **_: object) -> bool:
        while not done():
            looked.append(1)
            (begins / "environ").write_bytes(b"A=1\0MARK=/x\0")
        return True

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("bedplate.host.process.wait_until", looks)
        assert (2,) == marked_with("MARK", "/x", tmp_path)
    assert [1] == looked


def test_server_counts_only_if_its_program_lies_in_the_prefix(tmp_path: Path) -> None:
    child = work = subprocess.Popen(["sleep", "60"], cwd=tmp_path)
    try:
        (tmp_path / "postmaster.pid").write_text(f"{child.pid}\n")
        program = Path(f"/proc/{child.pid}/exe").readlink()
        assert (child.pid,) == servers_of(tmp_path, program.parent)
        assert () == servers_of(tmp_path, tmp_path)
        assert () == servers_of(tmp_path / "other", program.parent)
        # Another server's process, and a pipe: whoever runs as the server's account may write what he likes.
        work = subprocess.Popen(["sleep", "60"], cwd="/")
        (tmp_path / "postmaster.pid").write_text(f"{work.pid}\n")
        assert (child.pid,) == servers_of(tmp_path, program.parent)
        (tmp_path / "postmaster.pid").unlink()
        os.mkfifo(tmp_path / "postmaster.pid")
        assert (child.pid,) == servers_of(tmp_path, program.parent)
    finally:
        for each in (child, work):
            each.kill()
            each.wait()


class Saying(Commands):
    """A double of wipefs."""

    def __init__(self, text: str = "", failures: Sequence[str] = ()) -> None:
        super().__init__()
        self.text = text
        self.failures = list(failures)

    def run(self, argv: Sequence[str], **_: object) -> Completed:
        self.record.append(tuple(argv))
        if self.failures:
            return Completed(tuple(argv), 1, "", self.failures.pop(0), 0.0)
        return Completed(tuple(argv), 0, self.text, "", 0.0)


def test_signatures_are_told_apart_by_use_and_label() -> None:
    entries = [
        {"type": "ext4", "usage": "filesystem", "label": "bedplate", "uuid": "1"},
        {"type": "swap", "usage": "other", "label": "bedplate", "uuid": None},
        {"type": "LVM2_member", "usage": "raid", "label": None, "uuid": "2"},
        {"type": "gpt", "usage": "partition-table", "label": None, "uuid": None},
        {"type": "gpt", "usage": "partition-table", "label": None, "uuid": None},
    ]
    found = read_signatures("/dev/x", Saying(json.dumps({"signatures": entries})))
    assert [(True, False), (False, False), (False, True), (False, False)] == [
        (item.is_own, item.is_member) for item in found
    ]
    assert () == read_signatures("/dev/x", Saying("\n"))


@pytest.mark.parametrize("text", ["{", "[]", '{"signatures": [1]}', '{"other": []}', '{"signatures": null}'])
def test_output_that_is_not_wipefs_is_not_a_blank_disk(text: str) -> None:
    with pytest.raises(OutputNotUnderstood):
        read_signatures("/dev/x", Saying(text))


def test_erasing_waits_for_a_busy_device_and_no_longer_than_allowed() -> None:
    busy = "wipefs: error: /dev/x: probing initialization failed: Device or resource busy"
    patient = Saying(failures=[busy, busy])
    erase_signatures("/dev/x", patient)
    assert 3 == len(patient.record)
    with pytest.raises(DeviceInUse, match="stays busy"):
        erase_signatures("/dev/x", Saying(failures=[busy] * 99), deadline_s=0.1)
    with pytest.raises(CommandFailed, match="No such device"):
        erase_signatures("/dev/x", Saying(failures=["No such device"]))


def test_troubles_of_other_loop_devices_are_not_ours() -> None:
    messages = (
        "EXT4-fs (loop2): bad block size 8192",
        "EXT4-fs (loop1): warning: checktime reached",
        "operation not supported error, dev loop12, sector 0",
        "I/O error, dev sda, sector 8",
        "loop2p1: loop1 is full",
        "watchdog: BUG: soft lockup",
    )
    assert messages_of_ours(messages, ("loop1",)) == (messages[1], *messages[3:])
    assert messages_of_ours(messages, ()) == (messages[3], messages[5])


def test_a_message_without_a_device_is_nobodys_where_another_device_was_in_use() -> None:
    messages = (
        "EXT4-fs: Warning: mounting with data=journal disables delayed allocation",
        "EXT4-fs (loop1): warning: checktime reached",
        "Buffer I/O error on dev sda1, logical block 7",
        "XFS (dm-0): log I/O error",
    )
    known = ("dm-0", "loop1", "loop2", "sda", "sda1")
    assert messages_of_ours(messages, ("loop1",), devices=known, others_in_use=True) == messages[1:]
    assert messages_of_ours(messages, ("loop1",), devices=known) == messages
