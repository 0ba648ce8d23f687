"""Time and room of one load on a cell of its engine, as the workload itself reckons them."""

from __future__ import annotations

from dataclasses import replace

from bedplate.model.cell import BuildLevels, Cell, ClusterLevels, DeviceLevels, FilesystemLevels, KernelLevels
from bedplate.model.levels import Levels
from bedplate.model.plan import Load, model_of
from bedplate.plan.estimate import estimate_of


def seconds_of(
    load: Load,
    settings: Levels | None = None,
    *,
    device: DeviceLevels | None = None,
    page_bytes: int | None = None,
) -> float:
    """Of all its runs; `settings` are those of the cell's engine, `page_bytes` its block size."""
    cell = _cell(settings, load)
    cell = replace(cell, device=device or cell.device)
    if page_bytes is not None:
        cell = replace(cell, build=replace(cell.build, block_size_bytes=page_bytes))
    return sum(estimate_of(run.workload).run_seconds(cell, load, run, emulated=False) for run in load.runs)


def bytes_of(load: Load) -> float:
    """Of its files."""
    return estimate_of(load.dataset.workload).dataset_bytes(_cell(None, load), load)


def _cell(settings: Levels | None, load: Load) -> Cell:
    engine = model_of(load.dataset.workload).engine_of(load.dataset.levels)
    return Cell(
        DeviceLevels(),
        KernelLevels(),
        FilesystemLevels("ext4"),
        BuildLevels.unbuilt(engine),
        ClusterLevels(settings=settings or Levels()),
    )
