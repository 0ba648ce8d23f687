"""What the machine does to a study that runs: disks that fill, namespaces that hold, files that go."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.studies.study_lab import Lab, study_lab, tmpfs
from tests.torture.kills import finish, judge, said_by, small_plan, unchanged, wait_for
from tests.torture.trial import Tally

from bedplate.host.process import wait_until

_BEGUN_S = 60.0
_DISK = "96m"
# What stays free for a moment: anything from nothing to less than a visit writes.
_FREE_KIB_MAX = 400


def full_disk(drawn: random.Random, _: Path, tally: Tally) -> None:
    """The disk under the study or under the state directory fills at any moment, and is freed later."""
    what = drawn.choice(("study", "state"))
    with study_lab() as lab, tmpfs(lab.base / what, f"{_DISK},mode=755"):
        if what == "study":
            # The image stands elsewhere, as it does for a real device.
            (lab.base / "images").mkdir()
            (lab.study / "scratch").mkdir()
            subprocess.run(["mount", "--bind", lab.base / "images", lab.study / "scratch"], check=True)
        plan = small_plan(lab, drawn)
        start = lab.start("run", plan, "--study", lab.study)
        # What fills the disk stands in the study's directory, which would be somebody else's before that.
        wait_until((lab.study / "study.json").exists, deadline_s=_BEGUN_S)
        wait_for(drawn.uniform(0.0, 8.0), start)
        kept = unchanged(lab.study, {}, "", tally)
        with _filled(lab.base / what, drawn.randint(0, _FREE_KIB_MAX)):
            said = said_by(start, f"a full disk under the {what}", tally)
        tally.tried[f"full disk under the {what}"] += 1
        tally.expect(
            start.returncode in {0, 1, 3},
            f"a full disk under the {what} ended with {start.returncode}: {said[-300:]}",
        )
        tally.expect("Traceback" not in said, f"a traceback from a full disk under the {what}: {said[-600:]}")
        if start.returncode == 3:
            tally.expect(
                str(lab.base) in said, f"a full disk under the {what} is said without its path: {said[-300:]}"
            )
        kept = unchanged(lab.study, kept, f"while the disk under the {what} was full", tally)
        _end(lab, plan, kept, tally)


def foreign_namespace(drawn: random.Random, _: Path, tally: Tally) -> None:
    """Another program copies the mount namespace while a visit runs, and keeps it for a while."""
    with study_lab() as lab:
        plan = small_plan(lab, drawn)
        start = lab.start("run", plan, "--study", lab.study)
        wait_for(drawn.uniform(0.5, 8.0), start)
        holder = subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sleep", "120"])
        try:
            said = said_by(start, "a foreign namespace", tally)
            tally.tried["foreign mount namespace"] += 1
            tally.expect(start.returncode == 0, f"a foreign namespace cost a visit: {said[-600:]}")
        finally:
            holder.kill()
            holder.wait()
        _end(lab, plan, {}, tally)


def vanishing_file(drawn: random.Random, _: Path, tally: Tally) -> None:
    """Something that a running visit stands on goes away: its image, its ledger, its mount."""
    what = drawn.choice(("mount", "ledger", "image"))
    with study_lab() as lab:
        plan = small_plan(lab, drawn)
        start = lab.start("run", plan, "--study", lab.study)
        wait_for(drawn.uniform(1.0, 7.0), start)
        if what == "mount":
            _unmount_all(lab, start)
        else:
            pattern = "**/ledger.jsonl" if what == "ledger" else "**/*.img"
            for path in (lab.state if what == "ledger" else lab.base).glob(pattern):
                path.unlink(missing_ok=True)
        said = said_by(start, f"the loss of the {what}", tally)
        tally.tried[f"loss of the {what}"] += 1
        tally.expect("Traceback" not in said, f"a traceback from the loss of the {what}: {said[-600:]}")
        _end(lab, plan, {}, tally)


def two_studies(drawn: random.Random, _: Path, tally: Tally) -> None:
    """Two studies at once, each with a state directory of its own and an image of its own, end both."""
    with study_lab() as first, study_lab() as second:
        plans = [small_plan(lab, drawn) for lab in (first, second)]
        starts = [
            lab.start("run", plan, "--study", lab.study)
            for lab, plan in zip((first, second), plans, strict=True)
        ]
        for start, lab, plan in zip(starts, (first, second), plans, strict=True):
            said = said_by(start, "another study", tally)
            tally.expect(start.returncode == 0, f"another study beside it cost a visit: {said[-600:]}")
            _end(lab, plan, {}, tally)
        tally.tried["two studies at once"] += 1


def _unmount_all(lab: Lab, start: subprocess.Popen[str]) -> None:
    """In the study's own namespace, as only that one has its mounts."""
    for mounted in (line.split()[4] for line in _mountinfo(start.pid)):
        if str(lab.state) in mounted:
            subprocess.run(
                ["nsenter", f"--mount=/proc/{start.pid}/ns/mnt", "umount", "--lazy", mounted],
                check=False,
                capture_output=True,
            )


def _mountinfo(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/mountinfo").read_text().splitlines()
    except OSError:
        return []


@contextmanager
def _filled(disk: Path, free_kib: int) -> Iterator[None]:
    """A file that leaves so much free; it holds for some seconds and is taken away with the context."""
    ballast = disk / "ballast"
    room = os.statvfs(disk)
    size = max(room.f_bavail * room.f_frsize - free_kib * 1024, 0)
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(size, 1))
    try:
        yield
    finally:
        ballast.unlink()


def _end(lab: Lab, plan: Path, kept: dict[str, str], tally: Tally) -> None:
    finish(lab, plan, tally)
    unchanged(lab.study, kept, "after the last start", tally)
    judge(lab, tally)
