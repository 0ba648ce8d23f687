"""What a job runs on its node: its visits one after the other, each put in its place when it has ended.

Standard library only: a node needs Python and the checkout, and no virtual environment. It runs as the user
who submitted the job; a visit itself is begun through sudo. Results are gathered on a disk of the node's own
and copied to the study whole, as a visit that wrote to a network file system would measure it too.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import FrameType

from bedplate.errors import (
    EXIT_DONE,
    EXIT_PLAN_OR_CALL_WRONG,
    EXIT_REQUIREMENT_MISSING,
    EXIT_SOME_RUNS_FAILED,
    BedplateError,
    MachineUnfit,
)
from bedplate.executors.slurm.job_folder import FAILURE, JobClaim, JobEnd, JobFolder, JobOrder, end_of_log
from bedplate.host.cache import put_in_place
from bedplate.host.process import boot_id, start_time

# What a job is told before its limit: a visit stops its server and unmounts within this time.
WARNING_S = 180.0

# A shorter job would be told of its end before it began, and is not.
WARNED_FROM_S = 1200.0

# Slurm may tell up to a minute early, and a job has begun before this process has.
_EARLY_S = 90.0

# A full or absent file system of the study: what took hours is not thrown away for it at once.
STUDY_PATIENCE_S = 1800.0

_STUDY_PAUSE_S = 15.0

# Of a job without visits the result; it counts like a visit.
ONLY = 0

# There once a visit's process runs as root. Without it sudo, Python or the checkout failed, and no visit.
STARTED = "started"

# How long the visit took with its start, in seconds; the study keeps it in the record.
WHOLE = "whole-seconds.txt"

_ENDING_S = 300.0
_SHOWN_CHARACTERS = 4000


class Payload:
    """One job, from its claim to its end."""

    def __init__(self, job: JobFolder, order: JobOrder, *, started: float) -> None:
        self._folder = job
        self._order = order
        self._started = started
        self._stop_file: Path | None = None
        self._stopping = threading.Event()
        self.results = 0

    def run(self) -> JobEnd:
        """Every visit that has no result yet; says how it ended.

        MachineUnfit, or OSError, where no visit can run on this node: the one that was begun is no result.
        """
        here = os.environ.get("SLURMD_NODENAME", "")
        if here != self._order.node:
            return _end("refused", f"this is node {here or '(unknown)'}, the order is for {self._order.node}")
        local = self._local_directory()
        try:
            numbers = [visit.number for visit in self._order.visits] or [ONLY]
            for number in numbers:
                if self._folder.result(number).exists():
                    continue
                if self._stopping.is_set():
                    return self._stopped()
                if self._folder.settled is not None:
                    # Given up for lost meanwhile: what is left belongs to another job.
                    return _end("refused", "the study goes on without this job")
                self._folder.note_begun(number)
                self._live(number, local)
                # A visit that was asked to end is none; unless it had ended by then.
                if self._stopping.is_set() and not self._folder.result(number).exists():
                    return self._stopped()
        finally:
            shutil.rmtree(local, ignore_errors=True)
        return _end("done", "every visit has ended")

    def stop(self) -> None:
        """Ask the visit under way to give everything back, and begin no other."""
        self._stopping.set()
        # A process under sudo is root's and takes no signal of ours: it looks for this file.
        if self._stop_file is not None:
            self._stop_file.touch()

    def _local_directory(self) -> Path:
        base = Path(self._order.local_directory) / f"bedplate-{os.getuid()}"
        base.mkdir(mode=0o755, exist_ok=True)
        if base.is_symlink() or base.stat().st_uid != os.getuid():
            raise BedplateError(f"{base} belongs to somebody else; name another local_directory in [slurm]")
        local = base / self._order.name
        shutil.rmtree(local, ignore_errors=True)
        local.mkdir(mode=0o755)
        return local

    def _live(self, number: int, local: Path) -> None:
        """One visit; its result stands in the study's folder afterwards, unless it was asked to end."""
        directory = local / f"{number:03d}"
        (directory / "logs").mkdir(parents=True)
        began = time.monotonic()
        said = directory / "logs" / "on-node.log"
        self._stop_file = local / "stop"
        if self._stopping.is_set():
            return
        with said.open("wb") as log:
            visit = subprocess.Popen(
                [*self._words(number), str(directory)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd="/",
            )
            status = self._wait(visit)
        if self._stopping.is_set() and not (directory / "visit.json").exists():
            shutil.rmtree(directory, ignore_errors=True)
            return
        has_started = (directory / STARTED).exists()
        (directory / STARTED).unlink(missing_ok=True)
        if status != EXIT_DONE:
            text = (end_of_log(said, 4 * _SHOWN_CHARACTERS) or b"").decode(errors="replace").strip()
            text = text[-_SHOWN_CHARACTERS:]
            if self._order.visits and (status == EXIT_REQUIREMENT_MISSING or not has_started):
                raise MachineUnfit(
                    *(text.splitlines() or (f"the visit's process ended with status {status}",))
                )
            how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
            (directory / FAILURE).write_text(
                f"the visit's process on {self._order.node} {how}: {text or '(it printed nothing)'}\n"
            )
        (directory / WHOLE).write_text(f"{time.monotonic() - began:.3f}\n")
        self._publish(directory, number)
        self.results += 1

    def _words(self, number: int) -> list[str]:
        order = self._order
        # Without a terminal sudo cannot ask, and must not wait for an answer.
        root = ["sudo", "-n", "--"] if order.needs_root and os.geteuid() != 0 else []
        payload = f"{os.getpid()}:{start_time(os.getpid())}"
        words = [*root, *order.command, "--payload", payload, "--stop-file", str(self._stop_file)]
        if order.release:
            return [*words, "--release"]
        if order.facts is not None:
            return [*words, "--facts", order.facts]
        expected = [] if order.node_identity is None else ["--identity", order.node_identity]
        return [*words, *expected, str(self._folder.request(number))]

    def _wait(self, visit: subprocess.Popen[bytes]) -> int:
        asked_at: float | None = None
        while True:
            try:
                return visit.wait(timeout=1.0)
            except subprocess.TimeoutExpired:
                if not self._stopping.is_set():
                    continue
                asked_at = asked_at or time.monotonic()
                if time.monotonic() - asked_at > _ENDING_S:
                    # Of sudo's this is refused; Slurm's own SIGKILL comes soon.
                    with contextlib.suppress(PermissionError):
                        visit.kill()

    def _publish(self, directory: Path, number: int) -> None:
        """Copy to the study under another name, then rename: whole or absent; OSError when patience ends."""
        final = self._folder.result(number)
        fresh = final.with_name(f".{final.name}.part")
        give_up = time.monotonic() + STUDY_PATIENCE_S
        while True:
            try:
                shutil.rmtree(fresh, ignore_errors=True)
                shutil.copytree(directory, fresh, symlinks=True)
                put_in_place(fresh, final)
                break
            except OSError as error:
                if self._stopping.is_set() or time.monotonic() > give_up:
                    raise
                print(f"{final} cannot be written, it is tried again: {error}", flush=True)
                self._stopping.wait(_STUDY_PAUSE_S)
        shutil.rmtree(directory, ignore_errors=True)

    def _stopped(self) -> JobEnd:
        limit_s = self._order.limit_s
        ahead_s = WARNING_S if limit_s >= WARNED_FROM_S else 0.0
        if time.monotonic() - self._started > limit_s - ahead_s - min(_EARLY_S, limit_s / 4):
            return _end("limit", f"the job's limit of {limit_s:.0f} s was near")
        return _end("stopped", "the job got a signal to end")


def main(arguments: list[str]) -> int:
    """Live the job in a folder."""
    os.umask(0o022)
    started = time.monotonic()
    folder = JobFolder(Path(arguments[0]))
    try:
        order = folder.order
    except BedplateError as error:
        print(*error.reasons, sep="\n", file=sys.stderr)
        return EXIT_PLAN_OR_CALL_WRONG
    claim = JobClaim(
        by=os.environ.get("SLURM_JOB_ID", ""),
        node=os.environ.get("SLURMD_NODENAME", ""),
        boot_id=boot_id(),
        wall_s=time.time(),
    )
    if not folder.take(claim):
        print(f"{folder.claim_file}: the order is somebody else's; nothing is done", file=sys.stderr)
        return EXIT_SOME_RUNS_FAILED
    payload = Payload(folder, order, started=started)

    def stop(_number: int, _frame: FrameType | None) -> None:
        payload.stop()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    try:
        end = payload.run()
    except BedplateError as error:
        end = _unfit(order, *error.reasons)
    except OSError as error:
        end = _unfit(order, f"{error.filename}: {error.strerror}" if error.filename else str(error))
    folder.note_end(replace(end, results=payload.results))
    print(end.sentence, flush=True)
    # A job that ended because it was asked to has not failed.
    return EXIT_SOME_RUNS_FAILED if end.why in {"refused", "unfit"} else EXIT_DONE


def _unfit(order: JobOrder, *reasons: str) -> JobEnd:
    return _end("unfit", f"no visit can run on {order.node}: {'; '.join(reasons)}")


def _end(cause: str, sentence: str) -> JobEnd:
    return JobEnd(cause, sentence, time.time())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
