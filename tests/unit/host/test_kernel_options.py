"""What the kernel offers that rules of a plan look at: schedulers, io_uring, options of its build."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from bedplate.engines.postgresql.plan import IO_URING_DISABLED
from bedplate.host.facts import read_machine
from bedplate.plan.rules import SCHEDULERS_AVAILABLE, XFS_V4

RELEASE = "6.12.1-test"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place(tmp_path, "proc/sys/kernel/osrelease", RELEASE)
    place(tmp_path, "proc/sys/kernel/random/boot_id", "abc")
    place(tmp_path, "proc/self/mountinfo", "30 23 0:26 / /cg rw - cgroup cgroup rw,memory\n")
    return tmp_path


def place(root: Path, name: str, text: str | bytes) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())


def test_schedulers_are_those_of_all_queues_and_of_modules_to_be_loaded(root: Path) -> None:
    place(root, "sys/class/block/sda/queue/scheduler", "[mq-deadline] none\n")
    place(root, "sys/class/block/loop0/queue/scheduler", "[none] kyber\n")
    place(
        root,
        f"lib/modules/{RELEASE}/modules.dep",
        "kernel/block/bfq.ko.zst: \nkernel/block/not-a-scheduler.ko:\nkernel/fs/xfs/xfs.ko: kernel/lib/crc.ko\n",
    )
    assert "bfq kyber mq-deadline none" == read_machine(root).tunables[SCHEDULERS_AVAILABLE]


def test_without_any_queue_schedulers_are_not_known(root: Path) -> None:
    place(root, f"lib/modules/{RELEASE}/modules.dep", "kernel/block/bfq.ko.zst:\n")
    assert SCHEDULERS_AVAILABLE not in read_machine(root).tunables


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CONFIG_XFS_FS=y\n# CONFIG_XFS_SUPPORT_V4 is not set\n", "n"),
        ("CONFIG_XFS_SUPPORT_V4=y\n", "y"),
        ("CONFIG_XFS_SUPPORT_V4=m\n", "m"),
        ("CONFIG_XFS_FS=y\nCONFIG_XFS_SUPPORT_V4_OTHER=y\n", None),
        ("", None),
    ],
)
@pytest.mark.parametrize("where", ["proc/config.gz", f"boot/config-{RELEASE}"])
def test_options_of_the_build_are_read_from_the_kernel_or_beside_it(
    root: Path, where: str, text: str, expected: str | None
) -> None:
    place(root, where, gzip.compress(text.encode()) if where.endswith(".gz") else text)
    assert expected == read_machine(root).tunables.get(XFS_V4)


def test_a_damaged_configuration_is_no_fact(root: Path) -> None:
    place(root, "proc/config.gz", gzip.compress(b"CONFIG_XFS_SUPPORT_V4=y\n" * 50)[:-20])
    assert XFS_V4 not in read_machine(root).tunables


def test_whether_io_uring_is_allowed(root: Path) -> None:
    assert IO_URING_DISABLED not in read_machine(root).tunables
    place(root, "proc/sys/kernel/io_uring_disabled", "2\n")
    assert "2" == read_machine(root).tunables[IO_URING_DISABLED]
