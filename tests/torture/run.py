"""`./torture`: tries to break studies for a while, and says what it tried and what was wrong.

Not part of `./check`: its time is its size. Every trial is drawn from the seed and its own number, both printed with
what it found, so that `--seed S --trial N` tries the same again. Moments of a kill are drawn too; what they hit hangs
on the machine.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path

from tests.torture.devices import flipping_link
from tests.torture.inputs import damaged_studies, mutated_plans
from tests.torture.kills import kills_of_one_study
from tests.torture.surroundings import foreign_namespace, full_disk, two_studies, vanishing_file
from tests.torture.trial import Tally, Trial

TRIALS: Mapping[str, Trial] = {
    "kills": kills_of_one_study,
    "disks": full_disk,
    "namespaces": foreign_namespace,
    "losses": vanishing_file,
    "pairs": two_studies,
    "plans": mutated_plans,
    "studies": damaged_studies,
    "links": flipping_link,
}
# Kills and plans are what a thousand of is wanted.
_WEIGHTS = {"kills": 8, "plans": 4, "studies": 4}


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
    total = trial_of(asked.seed, asked.trial, tuple(asked.only)) if asked.trial is not None else _many(asked)
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
    total, number, deadline = Tally(), 0, time.monotonic() + asked.minutes * 60
    running: set[Future[Tally]] = set()
    with ProcessPoolExecutor(asked.lanes, mp_context=get_context("spawn")) as pool:
        while running or time.monotonic() < deadline:
            while len(running) < asked.lanes and time.monotonic() < deadline:
                running.add(pool.submit(trial_of, asked.seed, number, tuple(asked.only)))
                number += 1
            done, running = wait(running, timeout=60, return_when=FIRST_COMPLETED)
            for each in done:
                found = each.result()
                for wrong in found.wrong:
                    print(f"wrong: {wrong}", flush=True)
                total.add(found)
    return total


def trial_of(seed: int, number: int, only: tuple[str, ...]) -> Tally:
    """Trial `number`: which one, and everything in it, come from the two numbers."""
    drawn = random.Random(f"{seed}:{number}")
    name = drawn.choices(only, [_WEIGHTS.get(each, 1) for each in only])[0]
    found = Tally()
    with tempfile.TemporaryDirectory(prefix="bedplate-torture-") as place:
        try:
            TRIALS[name](drawn, Path(place), found)
        except Exception:  # noqa: BLE001 -- the trial itself broke, which is to be looked at as well
            found.wrong.append(traceback.format_exc())
    again = f"--seed {seed} --trial {number}" + "".join(
        f" --only {each}" for each in only if len(only) < len(TRIALS)
    )
    found.wrong = [f"[{name}, {again}] {wrong}" for wrong in found.wrong]
    return found
