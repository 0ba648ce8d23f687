"""What no visit or run of a study can have come to, whoever wrote it down: such a record is named and not used."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from bedplate.model.durability import CLASSES
from bedplate.model.figure import Scale, Status
from bedplate.model.limits import MOST_NAME_CHARACTERS, too_long
from bedplate.model.metrics import METRICS
from bedplate.model.visit import KNOWN_FORMATS
from bedplate.study.version import KNOWN_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bedplate.model.cell import RunSpec
    from bedplate.model.figure import Figure, RunFigures
    from bedplate.model.visit import VisitRecord

# Of a scale on which something can be negative: a trend falls.
_SIGNED = Scale.SHARE
# Two clocks may part by a little.
_WHOLE = 1.01
# Beyond it a square has no number any more; no counter of a machine comes near.
_LARGEST = 1e100


def impossible(run: RunFigures, due: Sequence[RunSpec]) -> Iterator[str]:
    """Why the figures of a run cannot be what they say; `due` are the runs that its visit may have made."""
    if run.format_version not in KNOWN_FORMATS:
        yield f"it is of format {run.format_version}, not {KNOWN_WORDS}"
    yield from _foreign(run, due)
    for what, texts in (
        ("the phase", {figure.phase for figure in run.figures}),
        ("the item", {figure.item for figure in run.figures}),
        ("the unit", {figure.unit for figure in run.figures}),
        ("the metric", {figure.metric for figure in run.figures}),
    ):
        yield from too_long(f"{what} of a figure", *texts)
    for figure in run.figures:
        if not _is_usual(figure):
            yield from _impossible_figure(figure)
    places = [(each.phase, each.item, each.pass_, each.metric) for each in run.figures]
    if len(set(places)) < len(places):
        for (phase, item, _, metric), count in Counter(places).items():
            if count > 1:
                yield f"{metric} of {f'{phase} {item}'.strip()!r:.80} is in it {count} times"
    if run.duration_s is not None and run.duration_s < 0:
        yield f"it took {run.duration_s:g} seconds"


def impossible_visit(record: VisitRecord) -> Iterator[str]:
    """Why the record of a visit cannot be what it says, or is none of this version's."""
    if record.format_version not in KNOWN_FORMATS:
        yield f"it is of format {record.format_version}, not {KNOWN_WORDS}"
    # An id is a hash of what it stands for.
    for what, said, identity in (
        ("cell", record.key.cell, record.cell.id),
        ("dataset", record.key.dataset, record.dataset.id),
    ):
        if said != identity:
            yield f"it is of the {what} {said!r:.200}, and describes {identity!r:.200}"
    for durability in (record.durability, record.durability and record.durability.without_waiting):
        if durability is not None:
            reasons = sum(len(reason.sentence) for reason in durability.reasons)
            yield from too_long("the basis of its durability", durability.basis)
            if reasons > MOST_NAME_CHARACTERS:
                yield f"the reasons of its durability have {reasons:,} characters; allowed are {MOST_NAME_CHARACTERS:,}"
            told = (durability.volatile_cache, durability.protected_cache, durability.volatile_cache_512)
            for name in dict.fromkeys(told):
                if name is not None and name not in CLASSES:
                    yield f"{name!r:.80} is no durability class"


def _foreign(run: RunFigures, due: Sequence[RunSpec]) -> Iterator[str]:
    """A run that the visit was never asked for, or another one under its name."""
    named = [spec for spec in due if spec.name == run.run]
    if not named:
        yield f"schedule.json has no run {run.run!r:.80} of this visit"
    elif (run.run_id, run.workload) not in {(spec.id, spec.workload) for spec in named}:
        told = " or ".join(spec.id for spec in named)
        yield f"it is the run {run.run_id!r:.80} of {run.workload!r:.40}, and schedule.json has {told!r:.200}"


def _is_usual(figure: Figure) -> bool:
    """Whether a figure is plainly in order, as nearly all are: a study of hundreds of cells has a hundred thousand."""
    known = METRICS.get(figure.metric)
    if known is None or figure.value is None or figure.limit is not None:
        return False
    most = _WHOLE if known.scale is Scale.PROPORTION else _LARGEST
    return 0 <= figure.value <= most and figure.unit == known.unit


def _impossible_figure(figure: Figure) -> Iterator[str]:
    if figure.status is Status.MEASURED and figure.value is None:
        yield f"{figure.metric} is measured and has no value"
    known = METRICS.get(figure.metric)
    if known is None:
        return
    if figure.unit != known.unit:
        yield f"{figure.metric} is in {figure.unit!r:.40}, and it is measured in {known.unit!r}"
    for value in (figure.value, figure.limit):
        if value is None:
            continue
        if value < 0 and known.scale is not _SIGNED:
            yield f"{figure.metric} is {value:g}, and it cannot be negative"
        if value > _WHOLE and known.scale is Scale.PROPORTION:
            yield f"{figure.metric} is {value:g}, and it is a part of a whole"
        if abs(value) > _LARGEST:
            yield f"{figure.metric} is {value:g}, which nothing comes to"
