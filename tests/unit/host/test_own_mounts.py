from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bedplate.host.mount import MountEntry, foreign_mounts, paths_in


def mounted(target: str, kind: str, source: str) -> MountEntry:
    return MountEntry(1, 0, "8:1", "/", target, kind, source, ("rw",), ("rw",))


def test_only_what_keeps_others_busy_is_let_go_of() -> None:
    table = [
        mounted("/", "ext4", "/dev/sda1"),
        mounted("/proc", "proc", "proc"),
        mounted("/dev/shm", "tmpfs", "tmpfs"),
        mounted("/usr", "ext4", "/dev/sda2"),
        mounted("/srv/build", "xfs", "/dev/sdb1"),
        mounted("/mnt/stick", "vfat", "/dev/sdc1"),
        mounted("/run/other/mount", "ext4", "/dev/loop1"),
        mounted("/dev/shm/other/recorder", "fuse.bedplate", "bedplate-recorder"),
        mounted("/snap/core/1", "squashfs", "/dev/loop7"),
    ]
    needed = [Path("/usr/bin/mount"), Path("/srv/build/pg/bin/postgres"), Path("/dev/shm/mine/log")]
    assert ["/mnt/stick", "/run/other/mount", "/dev/shm/other/recorder", "/snap/core/1"] == [
        entry.target for entry in foreign_mounts(table, needed)
    ]


def test_what_goes_with_its_original_and_what_a_container_lays_over_the_system_stays() -> None:
    table = [
        replace(mounted("/mnt/stick", "vfat", "/dev/sdc1"), follows=True),
        mounted("/etc/resolv.conf", "ext4", "/dev/sda1"),
    ]
    assert [] == foreign_mounts(table, [])


def test_every_absolute_path_of_a_document_is_found() -> None:
    document = {"build": {"prefix": "/pg"}, "inputs": ["/data", "relative", 7, None], "seed": 1}
    assert [Path("/pg"), Path("/data")] == list(paths_in(document))


def test_what_holds_the_log_stays_even_if_it_is_served_from_user_space() -> None:
    table = [mounted("/home/me", "fuse.encfs", "encfs")]
    assert [] == foreign_mounts(table, [Path("/home/me/study/log")])
