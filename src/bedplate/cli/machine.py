"""`bedplate release STUDY` ends its jobs on a Slurm cluster; `bedplate doctor DEVICE --measure` measures a disk.

As in `app.py`, only click and the standard library are imported before a command is called.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import click

from bedplate.cli.options import AS_JSON, ERASE_FOREIGN
from bedplate.cli.printing import study_at
from bedplate.errors import EXIT_DONE, EXIT_SOME_RUNS_FAILED, RequirementMissing, StudyError

if TYPE_CHECKING:
    from bedplate.host.command import Commands
    from bedplate.host.ledger import Holdings
    from bedplate.host.requirement import Need
    from bedplate.model.devices import AtDepth


def cancel(study: Path) -> int:
    """End a study's jobs on a Slurm cluster: its visits give back what they hold, and what has ended is kept."""
    from bedplate.campaign.planning import kept_plan  # noqa: PLC0415
    from bedplate.executors.slurm.controller import FleetLayout, Slurm, require_slurm  # noqa: PLC0415
    from bedplate.executors.slurm.fleet_run import (  # noqa: PLC0415
        Manner,
        cancel_jobs,
    )
    from bedplate.model import limits  # noqa: PLC0415

    study = study_at(study).absolute()
    fleet = kept_plan(study).plan.fleet
    layout = FleetLayout.of_study(study)
    if fleet is None or not limits.is_there(layout.directory):
        raise StudyError(f"{study} does not run on Slurm; stop its `bedplate run` instead")
    require_slurm()
    ended = cancel_jobs(layout, Slurm(), fleet, manner=Manner.of_this_checkout(os.environ))
    for sentence in ended.done or ("no job of this study waits or runs",):
        print(sentence)
    for node in ended.nodes:
        print(f"{node}: a job gives back what was left there when it has the node")
    for problem in ended.problems:
        print(f"error: {problem}", file=sys.stderr)
    print("what has ended is kept; `bedplate run` with the same plan and study goes on")
    return EXIT_SOME_RUNS_FAILED if ended.problems else EXIT_DONE


class SyncsFound(Protocol):
    """What each way of making a write durable costs on a file system."""

    @property
    def lines(self) -> tuple[str, ...]:
        """A heading, and a line for each."""


class DiskMeter(Protocol):
    """Programs that measure disks: a role of a workload's folder."""

    need: Need
    reads_alone: tuple[str, ...]
    all_kinds: tuple[str, ...]

    def measure(
        self, device: str, kinds: Sequence[str], seconds: int, commands: Commands
    ) -> Sequence[AtDepth]:
        """At several depths."""

    def measure_syncs(
        self, directory: Path, seconds: int, ledger: Holdings, commands: Commands
    ) -> SyncsFound:
        """On the file system of a directory; RequirementMissing where the program is not there."""

    def plan_line(self, found: Sequence[AtDepth]) -> str:
        """As a plan has it."""


@dataclass(frozen=True)
class _Measured:
    """What was found of a device, of a directory `syncs` alone; `left_out` are reasons why something was not measured."""

    depths: Sequence[AtDepth] = ()
    syncs: SyncsFound | None = None
    left_out: tuple[str, ...] = ()


@click.command(name="measure")
@click.argument("name", metavar="DEVICE", help="a disk or a partition; or a directory, for its file system")
@click.option("--seconds", metavar="N", type=click.IntRange(1, 600), default=10, help="for each depth")
@click.option(
    "--erase", metavar="NAME", multiple=True, help="the device once more: it will be written to, and erased"
)
@ERASE_FOREIGN
@AS_JSON
def measure_command(
    name: str, *, seconds: int, erase: tuple[str, ...], erase_foreign: bool, as_json: bool
) -> int:
    """Measure a disk at depths 1 to 32, and print it as `latency` of a plan.

    Of a device it only reads. With --erase and the device's name once more it also writes and flushes, and WHAT IS ON THE DEVICE IS LOST.
    Then it also measures what each wal_sync_method of PostgreSQL costs, on ext4. Of a directory it measures that alone, by a file of 16 MB
    there: 80 s at most.
    """
    return measure(name, seconds=seconds, erase=erase, erase_foreign=erase_foreign, as_json=as_json)


def measure(name: str, *, seconds: int, erase: tuple[str, ...], erase_foreign: bool, as_json: bool) -> int:
    """DeviceRefused with every reason where it may not be erased, RequirementMissing without root or a program."""
    from pathlib import Path  # noqa: PLC0415

    from bedplate.cli.printing import print_json  # noqa: PLC0415
    from bedplate.host.requirement import demand, look  # noqa: PLC0415
    from bedplate.model.codec import to_json  # noqa: PLC0415

    program = _program()
    if Path(name).is_dir():
        found = _of_directory(program, Path(name), seconds, erase)
    elif erase:
        demand(look([program.need]))
        found = _erasing(program, name, seconds, erase, erase_foreign=erase_foreign)
    else:
        # A wrong name is said before a program is asked for that it would not need.
        read = _block_device(name)
        demand(look([program.need]))
        found = _reading(program, read, seconds)
    if as_json:
        line = program.plan_line(found.depths) if found.depths else None
        parts = {"measured": tuple(found.depths), "syncs": found.syncs, "left_out": found.left_out}
        print_json({"device": name, "plan": line, **{part: to_json(what) for part, what in parts.items()}})
    else:
        _print(program, found)
    return EXIT_DONE


def _block_device(name: str) -> str:
    """Read alone, so it may be in use; RequirementMissing where it is none, or cannot be read."""
    import os  # noqa: PLC0415
    from pathlib import Path  # noqa: PLC0415

    if not Path(name).is_block_device():
        raise RequirementMissing(f"{name} is not a block device; name a disk, a partition or a directory")
    if not os.access(name, os.R_OK):
        raise RequirementMissing(f"{name} cannot be read; be root")
    return name


def _program() -> DiskMeter:
    """The workload that measures disks by itself."""
    from bedplate import registry  # noqa: PLC0415

    found: DiskMeter = next(iter(registry.parts("measured_disk").values()))
    return found


def _of_directory(program: DiskMeter, directory: Path, seconds: int, erase: tuple[str, ...]) -> _Measured:
    """RequirementMissing where it cannot be written to, or the program is not there."""
    import os  # noqa: PLC0415

    from bedplate.cli.release import own_ledger  # noqa: PLC0415
    from bedplate.host.command import Commands  # noqa: PLC0415

    if erase:
        raise RequirementMissing(f"{directory} is a directory, of which nothing is erased; leave --erase out")
    if not os.access(directory, os.W_OK | os.X_OK):
        raise RequirementMissing(f"{directory} cannot be written to; be its owner or root")
    with own_ledger() as ledger:
        return _Measured(syncs=program.measure_syncs(directory, seconds, ledger, Commands()))


def _reading(program: DiskMeter, device: str, seconds: int) -> _Measured:
    from bedplate.host.command import Commands  # noqa: PLC0415

    return _Measured(
        program.measure(device, program.reads_alone, seconds, Commands()),
        left_out=(
            "writes and flushes were not measured: only --erase NAME may overwrite the device; a plan needs a time for each",
        ),
    )


def _erasing(
    program: DiskMeter, name: str, seconds: int, erase: tuple[str, ...], *, erase_foreign: bool
) -> _Measured:
    from bedplate.cli.release import erased_device, mounted, own_ledger  # noqa: PLC0415
    from bedplate.host.command import Commands  # noqa: PLC0415
    from bedplate.model.visit import ScratchDevice  # noqa: PLC0415

    commands = Commands()
    scratch = ScratchDevice(device=name, erase=erase, erase_foreign=erase_foreign)
    with own_ledger() as ledger, erased_device(scratch, ledger, commands) as taken:
        depths = program.measure(taken.path, program.all_kinds, seconds, commands)
        try:
            with mounted(taken, ledger, commands) as target:
                return _Measured(depths, program.measure_syncs(target, seconds, ledger, commands))
        except RequirementMissing as error:
            return _Measured(depths, left_out=error.reasons)


def _print(program: DiskMeter, found: _Measured) -> None:
    from bedplate.cli.printing import say  # noqa: PLC0415

    if found.depths:
        say(f"{'':7}depth   median us      p99 us       per s")
    for each in found.depths:
        say(f"{each.kind:7}{each.depth:5}  {each.p50_us:10,.0f}  {each.p99_us:10,.0f}  {each.per_s:10,.0f}")
    if found.syncs is not None:
        say("")
        for line in found.syncs.lines:
            say(line)
    if found.depths:
        say("")
        say("[scratch_device]")
        say(program.plan_line(found.depths))
    for reason in found.left_out:
        say(reason)
