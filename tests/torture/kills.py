"""Studies whose processes are killed at any moment, until they are complete all the same.

What must hold whatever is killed: a finished visit stays as it is, byte for byte; each visit of the schedule is in the
study once; a start goes on, and gives back what the one before it held; nothing of ours is left at the end.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
import signal
import subprocess
from pathlib import Path

from tests.support.studies.study_lab import Lab, study_lab
from tests.support.tools.processes import Process, processes_naming
from tests.torture.processes import descendants, kill
from tests.torture.trial import Tally

_HEAD = """
title = "Torture"
seed = {seed}
repetitions = {repetitions}
[scratch_device]
image_size = "512 MB"
[[filesystem]]
type = {{ vary = {types} }}
[canary]
enabled = false
"""
_PGBENCH = """
[postgresql]
version = "18"
[postgresql.settings]
shared_buffers = "16MB"
[[workload]]
type = "pgbench"
scale = 1
[[workload.run]]
script = "read-write"
clients = 2
warmup = "1 s"
duration = "1 s"
"""
_LMDB = """
[[workload]]
type = "lmdb"
entries = 20_000
reads = ["warm"]
"""
_VISIT_S_MAX = 5.0
# A start that ends of itself on a loaded machine; one that does not hangs, which is a finding.
_END_S = 600.0
_KILLS_MAX = 24
# Enough visits for so many kills: a study at its end has nothing left to kill.
_REPETITIONS = (4, 8)
_MOUNTED_SHARE = 0.5
_ENDING = ("main", "tree", "interrupt")
# After these a start goes on; most are killed once more, some are left to their end.
_GOING_ON = ("visit", "server", "backend")
_LEFT_SHARE = 0.05
_OF_STARTS_AFTER = ("release", "twice")
_OF_SERVERS = {"server", "backend"}


def kills_of_one_study(drawn: random.Random, _place: Path, tally: Tally) -> None:
    """One study, killed up to 24 times, then left to its end and looked at."""
    with study_lab() as lab:
        # On a disk of its own, whose mount each visit has a copy of; the lab unmounts what is below it.
        if drawn.random() < _MOUNTED_SHARE:
            subprocess.run(["mount", "--bind", str(lab.base), str(lab.base)], check=True)
        plan = small_plan(lab, drawn, repetitions=_REPETITIONS)
        has_server = "[postgresql]" in plan.read_text()
        kinds = [
            kind
            for kind in (*_ENDING, *_GOING_ON, *_OF_STARTS_AFTER)
            if has_server or kind not in _OF_SERVERS
        ]
        kept: dict[str, str] = {}
        for _ in range(drawn.randint(12, _KILLS_MAX)):
            kind = drawn.choice(kinds)
            ended = _killed_start(lab, plan, kind, drawn, tally)
            kept = unchanged(lab.study, kept, f"after a kill of {kind}", tally)
            if ended == 0:
                break
        finish(lab, plan, tally)
        unchanged(lab.study, kept, "after the last start", tally)
        judge(lab, tally)


def small_plan(lab: Lab, drawn: random.Random, repetitions: tuple[int, int] = (2, 3)) -> Path:
    """A plan of one or two cells whose visits take some seconds, written into the lab."""
    types = drawn.sample(["ext4", "xfs", "btrfs"], drawn.randint(1, 2))
    head = _HEAD.format(
        seed=drawn.randint(1, 999), repetitions=drawn.randint(*repetitions), types=json.dumps(types)
    )
    plan = lab.base / "plan.toml"
    plan.write_text(head + drawn.choice((_PGBENCH, _LMDB)))
    return plan


def _killed_start(lab: Lab, plan: Path, kind: str, drawn: random.Random, tally: Tally) -> int | None:
    """One start with a kill or two in it; its exit code, None where it was killed itself."""
    # What a killed start left is given back by the next one, unless that is interrupted before it comes so far.
    inherited = lab.left_behind()
    start = lab.start("run", plan, "--study", lab.study)
    if kind in _OF_STARTS_AFTER:
        # What the first leaves is being given back by the second, which is killed at that.
        wait_for(drawn.uniform(1.0, _VISIT_S_MAX), start)
        _kill_tree(start, lab)
        words = ("release",) if kind == "release" else ("run", plan, "--study", lab.study)
        start = lab.start(*words)
        wait_for(drawn.uniform(0.1, 0.8), start)
    else:
        wait_for(drawn.uniform(0.3, _VISIT_S_MAX), start)
    number = drawn.choice((signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    hit = _hit(kind, start, lab, drawn, number=number, tally=tally)
    if kind in _GOING_ON and drawn.random() > _LEFT_SHARE:
        wait_for(drawn.uniform(0.1, _VISIT_S_MAX), start)
        kind = drawn.choice(_ENDING)
        hit = _hit(kind, start, lab, drawn, number=number, tally=tally)
    said = said_by(start, kind, tally)
    status = start.returncode
    if kind == "interrupt" and hit:
        # Python dies by SIGINT, whatever signal it was that interrupted, where it came inside exec(), which makes data classes; and by
        # the signal itself after the last line.
        tally.expect(
            status in {130, 0, 1, -number, -signal.SIGINT},
            f"{signal.Signals(number).name} ended a start with {status}: {said[-300:]}",
        )
        left = lab.left_behind() if status in {130, -number} and not inherited else []
        tally.expect(not left, f"an interrupted start leaves {left}")
    tally.expect("Traceback" not in said, f"a traceback after a kill of {kind}: {said[-600:]}")
    # That everything is given back says nothing of the study's end.
    return None if kind == "release" or (status is not None and status < 0) else status


def _hit(
    kind: str, start: subprocess.Popen[str], lab: Lab, drawn: random.Random, *, number: int, tally: Tally
) -> bool:
    hit = _is_hit(kind, start, lab, drawn, number)
    tally.tried[f"kill of {kind}" if hit else f"no {kind} to kill"] += 1
    return hit


def _is_hit(kind: str, start: subprocess.Popen[str], lab: Lab, drawn: random.Random, number: int) -> bool:
    if kind == "main":
        return start.poll() is None and kill([start.pid])
    if kind in {"tree", "release", "twice"}:
        return _kill_tree(start, lab)
    if kind == "interrupt":
        if start.poll() is not None:
            return False
        return kill([start.pid], number)
    below = descendants(start.pid)
    chosen = _chosen(kind, below)
    return bool(chosen) and kill([drawn.choice(chosen).pid])


def _chosen(kind: str, below: list[Process]) -> list[Process]:
    if kind == "visit":
        return [process for process in below if "bedplate.visit.command" in process.line]
    servers = {process.pid for process in below if "/bin/postgres " in f"{process.line} "}
    if kind == "server":
        return [seen for seen in below if seen.pid in servers]
    return [
        process for process in below if process.line.startswith("postgres: ") and process.parent in servers
    ]


def _kill_tree(start: subprocess.Popen[str], lab: Lab) -> bool:
    """Everything at once, as a machine that loses its power does: the start, what it began, what names its place."""
    pids = [start.pid] if start.poll() is None else []
    pids += [process.pid for process in descendants(start.pid)]
    pids += [process.pid for process in processes_naming(str(lab.base))]
    return kill(pids)


def wait_for(seconds: float, start: subprocess.Popen[str]) -> None:
    """So long, or until the start has ended."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        start.wait(seconds)


def said_by(start: subprocess.Popen[str], kind: str, tally: Tally) -> str:
    """Everything that the start has said at its end; one that does not end is wrong, and killed."""
    try:
        said, _ = start.communicate(timeout=_END_S)
    except subprocess.TimeoutExpired:
        tally.wrong.append(f"a start did not end within {_END_S:.0f} s: {kind}")
        start.kill()
        said, _ = start.communicate()
    return said


def finish(lab: Lab, plan: Path, tally: Tally) -> None:
    """Starts until nothing is due: what failed by a kill is told to be tried again."""
    for _ in range(3):
        start = lab.start("run", plan, "--study", lab.study, "--retry-failed")
        said = said_by(start, "nothing", tally)
        if start.returncode == 0:
            return
    tally.wrong.append(f"the study does not come to its end (exit {start.returncode}): {said[-600:]}")


def unchanged(study: Path, before: dict[str, str], when: str, tally: Tally) -> dict[str, str]:
    """The digest of every file of a finished visit now; one of `before` that is another or gone is wrong."""
    now = {
        str(path.relative_to(study)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (study / "visits").rglob("*")
        if path.is_file() and ".unfinished" not in str(path)
    }
    for name, digest in before.items():
        tally.expect(now.get(name) == digest, f"{name} of a finished visit changed {when}")
    return now


def judge(lab: Lab, tally: Tally) -> None:
    """What must hold of a study that has come to its end, and of the machine after it."""
    # A disk of the trial's own that the state directory stands on is no mount of bedplate's.
    left = [item for item in lab.left_behind() if item != f"mount {lab.state}"]
    tally.expect(not left, f"left at the end of a study: {left}")
    if not (lab.study / "schedule.json").is_file():
        tally.wrong.append("there is no schedule at the end")
        return
    schedule = json.loads((lab.study / "schedule.json").read_text())
    due = sorted((visit["cell_id"], visit["repetition"]) for visit in schedule["visits"])
    records = lab.visits()
    good = sorted(
        (record.key.cell, record.key.repetition)
        for record in records.values()
        if record.outcome.value == "completed"
    )
    tally.expect(due == good, f"due were {due}, completed are {good}")
    status = json.loads(lab.call("show", lab.study, "--status", "--json"))
    tally.expect(status["left"] == 0, f"status says that {status['left']} visits are left")
    for place, record in records.items():
        if record.outcome.value != "completed":
            accused = [str(reason) for reason in record.reasons if reason.code == "fsck-found-errors"]
            tally.expect(not accused, f"{place}: a kill is said to be {accused}")
            tally.expect(bool(record.reasons), f"{place} failed without a reason")
