"""Single values from the records of a run and its visit; what is missing or of another kind is None."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bedplate.figures.counters import Absent, Deltas, idle_cpu_share, others_cpu_share, steal_share
from bedplate.model.cell import engine_model
from bedplate.model.figure import Figure
from bedplate.model.free_space import FREE_SPACE, FreeSpace
from bedplate.model.metrics import figure
from bedplate.model.reason import Reason, because
from bedplate.model.visit import RunRecord, VisitRecord
from bedplate.units import KIB, MIB

_NO_PIECES = because("no-pieces", "nothing tells the pieces of its free space")


# "" is the step that makes a data directory, which engines call by different names.
_STEPS = {"mkfs_s": ("mkfs",), "cluster_s": ("", "server start"), "load_s": ("load",)}


_SIZES = {"database_mib": "database_bytes", "wal_mib": "wal_bytes_on_disk"}


def number(record: RunRecord, name: str) -> float | None:
    """A fact that is a number."""
    value = record.facts.get(name)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def integer(record: RunRecord, name: str) -> int | None:
    """A fact that is a number, without its fraction."""
    value = number(record, name)
    return None if value is None else int(value)


def text(record: RunRecord, name: str) -> str | None:
    """A fact of any kind, as text."""
    value = record.facts.get(name)
    return None if value is None else str(value)


def deltas_of(record: RunRecord) -> Deltas | None:
    """Growth of the counters over the run; None without both readings."""
    if record.before is None or record.after is None:
        return None
    return Deltas.between(record.before, record.after)


def steal_share_of(record: RunRecord) -> float | None:
    """Which share of the processors' time a hypervisor took over the run."""
    deltas = deltas_of(record)
    try:
        return None if deltas is None else steal_share(deltas)
    except Absent:
        return None


def others_cpu_share_of(record: RunRecord) -> float | None:
    """Which share of the processors' time other programs used over the run, at least."""
    deltas = deltas_of(record)
    try:
        return None if deltas is None else others_cpu_share(deltas)
    except Absent:
        return None


def cache_drops_of(record: RunRecord) -> int | None:
    """How often another program dropped the machine's caches during the run.

    bedplate itself does so before each phase of a run that is made cold: there only the phases are looked at.
    """
    spans = [Deltas.between(phase.before, phase.after) for phase in record.phase_counters]
    if not record.facts.get("made_cold"):
        whole = deltas_of(record)
        spans = [] if whole is None else [whole]
    try:
        return round(sum(span.growth("memory.cache_drops") for span in spans)) if spans else None
    except Absent:
        return None


def late_share_of(record: RunRecord) -> float | None:
    """By which share of what they should take an emulated device answered its requests late during the run; None of a real one."""
    deltas = deltas_of(record)
    try:
        due_s = 0.0 if deltas is None else deltas.growth("emulated.due_s")
        return deltas.growth("emulated.late_s") / due_s if deltas is not None and due_s else None
    except Absent:
        return None


def idle_cpu_share_of(record: RunRecord) -> float | None:
    """Which share of the processors' time nobody used over the run."""
    deltas = deltas_of(record)
    try:
        return None if deltas is None else idle_cpu_share(deltas)
    except Absent:
        return None


def step_figure(visit: VisitRecord, metric: str, *, phase: str = "measure") -> Figure:
    """`mkfs_s`, `cluster_s` or `load_s`: the seconds of the steps of the visit's life that make it up."""
    seconds: dict[str, float] = {}
    for timing in visit.timings:
        seconds[timing.step] = seconds.get(timing.step, 0.0) + timing.seconds
    making = engine_model(visit.cell.build.engine).making
    steps = tuple(step or making for step in _STEPS[metric])
    found = [seconds[step] for step in steps if step in seconds]
    reason = because("step-not-timed", f"the visit did not time {' and '.join(steps)}")
    return figure(metric, sum(found) if len(found) == len(steps) else None, phase=phase, reason=reason)


def free_space_figures(observations: Iterable[FreeSpace]) -> Iterator[Figure]:
    """Of each moment at which the free space was looked at; none where the plan does not ask for it."""
    for space in observations:
        for metric, value in (
            ("fill_share", space.fill),
            ("free_extents", space.extents),
            ("free_extent_kib_mean", _kib(space.mean_bytes)),
            ("free_extent_kib_half", _kib(space.half_bytes)),
            ("free_extent_kib_max", _kib(space.largest_bytes)),
        ):
            yield figure(metric, value, phase=FREE_SPACE, item=space.moment, reason=_NO_PIECES)


def _kib(size_bytes: float | None) -> float | None:
    return None if size_bytes is None else size_bytes / KIB


def size_figures(record: RunRecord) -> Iterator[Figure]:
    """`database_mib`, `wal_mib`, and `extents_per_mib` where the files' places were seen."""
    for metric, name in _SIZES.items():
        size = number(record, name)
        yield figure(metric, None if size is None else size / MIB, reason=no_fact(name))
    extents, size = number(record, "data_extents"), number(record, "data_bytes")
    if extents is not None and size:
        yield figure("extents_per_mib", extents / (size / MIB))


def no_fact(name: str) -> Reason:
    """Why a figure is absent that a fact of the run is."""
    return because("fact-missing", f"the record has no {name}", fact=name)
