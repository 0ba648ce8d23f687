"""What more visits take: the command that makes them, and their seconds by the study's own visits."""

from __future__ import annotations

import math
import shlex
from collections import defaultdict
from contextlib import suppress
from statistics import fmean
from typing import TYPE_CHECKING

from bedplate.analysis.overview import Trouble
from bedplate.errors import PlanError
from bedplate.installation import COMMAND
from bedplate.model.visit import Outcome
from bedplate.study.layout import StudyLayout
from bedplate.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bedplate.analysis.overview import Overview

# Five find most differences above 10 % (docs/method/calibration.md).
REPETITIONS_FOR_VERDICTS = 5

# A cell, a dataset, and whether it is a canary.
Visited = tuple[str, str, bool]
_ANY: Visited = ("", "", False)


def extend_command(found: Overview, repetitions: int) -> str:
    """Only the local executor needs root here. A device that is erased is named once more, as the command asks for it."""
    sudo = "sudo " if found.study.facts.executor == "local" else ""
    erase = "".join(f" --erase {shlex.quote(device)}" for device in _devices_erased(found))
    return f"{sudo}{COMMAND} extend {study_directory(found)} --repetitions {repetitions}{erase}"


def more_for_verdicts(found: Overview, cells: Iterable[str], run: tuple[str, str]) -> int:
    """How many more repetitions bring two of these cells to five that nothing speaks against; 0 where they have them.

    Runs that failed or are due count, as other steps make them. In a fleet each node runs as many, where it does so far.
    """
    good = sorted(
        (
            sum(m.trouble not in (Trouble.SUSPECT, Trouble.UNKNOWN) for m in found.of(cell, run))
            for cell in cells
        ),
        reverse=True,
    )
    more = max(REPETITIONS_FOR_VERDICTS - min(good[:2], default=0), 0)
    nodes = max(len(found.study.nodes), 1)
    is_even = found.study.schedule.repetitions % nodes == 0
    return math.ceil(more / nodes) * nodes if is_even else more


def study_directory(found: Overview) -> str:
    """As a shell takes it."""
    return shlex.quote(str(found.study.directory))


def seconds_of_a_repetition(found: Overview) -> float | None:
    """The mean time of each visit that a repetition has, with its share of canaries; None where no visit has a time."""
    schedule = found.study.schedule
    due = {(visit.cell_id, visit.dataset_id, visit.canary) for visit in schedule.visits if not visit.canary}
    canaries = [(visit.cell_id, visit.dataset_id, True) for visit in schedule.visits if visit.canary]
    plain, beside = (seconds_of_visits(found, each) for each in (due, canaries))
    return None if plain is None or beside is None else plain + beside / schedule.repetitions


def seconds_of_visits(found: Overview, visits: Iterable[Visited]) -> float | None:
    """What such visits took with all that belongs to them; the mean of all that completed where none of them did.

    A fleet's nodes work at once. None where no visit has a time.
    """
    means = found.once(_mean_seconds)
    if not means:
        return None
    usual = means[_ANY]
    return sum(means.get(each, usual) for each in visits) / max(len(found.study.nodes), 1)


def about_words(seconds: float) -> str:
    """`45 s`, `12 min`, `2 h 10 min`: no more precise than such an estimate is."""
    if seconds < 90:
        return format_duration(seconds)
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else format_duration(60 * minutes)


def _mean_seconds(found: Overview) -> Mapping[Visited, float]:
    """By what was visited, and of all visits together; empty where none has a time."""
    times: defaultdict[Visited, list[float]] = defaultdict(list)
    for record in (visit.record for visit in found.study.visits):
        seconds = record.whole_seconds or record.seconds
        if record.outcome is Outcome.COMPLETED and seconds > 0:
            key = record.key
            times[key.cell, key.dataset, key.canary].append(seconds)
            times[_ANY].append(seconds)
    return {each: fmean(own) for each, own in times.items()}


def _devices_erased(found: Overview) -> tuple[str, ...]:
    """Those of the plan; none of one that only another version can read, which says so itself when it is extended."""
    from bedplate.plan.load import load_plan  # noqa: PLC0415 -- pydantic

    study = found.study
    with suppress(PlanError):
        files = StudyLayout(study.directory).plan_files
        return load_plan(study.plan_text, source="plan.toml", directory=files).devices_erased
    return ()
