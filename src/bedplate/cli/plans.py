"""`bedplate plan`: what would happen, before anything does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bedplate.cli.planning import Prospect, prospect
from bedplate.units import format_duration, format_size

if TYPE_CHECKING:
    from pathlib import Path

# A schedule of hundreds of visits is not read on a terminal; --json has all of it.
_SHOWN_VISITS = 12
_SHOWN_CELLS = 40


def show_plan(path: Path, *, as_json: bool) -> None:
    """Print the cells, the pruned ones with reasons, the order, the disk space and the time."""
    found = prospect(path)
    if as_json:
        from bedplate.cli.app import print_json  # noqa: PLC0415
        from bedplate.plan.present import plan_document  # noqa: PLC0415

        print_json(plan_document(found.plan, found.expansion, found.schedule, found.estimate))
        return
    _print_summary(found)
    _print_cells(found)
    _print_pruned(found)
    _print_schedule(found)
    for warning in found.expansion.warnings:
        print(f"warning: {warning}")


def _print_summary(found: Prospect) -> None:
    plan = found.plan
    print(plan.title)
    scratch = plan.scratch_device
    where = (
        f"an image file of {format_size(scratch.image_bytes or 0)} (figures include this machine's file system)"
        if scratch.is_image
        else f"{scratch.device}, WHICH WILL BE ERASED"
    )
    visits = len(found.schedule.visits)
    print(f"  scratch device   {where}")
    print(
        f"  cells            {len(found.expansion.cells)} to run, {len(found.expansion.pruned)} pruned, "
        f"{plan.repetitions} repetitions, {visits} visits with canaries"
    )
    print(f"  time             about {format_duration(found.estimate.seconds)}")
    print(
        f"  disk space       {format_size(found.estimate.study_bytes)} for the study"
        + (f", {format_size(found.estimate.image_bytes)} for the image" if found.estimate.image_bytes else "")
    )
    print()


def _print_cells(found: Prospect) -> None:
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=None, pad_edge=False)
    for heading in ("file system", "fs block", "db block", "workloads"):
        table.add_column(heading)
    for planned in found.expansion.cells[:_SHOWN_CELLS]:
        cell = planned.cell
        block = cell.filesystem.block_size_bytes
        table.add_row(
            cell.variant,
            "default" if block is None else format_size(block),
            format_size(cell.build.block_size_bytes),
            "; ".join(
                f"{load.dataset.workload}: {', '.join(run.name for run in load.runs)}"
                for load in planned.loads
            ),
        )
    Console(highlight=False, markup=False).print(table)
    hidden = len(found.expansion.cells) - _SHOWN_CELLS
    if hidden > 0:
        print(f"… and {hidden} more; --json lists all")
    print()


def _print_pruned(found: Prospect) -> None:
    from bedplate.plan.present import pruned_by_reasons  # noqa: PLC0415

    for reasons, count in pruned_by_reasons(found.expansion):
        print(f"pruned: {count} {'cell' if count == 1 else 'cells'}")
        for reason in reasons:
            print(f"    {reason}")
    if found.expansion.pruned:
        print()


def _print_schedule(found: Prospect) -> None:
    variants = {planned.cell.id: planned.cell.variant for planned in found.expansion.cells}
    visits = found.schedule.visits
    print(f"order (seed {found.schedule.seed}):")
    for visit in visits[:_SHOWN_VISITS]:
        what = "canary" if visit.canary else f"repetition {visit.repetition}: {variants[visit.cell_id]}"
        print(f"  {visit.index + 1:>4}  {what}")
    if len(visits) > _SHOWN_VISITS:
        print(f"  … and {len(visits) - _SHOWN_VISITS} more; --json lists all")
