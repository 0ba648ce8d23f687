"""The command lines of guests and of jobs of a cluster, held as text."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

from tests.support.goldens.held_text import hold

from bedplate.executors.qemu.guest import (
    KVM,
    TCG,
    GuestDisk,
    GuestSpec,
    SharedFolder,
    guest_command,
    trial_command,
)
from bedplate.executors.slurm.controller import job_script, submission
from bedplate.model.machine import Fleet
from bedplate.units import GIB, MIB

DISKS = (
    GuestDisk("bedplate-data", Path("/srv/data.img"), GIB),
    GuestDisk("bedplate-journal", Path("/dev/shm/journal.img"), 64 * MIB, in_memory=True),
)
GUEST = GuestSpec(
    image=Path("/cache/vmlinuz"),
    initramfs=Path("/cache/initramfs"),
    accelerator=KVM,
    memory_bytes=2 * GIB,
    cpu_count=2,
    disks=DISKS[:1],
    shares=(
        SharedFolder("share", Path("/srv/a,b"), writable=True),
        SharedFolder("root", Path("/"), writable=False),
    ),
)


def _listed(title: str, words: tuple[str, ...] | list[str]) -> str:
    """An option a line, with its value."""
    return f"== {title}\n{shlex.join(words)}\n".replace(" -", "\n    -")


def test_a_guest_is_started_by_the_same_words() -> None:
    guests = {
        "under KVM": GUEST,
        "emulated": replace(GUEST, accelerator=TCG),
        "emulated, the rate of the counter known, a journal in memory": replace(
            GUEST, accelerator=TCG, counter_khz=2_500_000, disks=DISKS
        ),
    }
    texts = [
        _listed(title, guest_command(guest, console=Path("/srv/con,sole"), visits_socket=7, control=9))
        for title, guest in guests.items()
    ]
    texts.append(_listed("trial of KVM", trial_command(Path("/cache/vmlinuz"), console=5)))
    hold("commands/guests.txt", "\n".join(texts))


def test_a_job_is_handed_in_by_the_same_words() -> None:
    plain = Fleet(("n1", "n2"))
    fleets = {
        "as little as can be asked": (plain, 600.0, ()),
        "minutes alone": (plain, 45.0, ()),
        "all that can be asked": (
            replace(plain, partition="fast", constraint="nvme", account="db", gres="disk:1"),
            7200.0,
            ("BEDPLATE_CACHE", "PATH"),
        ),
    }
    texts = [
        _listed(
            title,
            submission(
                fleet,
                name="bedplate-key-1",
                node="n1",
                limit_s=limit_s,
                script=Path("/shared/study/fleet/job 1/job.sh"),
                log=Path("/shared/100%/job.log"),
                exported=exported,
            ),
        )
        for title, (fleet, limit_s, exported) in fleets.items()
    ]
    texts.append(
        f"== script\n{job_script(('/shared/bed plate/bedplate',), Path('/shared/study/fleet/job 1'))}"
    )
    hold("commands/jobs.txt", "\n".join(texts))
