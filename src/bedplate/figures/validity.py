"""Whether a completed run may be believed: the rules that hold for every workload.

Every rule has a name, a threshold in words and the source that it stands on: the table of docs/METRICS.md is made
from these. A rule gives the reason with the numbers in it, or None.
A workload has its own rules beside them (`validity.py` of its folder).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bedplate.figures.run import run_figures
from bedplate.figures.samples import UNSEEN_SHARE_MAX, RunEvidence, RunInputs
from bedplate.model.figure import RunFigures
from bedplate.model.filesystem import ROUTINE_KERNEL_MESSAGE
from bedplate.model.reason import Reason
from bedplate.model.rules import (
    INPUT_UNREADABLE,
    NOT_COMPLETED,
    NOTHING_MEASURED,
    Rule,
    Spoken,
    spoken,
    unreadable,
)
from bedplate.model.visit import Validity
from bedplate.units import format_size, percent

STEAL_SHARE_MAX = 0.05


OTHERS_SHARE_MAX = 0.10


LATE_SHARE_MAX = 0.05


_MESSAGES_SHOWN = 3


def _kernel_messages(evidence: RunEvidence) -> Spoken | None:
    alarming = [text for text in evidence.kernel_messages if not ROUTINE_KERNEL_MESSAGE.search(text)]
    if not alarming:
        return None
    shown = "; ".join(text[:160] for text in alarming[:_MESSAGES_SHOWN])
    words = f"the kernel gave {len(alarming)} warning{'s' * (len(alarming) > 1)} during the visit: {shown}"
    return spoken(words, warnings=len(alarming))


def _server_broke(evidence: RunEvidence) -> Spoken | None:
    grave = [found for found in evidence.complaints if found.severity in ("FATAL", "PANIC", "CRASH")]
    if not grave:
        return None
    first = grave[0]
    words = f"the server logged {len(grave)} grave lines during the run, first {first.severity}: {first.text}"
    return spoken(words, lines=len(grave), severity=first.severity)


def _clock_stepped(evidence: RunEvidence) -> Spoken | None:
    step_s = evidence.clock_step_s
    if step_s is None:
        return None
    return spoken(
        f"the wall clock was stepped by {step_s:+.3f} s: the seconds of logs are not the run's", step_s=step_s
    )


def _throttled(evidence: RunEvidence) -> Spoken | None:
    share = evidence.steal_share
    if share is None or share <= STEAL_SHARE_MAX:
        return None
    words = f"a hypervisor took {percent(share, digits=1)} of the processors' time (limit {percent(STEAL_SHARE_MAX)})"
    return spoken(words, share=share, limit=STEAL_SHARE_MAX)


def _others_at_work(evidence: RunEvidence) -> Spoken | None:
    share = evidence.others_cpu_share
    if share is None or share <= OTHERS_SHARE_MAX:
        return None
    return spoken(
        f"other programs used {percent(share, digits=1)} of the processors' time or more (limit {percent(OTHERS_SHARE_MAX)}): "
        "the run did not have the machine to itself",
        share=share,
        limit=OTHERS_SHARE_MAX,
    )


def _caches_dropped(evidence: RunEvidence) -> Spoken | None:
    drops = evidence.cache_drops
    if not drops:
        return None
    return spoken(
        f"another program dropped the machine's caches {drops} times during the run: what was cached is not what "
        "the run had read",
        drops=drops,
    )


def _device_late(evidence: RunEvidence) -> Spoken | None:
    share = evidence.late_share
    if share is None or share <= LATE_SHARE_MAX:
        return None
    words = (
        f"requests took {percent(share, digits=1)} longer than the emulated device should take (limit {percent(LATE_SHARE_MAX)}): it was "
        "slower than the plan asks for"
    )
    return spoken(words, share=share, limit=LATE_SHARE_MAX)


def _course_ends_early(evidence: RunEvidence) -> str | None:
    return evidence.course_problem


def _course_missing(evidence: RunEvidence) -> str | None:
    return (
        "course.jsonl, which is begun before the run, is not there: steps of the clock, the load of the machine by the "
        "second and all that is judged by them are not known"
        if evidence.course_missing
        else None
    )


def _checkpoints_unknown(evidence: RunEvidence) -> str | None:
    return (
        "the server's log could not be read: its checkpoints are not known"
        if evidence.windows is None
        else None
    )


KERNEL_WARNING: Rule[RunEvidence] = Rule(
    "kernel warning",
    "any kernel message of the visit beyond those of an ordinary mount",
    "the kernel says so where a device, a driver or a file system fails; a convention of bedplate",
    _kernel_messages,
)


SERVER_BROKE: Rule[RunEvidence] = Rule(
    "server broke",
    "FATAL, PANIC or the crash of a server process in the server's log during the run",
    "PostgreSQL, “Error Reporting and Logging”",
    _server_broke,
)


CLOCK_STEPPED: Rule[RunEvidence] = Rule(
    "clock stepped",
    "wall and monotonic clock part by more than 0.1 s between two samples",
    "NTP slews at most 500 ppm (adjtimex(2)); anything faster is a step",
    _clock_stepped,
)


THROTTLED_MACHINE: Rule[RunEvidence] = Rule(
    "throttled machine",
    f"steal above {percent(STEAL_SHARE_MAX)} of the time of all processors",
    "proc(5), /proc/stat; the limit is a convention of bedplate",
    _throttled,
)


OTHERS_AT_WORK: Rule[RunEvidence] = Rule(
    "others at work",
    f"user time of programs beside the run above {percent(OTHERS_SHARE_MAX)} of the time of all processors",
    "proc(5), /proc/stat, less the run's own processes; the limit is a convention of bedplate",
    _others_at_work,
)


CACHES_DROPPED: Rule[RunEvidence] = Rule(
    "caches dropped",
    "another program wrote to /proc/sys/vm/drop_caches during the run",
    "Linux, Documentation/admin-guide/sysctl/vm.rst, “drop_caches”; counted as `drop_pagecache` in /proc/vmstat",
    _caches_dropped,
)


DEVICE_LATE: Rule[RunEvidence] = Rule(
    "emulated device late",
    f"requests took more than {percent(LATE_SHARE_MAX)} longer, all together, than the emulated device should take",
    "the device counts them (drivers/power_cut_recorder/queue.c); the limit is a convention of bedplate",
    _device_late,
)


COURSE_INCOMPLETE: Rule[RunEvidence] = Rule(
    "course incomplete",
    f"a probe failed during the run, or no sample was taken in more than {percent(UNSEEN_SHARE_MAX)} of it",
    "absent is not zero: what is not known is neither good nor bad",
    _course_ends_early,
    Validity.UNKNOWN,
)


COURSE_MISSING: Rule[RunEvidence] = Rule(
    "course missing",
    "the samples of the run are not there",
    "absent is not zero: what is not known is neither good nor bad",
    _course_missing,
)


CHECKPOINTS_UNKNOWN: Rule[RunEvidence] = Rule(
    "checkpoints unknown",
    "the server's log cannot be read",
    "absent is not zero: what is not known is neither good nor bad",
    _checkpoints_unknown,
    Validity.UNKNOWN,
)


# What does not ask for a server.
OF_EVERY_TIMED_RUN: tuple[Rule[RunEvidence], ...] = (
    KERNEL_WARNING,
    CLOCK_STEPPED,
    THROTTLED_MACHINE,
    OTHERS_AT_WORK,
    CACHES_DROPPED,
    DEVICE_LATE,
    INPUT_UNREADABLE,
    COURSE_INCOMPLETE,
    COURSE_MISSING,
)


def unmeasured(inputs: RunInputs, *, warmup_s: float | None = None) -> RunFigures:
    """A run that did not come to its measurement has reasons and no figures."""
    verdict = (Validity.UNKNOWN, (NOTHING_MEASURED, *unreadable(inputs.problems)))
    return run_figures(inputs.record, verdict, start_wall_s=None, duration_s=None, warmup_s=warmup_s)


def not_completed(inputs: RunInputs) -> tuple[Validity, tuple[Reason, ...]]:
    """The verdict on a run that began and failed: what it counted would be read as its speed."""
    return Validity.UNKNOWN, (NOT_COMPLETED, *unreadable(inputs.problems))


# Compression by the file system may divide what is read by three, hardly by ten.
READ_SHARE_MIN = 0.1


@dataclass(frozen=True)
class Moved:
    """What a part of a run asked to read or write, and what the device gave or took meanwhile; None is not known."""

    what: str
    asked_bytes: float
    device_bytes: float | None


@dataclass(frozen=True, kw_only=True)
class ToolEvidence(RunEvidence):
    """Of a run of such a tool: `reads` are what it must have read from the device."""

    reads: tuple[Moved, ...]


def below(moves: Iterable[Moved], share: float) -> Iterable[tuple[Moved, float]]:
    """What the device gave or took less of than this share, with the bytes of the device."""
    for moved in moves:
        if moved.device_bytes is not None and moved.device_bytes < share * moved.asked_bytes:
            yield moved, moved.device_bytes


def _not_from_the_device(evidence: ToolEvidence) -> str | None:
    found = [
        f"{moved.what} read {format_size(moved.asked_bytes)}, and the device gave {format_size(given)}"
        for moved, given in below(evidence.reads, READ_SHARE_MIN)
    ]
    return f"the cache answered: {'; '.join(found)}" if found else None


CACHE_ANSWERED: Rule[ToolEvidence] = Rule(
    "cache answered",
    f"the device gave less than {percent(READ_SHARE_MIN)} of the bytes that a job, or a stage that rewrites, reads or seeks, "
    "read (canaries on a file that fits the memory apart)",
    "what comes from memory tells nothing of the file system; the limit is a convention of bedplate",
    _not_from_the_device,
)
