"""What figures of tools without a server share: their raw output, CPU per GiB from counters, what the device moved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.errors import BedplateError
from bedplate.figures.counters import Absent, part_figures_without_server
from bedplate.figures.cpu_per_gigabyte import cpu_s_per_gib
from bedplate.figures.phased import no_phase, phase_deltas, phase_seconds
from bedplate.model.metrics import figure
from bedplate.model.reason import because
from bedplate.units import KERNEL_SECTOR_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import TypeVar

    from bedplate.figures.counters import Deltas
    from bedplate.model.figure import Figure
    from bedplate.model.visit import RunRecord

    Parsed = TypeVar("Parsed")


NOTHING_MOVED = because("nothing-moved", "nothing was moved")


def parsed_output(
    run_directory: Path, name: str, parse: Callable[[str, str], Parsed]
) -> tuple[Parsed | None, tuple[str, ...]]:
    """What the tool printed (`logs/<name>.out` and `.err`), or why it cannot be read."""
    try:
        output, errors = (
            (run_directory / "logs" / f"{name}{suffix}").read_text(encoding="utf-8", errors="replace")
            for suffix in (".out", ".err")
        )
        return parse(output, errors), ()
    except BedplateError as error:
        return None, error.reasons
    except OSError as error:
        return None, (f"{error.filename} cannot be read: {error.strerror}",)


def phase_figures(record: RunRecord, phase: str) -> Iterator[Figure]:
    """The length of a phase, and its counters."""
    yield figure(
        "phase_s",
        phase_seconds(record).get(phase),
        phase=phase,
        reason=no_phase(phase),
    )
    yield from part_figures_without_server(phase_deltas(record, phase), phase=phase)


def per_gib(metric: str, cpu_s: Callable[[], float], size_bytes: float, *, phase: str = "measure") -> Figure:
    """A figure of CPU seconds per GiB; absent where the counter is, and where nothing was moved."""
    value, reason = None, NOTHING_MOVED
    try:
        value = cpu_s_per_gib(cpu_s(), size_bytes)
    except Absent as error:
        reason = error.reason
    return figure(metric, value, phase=phase, reason=reason)


def group_cpu_s(deltas: Deltas) -> float:
    """CPU seconds of the visit's group, in which the tool ran; Absent where nothing counted them."""
    return deltas.growth("server.cpu_s")


def device_bytes(record: RunRecord, phase: str, counter: str) -> float | None:
    """Bytes that the data device gave (`read_sectors`) or took (`written_sectors`) in a phase; None is not known."""
    try:
        return phase_deltas(record, phase).growth(f"device.{counter}") * KERNEL_SECTOR_BYTES
    except Absent:
        return None
