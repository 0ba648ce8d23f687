from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedplate.figures.server_log import Complaint
from bedplate.figures.transactions import TwoSpeeds
from bedplate.model.figure import Window
from bedplate.model.reason import sentences
from bedplate.model.visit import Validity
from bedplate.workloads.pgbench.figures import VALIDITY, PgbenchEvidence

SOUND = PgbenchEvidence(
    client="pgbench",
    read_only=False,
    canary=False,
    duration_s=600.0,
    asked_duration_s=600.0,
    windows=(Window("timed", 10.0, 220.0),),
    complaints=(),
    client_cpu_s=300.0,
    client_threads=2,
    cpu_count=4,
    tps_trend=0.05,
    reads_per_transaction_trend=-0.5,
    device_reads_per_s=100.0,
    database_bytes=8 * 2**30,
    memory_bytes=2 * 2**30,
    asked_times_memory=4.0,
    kernel_messages=(),
    log_complete=True,
    log_damage=None,
    transactions_in_log=1000,
    transactions_by_client=1000,
    transactions_failed=0,
    transactions_outside_window=0,
    phase_s=600.3,
    client_s=600.1,
    clock_step_s=None,
    steal_share=0.0,
    course_problem=None,
    problems=(),
)
READ_ONLY = replace(SOUND, read_only=True, windows=())

SUSPECT: dict[str, tuple[PgbenchEvidence, str]] = {
    "no course": (
        replace(SOUND, course_missing=True),
        "course.jsonl, which is begun before the run, is not there",
    ),
    "device late": (
        replace(SOUND, late_share=0.2),
        "requests took 20.0 % longer than the emulated device should take",
    ),
    "no checkpoint at all": (replace(SOUND, windows=()), "(0 in part)"),
    "checkpoint from the warm-up": (replace(SOUND, windows=(Window("timed", -1.0, 200.0),)), "(1 in part)"),
    "checkpoint past the end": (replace(SOUND, windows=(Window("timed", 400.0, None),)), "(1 in part)"),
    "requested is not timed": (
        replace(SOUND, windows=(Window("requested", 5.0, 9.0),)),
        "no timed checkpoint",
    ),
    "read-only with the warm-up's checkpoint": (
        replace(READ_ONLY, windows=(Window("timed", -9.0, 0.1),)),
        "1 checkpoint ran during a read-only run",
    ),
    "client saturated": (replace(SOUND, client_cpu_s=961.0), "used 80.1 % of its 2 threads (limit 80 %)"),
    "more threads than processors": (
        replace(SOUND, client_threads=64, client_cpu_s=2000.0),
        "used 83.3 % of its 4 threads",
    ),
    "still climbing": (replace(SOUND, tps_trend=0.11), "climbed over the window, by 11 % of its mean"),
    "two speeds": (
        replace(READ_ONLY, two_speeds=TwoSpeeds(70_000.0, 110_000.0, 12), device_reads_per_s=0.0),
        "tps was 70000 until 12 s and 110000 from then on",
    ),
    "processors idle": (
        replace(
            READ_ONLY,
            idle_cpu_share=0.31,
            clients=4,
            client_threads=2,
            cpu_count=2,
            client_cpu_s=10.0,
            device_reads_per_s=0.0,
        ),
        "31.0 % of the processors' time was idle",
    ),
    "fits": (replace(SOUND, database_bytes=2 * 2**30), "4 times the memory"),
    "kernel": (replace(SOUND, kernel_messages=("a", "b", "c", "d")), "4 warnings during the visit: a; b; c"),
    "crash": (replace(SOUND, complaints=(Complaint(1.0, "PANIC", "no space"),)), "first PANIC: no space"),
    "log cut": (replace(SOUND, log_complete=False), "transactions are missing"),
    "log damaged": (replace(SOUND, log_damage="1 line"), "1 line"),
    "failures": (replace(SOUND, transactions_failed=1), "1 transactions failed beside 1000"),
    "counts": (replace(SOUND, transactions_by_client=999), "1000 transactions, pgbench counted 999"),
    "longer than its phase": (replace(SOUND, client_s=601.0), "601.00 s, the clock beside it says 600.30 s"),
    "much shorter than its phase": (replace(SOUND, client_s=594.5, phase_s=603.0), "594.50 s"),
    "step": (replace(SOUND, clock_step_s=3600.0), "stepped by +3600.000 s"),
    "outside": (replace(SOUND, transactions_outside_window=5), "5 transactions of the log lie outside"),
    "steal": (replace(SOUND, steal_share=0.0501), "a hypervisor took 5.0 %"),
    "others": (
        replace(SOUND, others_cpu_share=0.34),
        "other programs used 34.0 % of the processors' time or more",
    ),
    "caches": (replace(SOUND, cache_drops=2), "dropped the machine's caches 2 times"),
    "short": (replace(SOUND, client_s=593.9, phase_s=594.0), "593.9 s were measured, 600 s were requested"),
}
UNKNOWN: dict[str, tuple[PgbenchEvidence, str]] = {
    "no server log": (replace(SOUND, windows=None), "its checkpoints are not known"),
    "no transaction log": (replace(SOUND, transactions_in_log=None), "no transaction log"),
    "probe": (replace(SOUND, course_problem="the course ends early: x"), "the course ends early: x"),
    "unreadable": (replace(SOUND, problems=("a is damaged", "b too")), "a is damaged; b too"),
}
FINE: dict[str, PgbenchEvidence] = {
    "sound": SOUND,
    "read-only": READ_ONLY,
    "read-only after a checkpoint": replace(READ_ONLY, windows=(Window("timed", -9.0, 0.0),)),
    "a canary is too short for a checkpoint": replace(SOUND, canary=True, windows=()),
    "climb without reads": replace(SOUND, tps_trend=0.5, device_reads_per_s=0.9),
    "climb with steady reads": replace(SOUND, tps_trend=0.5, reads_per_transaction_trend=-0.1),
    "limits are not over the limit": replace(
        SOUND, client_cpu_s=960.0, steal_share=0.05, others_cpu_share=0.10, tps_trend=0.10
    ),
    "two speeds of a run that writes are its checkpoints'": replace(
        SOUND, two_speeds=TwoSpeeds(7e4, 11e4, 12), device_reads_per_s=0.0
    ),
    "two speeds of a run that reads from the device": replace(
        READ_ONLY,
        two_speeds=TwoSpeeds(7e4, 11e4, 12),
        device_reads_per_s=500.0,
        reads_per_transaction_trend=0.0,
    ),
    "processors idle under a rate limit": replace(
        READ_ONLY,
        idle_cpu_share=0.31,
        clients=4,
        client_threads=2,
        cpu_count=2,
        client_cpu_s=10.0,
        rate_limited=True,
        device_reads_per_s=0.0,
    ),
    "others are not known": replace(SOUND, others_cpu_share=None),
    "the cache may hold it where the plan says so": replace(SOUND, asked_times_memory=0.5, database_bytes=1),
    "a scale in units says nothing of memory": replace(SOUND, asked_times_memory=None, database_bytes=1),
    "an error is a failed transaction and no broken server": replace(
        SOUND, complaints=(Complaint(1.0, "ERROR", "no"),)
    ),
    "many clients connect long": replace(SOUND, duration_s=590.0),
    "no summary": replace(SOUND, transactions_by_client=None, client_s=None),
}


@pytest.mark.parametrize("name", SUSPECT)
def test_a_rule_speaks_with_its_numbers(name: str) -> None:
    evidence, words = SUSPECT[name]
    validity, reasons = VALIDITY.judge(evidence)
    assert (Validity.SUSPECT, 1) == (validity, len(reasons)), reasons
    assert words in reasons[0].sentence


@pytest.mark.parametrize("name", UNKNOWN)
def test_missing_evidence_leaves_a_run_unknown(name: str) -> None:
    evidence, words = UNKNOWN[name]
    validity, reasons = VALIDITY.judge(evidence)
    assert (Validity.UNKNOWN, 1) == (validity, len(reasons)), reasons
    assert words in reasons[0].sentence


@pytest.mark.parametrize("name", FINE)
def test_a_sound_run_is_valid(name: str) -> None:
    assert (Validity.VALID, ()) == VALIDITY.judge(FINE[name])


def test_every_rule_can_speak() -> None:
    spoken = {
        rule.name
        for evidence, _ in (*SUSPECT.values(), *UNKNOWN.values())
        for rule in VALIDITY.rules
        if rule.judge(evidence)
    }
    assert {rule.name for rule in VALIDITY.rules} == spoken


def test_a_reason_has_the_code_of_its_rule_and_its_values() -> None:
    _, (reason,) = VALIDITY.judge(replace(SOUND, steal_share=0.5))
    assert ("throttled-machine", {"limit": 0.05, "share": 0.5}) == (reason.code, dict(reason.values))
    assert len(VALIDITY.rules) == len({rule.code for rule in VALIDITY.rules})


def test_suspicion_outweighs_ignorance_and_all_reasons_come_at_once() -> None:
    validity, reasons = VALIDITY.judge(replace(SOUND, windows=None, transactions_failed=3, steal_share=0.5))
    assert (Validity.SUSPECT, 3) == (validity, len(reasons))


@given(
    st.builds(
        replace,
        st.just(SOUND),
        duration_s=st.floats(0, 1e6),
        client_cpu_s=st.none() | st.floats(0, 1e6),
        tps_trend=st.none() | st.floats(-10, 10),
        windows=st.none() | st.just(()),
        client_s=st.none() | st.floats(0, 1e6),
    )
)
def test_any_evidence_is_judged_and_never_unexplained(evidence: PgbenchEvidence) -> None:
    validity, reasons = VALIDITY.judge(evidence)
    assert (validity is Validity.VALID) == (not reasons)
    assert all(sentences(reasons))


@pytest.mark.parametrize(
    "message",
    [
        "EXT4-fs (loop3): mounted filesystem 1a2b r/w with ordered data mode. Quota mode: none.",
        "EXT4-fs (loop3): unmounting filesystem 1a2b.",
        "EXT4-fs (loop0): mounting ext3 file system using the ext4 subsystem",
        "set_capacity_and_notify: 15 callbacks suppressed",
        "EXT4-fs mount: 315 callbacks suppressed",
        "_btrfs_printk: 41 callbacks suppressed",
        "loop3: detected capacity change from 0 to 2097152",
        "XFS (loop3): Mounting V5 Filesystem 1a2b",
        "XFS (loop3): Ending clean mount",
        "XFS (loop3): Unmounting Filesystem 1a2b",
        "XFS (loop3): EXPERIMENTAL large block size feature enabled.  Use at your own risk!",
        "BTRFS: device fsid 1a2b devid 1 transid 6 /dev/loop3 (7:3) scanned by mount (99)",
        "BTRFS info (device loop3): first mount of filesystem 1a2b",
        "REISERFS warning:  read_super_block: reiserfs filesystem is deprecated and scheduled to be removed",
        "reiserfs: using flush barriers",
        "BTRFS info (device loop3): using crc32c (crc32c-intel) checksum algorithm",
    ],
)
def test_what_the_kernel_says_of_every_mount_is_no_warning(message: str) -> None:
    assert Validity.VALID is VALIDITY.judge(replace(SOUND, kernel_messages=(message,)))[0]


@pytest.mark.parametrize(
    "message",
    [
        "EXT4-fs error (device loop3): ext4_find_entry:1463: inode #2: reading directory lblock 0",
        "EXT4-fs (loop3): Remounting filesystem read-only",
        "XFS (loop3): Corruption detected. Unmount and run xfs_repair",
        "BTRFS error (device loop3): bdev /dev/loop3 errs: wr 1, rd 0, flush 0, corrupt 0, gen 0",
        "BTRFS warning (device loop3): csum failed root 5 ino 257 off 0",
        "Buffer I/O error on dev loop3, logical block 1, lost async page write",
        "INFO: task postgres:77 blocked for more than 120 seconds.",
        "EXT4-fs (loop3): error count since last fsck: 4, 15 callbacks suppressed",
    ],
)
def test_trouble_of_the_kernel_is_a_warning(message: str) -> None:
    assert Validity.SUSPECT is VALIDITY.judge(replace(SOUND, kernel_messages=(message,)))[0]
