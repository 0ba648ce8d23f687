"""`bedplate device measure`: a real disk as the line of a plan.

As in `app.py`, only click and the standard library are imported before a command is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import click

from bedplate.cli.options import AS_JSON, ERASE, ERASE_FOREIGN
from bedplate.errors import EXIT_DONE, RequirementMissing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bedplate.host.command import Commands
    from bedplate.host.requirement import Need


class DepthFound(Protocol):
    """What requests took at one depth."""

    @property
    def kind(self) -> str:
        """`read`, `write` or `flush`."""
        ...

    @property
    def depth(self) -> int:
        """So many were under way."""
        ...

    @property
    def p50_us(self) -> float:
        """Half of them took less."""
        ...

    @property
    def p99_us(self) -> float:
        """One in a hundred took more."""
        ...

    @property
    def per_s(self) -> float:
        """How many in a second."""
        ...


class DiskMeter(Protocol):
    """A program that measures disks: a role of a workload's folder."""

    need: Need
    reads_alone: tuple[str, ...]
    all_kinds: tuple[str, ...]

    def measure(
        self, device: str, kinds: Sequence[str], seconds: int, commands: Commands
    ) -> Sequence[DepthFound]:
        """At several depths."""
        ...

    def plan_line(self, found: Sequence[DepthFound]) -> str:
        """As a plan has it."""
        ...


@click.group(name="device")
def device() -> None:
    """What a disk takes to answer."""


@device.command(name="measure")
@click.argument("name", metavar="DEVICE", help="a disk or a partition")
@click.option("--seconds", metavar="N", type=click.IntRange(1, 600), default=10, help="for each depth")
@ERASE
@ERASE_FOREIGN
@AS_JSON
def measure_command(
    name: str, *, seconds: int, erase: tuple[str, ...], erase_foreign: bool, as_json: bool
) -> int:
    """Measure a disk at depths 1 to 32, and print it as `latency` of a plan.

    It only reads. With --erase and the device's name once more it also writes and flushes, and WHAT IS ON THE DEVICE IS LOST.
    """
    return measure(name, seconds=seconds, erase=erase, erase_foreign=erase_foreign, as_json=as_json)


def measure(name: str, *, seconds: int, erase: tuple[str, ...], erase_foreign: bool, as_json: bool) -> int:
    """DeviceRefused with every reason where it may not be erased, RequirementMissing without root or the program."""
    from bedplate.cli.printing import print_json  # noqa: PLC0415
    from bedplate.host.command import Commands  # noqa: PLC0415
    from bedplate.host.requirement import look  # noqa: PLC0415
    from bedplate.model.codec import to_json  # noqa: PLC0415

    program = _program()
    if reasons := tuple(need.sentence for need in look([program.need]) if not need.found):
        raise RequirementMissing(*reasons)
    found: Sequence[DepthFound]
    if erase:
        found = _erasing(program, name, seconds, erase, erase_foreign=erase_foreign)
    else:
        found = program.measure(_block_device(name), program.reads_alone, seconds, Commands())
    if as_json:
        print_json({"device": name, "plan": program.plan_line(found), "measured": to_json(tuple(found))})
    else:
        _print(found, program.plan_line(found), erased=bool(erase))
    return EXIT_DONE


def _block_device(name: str) -> str:
    """Read alone, so it may be in use; RequirementMissing where it is none, or cannot be read."""
    import os  # noqa: PLC0415
    from pathlib import Path  # noqa: PLC0415

    if not Path(name).is_block_device():
        raise RequirementMissing(f"{name} is not a block device; name a disk or a partition")
    if not os.access(name, os.R_OK):
        raise RequirementMissing(f"{name} cannot be read; be root")
    return name


def _program() -> DiskMeter:
    """The workload that measures disks by itself."""
    from bedplate import registry  # noqa: PLC0415

    found: DiskMeter = next(iter(registry.parts("measured_disk").values()))
    return found


def _erasing(
    program: DiskMeter, name: str, seconds: int, erase: tuple[str, ...], *, erase_foreign: bool
) -> Sequence[DepthFound]:
    import os  # noqa: PLC0415
    from pathlib import Path  # noqa: PLC0415

    from bedplate.host.command import Commands  # noqa: PLC0415
    from bedplate.host.devices.scratch_device import prepare, release_device  # noqa: PLC0415
    from bedplate.host.ledger import Ledger  # noqa: PLC0415
    from bedplate.host.lock import device_lock  # noqa: PLC0415
    from bedplate.host.state import state_directory  # noqa: PLC0415
    from bedplate.model.visit import ScratchDevice  # noqa: PLC0415

    commands = Commands()
    scratch = ScratchDevice(device=name, erase=erase, erase_foreign=erase_foreign)
    with (
        device_lock(state_directory(), name, study="device measure"),
        Ledger.open(state_directory(), f"{os.getpid()}-measure") as ledger,
    ):
        taken = prepare(scratch, ledger=ledger, commands=commands, directory=Path("/"))
        try:
            return program.measure(taken.path, program.all_kinds, seconds, commands)
        finally:
            release_device(taken, ledger=ledger, commands=commands)


def _print(found: Sequence[DepthFound], line: str, *, erased: bool) -> None:
    from bedplate.cli.printing import say  # noqa: PLC0415

    say(f"{'':7}depth   median us      p99 us       per s")
    for each in found:
        say(f"{each.kind:7}{each.depth:5}  {each.p50_us:10,.0f}  {each.p99_us:10,.0f}  {each.per_s:10,.0f}")
    say("")
    say("[scratch_device]")
    say(line)
    if not erased:
        say(
            "writes and flushes were not measured: only --erase NAME may overwrite the device; a plan needs a time for each"
        )
