"""Are verdicts right on real devices? Two ready plans of which the truth is known, repeated and counted.

    sudo ./benchmarks/run real_calibration [--plan aa|known-effect] [--times 20] [--first 1] [--accept WORDS] [--keep DIR] [--seconds 6] [--repetitions 3]

`plans/aa.toml` is one configuration under two names: a verdict of faster or slower is false, and at most 3 of 20
studies may have one (5 % of them will). `same` is right there. `plans/known-effect.toml` is one file system on devices of
100 and of 120 reads a second: the interval must hold 1.2 in at least 17 of 20. Each study has a seed, and so
an order, of its own. Twenty take about 30 minutes of the first plan and two hours of the second, on a machine
that must do nothing else: a run that shares it is suspect, and a study with fewer than three trusted repetitions has no
interval. Those are counted apart, and not as right. In the second plan the device is the limit whoever else is at work: that doubt is
accepted there, and no other.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from bedplate.analysis.comparison import Compared, ComparisonQuestion, answer
from bedplate.analysis.overview import overview
from bedplate.statistics.comparison import Verdict
from machine import print_machine

PLANS = Path(__file__).resolve().parent.parent / "plans"
SEED = re.compile(r"^seed = \d+$", re.MULTILINE)
DURATION = re.compile(r'^duration = ".*"$', re.MULTILINE)
REPETITIONS = re.compile(r"^repetitions = \d+$", re.MULTILINE)


@dataclass(frozen=True)
class Known:
    """A plan, its two sides as filters, and the true ratio. Of 20 studies `aim` many at least must be right."""

    plan: str
    baseline: str
    contender: str
    truth: float
    aim: int
    accepted: tuple[str, ...] = ()
    seconds: int | None = None
    repetitions: int | None = None

    def is_right(self, found: Compared) -> bool:
        """One name beside the other: no difference is told. A known effect: the interval holds it."""
        comparison = found.comparison
        if self.truth == 1:
            return comparison.verdict in (Verdict.SAME, Verdict.CANNOT_TELL)
        if comparison.low is None or comparison.high is None:
            return False
        return comparison.low <= self.truth <= comparison.high


# A device of a hundred reads a second is the limit whoever else is at work.
OTHERS = "other programs used"
KNOWN = {
    known.plan: known
    for known in (
        Known("aa", "cluster_name=a", "cluster_name=b", 1.0, 17),
        Known("known-effect", "throttle=custom-r100", "throttle=custom-r120", 1.2, 17, (OTHERS,)),
    )
}


def main() -> int:
    """Repeat the plans and print what they said; 1 where an aim is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--plan", choices=list(KNOWN), action="append", help="default: both")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--first", type=int, default=1, help="number, and so seed, of the first study")
    parser.add_argument("--keep", metavar="DIR", type=Path, help="keep the studies here, and go on with them")
    parser.add_argument(
        "--accept",
        metavar="WORDS",
        action="append",
        default=[],
        help="a doubt for which no run is left out, as in compare",
    )
    parser.add_argument("--seconds", type=int, help="of each run, in place of the plan's")
    parser.add_argument(
        "--repetitions", type=int, help="in place of the plan's; fewer than three make no interval"
    )
    given = parser.parse_args()
    print_machine()
    base = given.keep or Path(tempfile.mkdtemp(prefix="bedplate-calibration-"))
    try:
        plans = [KNOWN[name] for name in given.plan or KNOWN]
        numbers = range(given.first, given.first + given.times)
        met = [
            _repeated(
                replace(
                    known,
                    accepted=(*known.accepted, *given.accept),
                    seconds=given.seconds,
                    repetitions=given.repetitions,
                ),
                base,
                numbers,
            )
            for known in plans
        ]
    finally:
        if given.keep is None:
            shutil.rmtree(base)
    return 0 if all(met) else 1


def _repeated(known: Known, base: Path, numbers: range) -> bool:
    """Whether the aim is met, scaled to as many studies as have an interval at all."""
    found = []
    for number in numbers:
        started = time.monotonic()
        found.append(_asked(known, _measured(known, base, number)))
        print(
            f"{known.plan} {number}: {_words(found[-1])}, {time.monotonic() - started:.0f} s",
            flush=True,
        )
    judged = [each for each in found if each.comparison.basis is not None]
    right = sum(known.is_right(each) for each in judged)
    verdicts = Counter(each.comparison.verdict.value for each in judged)
    what = "told no difference" if known.truth == 1 else f"held {known.truth}"
    print(
        f"{known.plan}: {right} of {len(judged)} with an interval {what} (aim: {known.aim} of 20); "
        f"{', '.join(f'{word} {count}' for word, count in verdicts.items()) or 'no verdicts'}; "
        f"{len(numbers) - len(judged)} without an interval"
    )
    return bool(judged) and 20 * right >= known.aim * len(judged)


def _measured(known: Known, base: Path, number: int) -> Path:
    plan, study = base / f"{known.plan}-{number}.toml", base / f"{known.plan}-{number}"
    base.mkdir(parents=True, exist_ok=True)
    text, changed = SEED.subn(f"seed = {number}", (PLANS / f"{known.plan}.toml").read_text(encoding="utf-8"))
    if changed != 1:
        raise SystemExit(
            f"plans/{known.plan}.toml has {changed} lines `seed = N`; each study needs one of its own"
        )
    if known.seconds is not None:
        text = DURATION.sub(f'duration = "{known.seconds} s"', text)
    if known.repetitions is not None:
        text = REPETITIONS.sub(f"repetitions = {known.repetitions}", text)
    plan.write_text(text, encoding="utf-8")
    # A plan names its own scripts from where it lies.
    shutil.copytree(PLANS / "scripts", base / "scripts", dirs_exist_ok=True)
    command = [sys.executable, "-P", "-m", "bedplate", "run", str(plan), "--study", str(study)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return study


def _asked(known: Known, study: Path) -> Compared:
    (found,) = answer(
        [overview(study)],
        ComparisonQuestion(known.baseline, known.contender, metrics=("tps",), accepted=known.accepted),
    ).compared
    return found


def _words(found: Compared) -> str:
    comparison = found.comparison
    if comparison.low is None or comparison.high is None or comparison.estimate is None:
        return f"no interval ({'; '.join(comparison.reasons)}; {comparison.suspect} suspect runs)"
    return (
        f"{comparison.estimate:.3f} ({comparison.low:.3f}–{comparison.high:.3f}), {comparison.verdict.value}"
    )


if __name__ == "__main__":
    sys.exit(main())
