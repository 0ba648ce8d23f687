"""`./torture`: tries to break studies for a while, and says what it tried and what was wrong.

Not part of `./check`: its time is its size. Every trial is drawn from the seed and its own number, both printed with
what it found, so that `--seed S --trial N` tries the same again. Moments of a kill are drawn too; what they hit hangs
on the machine.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from multiprocessing import get_context
from pathlib import Path

from tests.support.tools.left_in_memory import left_in_memory
from tests.torture.devices import flipping_link
from tests.torture.inputs import DAMAGED_READINGS, MUTATED_PLANS, damaged_studies, mutated_plans
from tests.torture.kills import kills_of_one_study
from tests.torture.strangers import (
    bombs,
    hostile_trees_read,
    recorded_images,
    scripts_of_strangers,
    strange_places,
)
from tests.torture.surroundings import foreign_namespace, full_disk, two_studies, vanishing_file
from tests.torture.trial import Tally, Trial

from bedplate.host.process import wait_until

TRIALS: Mapping[str, Trial] = {
    "kills": kills_of_one_study,
    "disks": full_disk,
    "namespaces": foreign_namespace,
    "losses": vanishing_file,
    "pairs": two_studies,
    "plans": mutated_plans,
    "studies": damaged_studies,
    "links": flipping_link,
    "places": strange_places,
    "trees": hostile_trees_read,
    "scripts": scripts_of_strangers,
    "images": recorded_images,
    "bombs": bombs,
}
# In trials of this process's own, what reads without end fails before the machine has no memory left.
_MEMORY_BYTES_MAX = 4 << 30
_IN_THIS_PROCESS = ("plans", "studies", "places", "bombs")
# What the kernel still takes apart when the last process has ended.
_MEMORY_S = 10.0
# Kills and plans are what a thousand of is wanted.
_WEIGHTS = {"kills": 16, "plans": 8, "studies": 3, "places": 4, "trees": 4, "scripts": 2}
_SAID_EVERY_S = 300.0


def main(words: list[str] | None = None) -> int:
    """The exit code: 0 nothing was wrong, 1 something was, 2 the call is wrong, 3 it cannot be tried here."""
    asked = _arguments(words)
    if os.geteuid() != 0:
        print("torture: it makes loop devices, mounts and starts servers, which needs root", file=sys.stderr)
        return 3
    print(
        f"torture: seed {asked.seed}, {asked.minutes} minutes, {asked.lanes} at once: {', '.join(asked.only)}",
        flush=True,
    )
    before = left_in_memory()
    if asked.trial is None:
        total = _many(asked)
    else:
        total = trial_of(asked.seed, asked.trial, tuple(asked.only))
        _say_wrong(total)
    # Of one trial another one's servers cannot be told apart: looked at when all have ended.
    if not wait_until(lambda: left_in_memory() <= before, deadline_s=_MEMORY_S):
        total.wrong.append(f"left in memory at the end: {sorted(left_in_memory() - before)}")
        print(f"wrong: {total.wrong[-1]}", flush=True)
    for kind, count in sorted(total.tried.items()):
        print(f"{count:>8}  {kind}")
    print(f"{len(total.wrong):>8}  wrong")
    return 1 if total.wrong else 0


def _arguments(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="torture", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10.0, help="begin no trial after this time (10)")
    parser.add_argument(
        "--seed", type=int, default=random.SystemRandom().randrange(1 << 32), help="drawn and printed"
    )
    parser.add_argument(
        "--only", action="append", choices=sorted(TRIALS), help="these trials alone; may be repeated"
    )
    parser.add_argument("--lanes", type=int, default=2, help="trials at once (2)")
    parser.add_argument("--trial", type=int, metavar="N", help="this one alone")
    asked = parser.parse_args(words)
    asked.only = asked.only or sorted(TRIALS)
    return asked


def _many(asked: argparse.Namespace) -> Tally:
    total, number, start = Tally(), 0, time.monotonic()
    deadline, said = start + asked.minutes * 60, start
    running: set[Future[Tally]] = set()
    with ProcessPoolExecutor(asked.lanes, mp_context=get_context("spawn")) as pool:
        while running or time.monotonic() < deadline:
            while len(running) < asked.lanes and time.monotonic() < deadline:
                running.add(pool.submit(trial_of, asked.seed, number, tuple(asked.only)))
                number += 1
            done, running = wait(running, timeout=60, return_when=FIRST_COMPLETED)
            for each in done:
                found = each.result()
                _say_wrong(found)
                total.add(found)
            if time.monotonic() >= said + _SAID_EVERY_S:
                said = time.monotonic()
                # A run that is ended from outside has said how far it came.
                print(f"after {(said - start) / 60:.0f} min: {_in_short(total)}", flush=True)
    return total


def _say_wrong(found: Tally) -> None:
    for wrong in found.wrong:
        print(f"wrong: {wrong}", flush=True)


def _in_short(total: Tally) -> str:
    kills = sum(count for kind, count in total.tried.items() if kind.startswith("kill of "))
    inputs = sum(total.tried[kind] for kind in (MUTATED_PLANS, DAMAGED_READINGS))
    return f"{kills} kills, {inputs} inputs, {len(total.wrong)} wrong"


@contextmanager
def _bounded_memory() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES_MAX, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def trial_of(seed: int, number: int, only: tuple[str, ...]) -> Tally:
    """Trial `number`: which one, and everything in it, come from the two numbers."""
    drawn = random.Random(f"{seed}:{number}")
    name = drawn.choices(only, [_WEIGHTS.get(each, 1) for each in only])[0]
    found = Tally()
    with tempfile.TemporaryDirectory(prefix="bedplate-torture-") as place:
        try:
            with _bounded_memory() if name in _IN_THIS_PROCESS else nullcontext():
                TRIALS[name](drawn, Path(place), found)
        except Exception:  # noqa: BLE001 -- the trial itself broke, which is to be looked at as well
            found.wrong.append(traceback.format_exc())
    again = f"--seed {seed} --trial {number}" + "".join(
        f" --only {each}" for each in only if len(only) < len(TRIALS)
    )
    found.wrong = [f"[{name}, {again}] {wrong}" for wrong in found.wrong]
    return found
