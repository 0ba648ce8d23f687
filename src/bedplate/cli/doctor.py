"""`bedplate doctor`: what this machine can run, what is missing, the fix."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from bedplate.campaign.planning import own_plans, planned_study
from bedplate.campaign.preparation import server_choice
from bedplate.cli.printing import print_json, say
from bedplate.errors import EXIT_DONE, EXIT_REQUIREMENT_MISSING
from bedplate.host.files import cache_directory
from bedplate.host.requirement import Requirement
from bedplate.installation import COMMAND
from bedplate.model.cell import FilesystemLevels
from bedplate.model.codec import to_json
from bedplate.model.filesystem import TRAITS
from bedplate.model.levels import as_in_a_plan
from bedplate.model.machine import Machine
from bedplate.units import format_size


@dataclass(frozen=True)
class KernelAnswers:
    """Usual levels in the order of the types, and the answers by levels: empty where they are taken.

    Levels without an answer were not tried: that needs root, the type's tools, and a loop device.
    """

    asked: tuple[FilesystemLevels, ...]
    answers: Mapping[FilesystemLevels, tuple[str, ...]]

    @property
    def unknown(self) -> tuple[FilesystemLevels, ...]:
        """Levels of which it is not known whether they are taken."""
        return tuple(levels for levels in self.asked if levels not in self.answers)

    @property
    def refused(self) -> tuple[FilesystemLevels, ...]:
        """Levels that cannot be had here."""
        return tuple(levels for levels in self.asked if self.answers.get(levels))

    def document(self) -> list[dict[str, Any]]:
        """One entry per levels that were asked; `taken` is null where it is not known."""
        return [
            {
                "name": label(levels),
                "levels": to_json(levels),
                "taken": None if levels not in self.answers else not self.answers[levels],
                "reasons": list(self.answers.get(levels, ())),
            }
            for levels in self.asked
        ]

    def lines(self, *, is_root: bool) -> Iterator[str]:
        """The same for a person: refusals with their reasons, then how many are taken or not known."""
        for reasons, refused in groupby(self.refused, key=self.answers.__getitem__):
            yield f"    refused    {'; '.join(map(label, refused))}"
            yield from (f"               {line}" for reason in reasons for line in reason.splitlines())
        taken = len(self.answers) - len(self.refused)
        yield f"    taken      {taken} of {len(self.asked)} usual levels"
        if self.unknown:
            kinds = ", ".join(dict.fromkeys(levels.type for levels in self.unknown))
            why = (
                "no trial could be made: is a tool or a loop device missing?"
                if is_root
                else f"trying needs root: sudo {COMMAND} doctor"
            )
            yield f"    not known  {len(self.unknown)} ({kinds}); {why}"


def ask_kernel(machine: Machine) -> KernelAnswers:
    """The answers that are known; as root, all that can be found by trying on a small image."""
    from bedplate.campaign.planning import find_refusals, known_refusals, usual_levels  # noqa: PLC0415

    asked = usual_levels(machine)
    if machine.is_root:
        return KernelAnswers(asked, find_refusals(asked, machine, tell=_tell))
    return KernelAnswers(asked, known_refusals(asked, machine))


def label(levels: FilesystemLevels) -> str:
    """`ext4 data=journal`, `xfs 512 B blocks`; the type alone where nothing else is asked."""
    parts = [levels.type]
    if levels.block_size_bytes is not None:
        parts.append(f"{format_size(levels.block_size_bytes)} blocks")
    parts += [f"{name}={as_in_a_plan(value)}" for name, value in levels.features.items()]
    if levels.barrier is not None:
        parts.append("barrier" if levels.barrier else "nobarrier")
    if levels.journal is not None:
        parts.append(f"journal={levels.journal}")
    return " ".join(parts)


def _tell(done: int, total: int) -> None:
    """On standard error, as the answer itself may be read by a program."""
    if done == 0:
        print(f"trying {total} file systems on this kernel, a fraction of a second each", file=sys.stderr)


def doctor(*, as_json: bool) -> int:
    """Print the findings; exit 3 when something that the quick plan needs is missing."""
    from bedplate.campaign.preparation import requirements_of  # noqa: PLC0415
    from bedplate.host.requirement import install_command, missing, read_os_release  # noqa: PLC0415

    found = planned_study(own_plans() / "quick.toml")
    requirements = requirements_of(planned.cell for planned in found.expansion.cells)
    lacking = missing(requirements)
    command = install_command(lacking, os_release=read_os_release())
    types = {
        kind: next((name for name in traits.kernel_types if name in found.machine.filesystems), None)
        for kind, traits in TRAITS.items()
    }
    answers = ask_kernel(found.machine)
    if as_json:
        print_json(_document(found.machine, requirements, types, answers, command))
    else:
        _print(found.machine, requirements, types, answers, command)
    return EXIT_REQUIREMENT_MISSING if lacking else EXIT_DONE


def _document(
    machine: Machine,
    requirements: tuple[Requirement, ...],
    types: dict[str, str | None],
    answers: KernelAnswers,
    command: tuple[str, ...] | None,
) -> dict[str, Any]:
    return {
        "machine": to_json(machine),
        "filesystems": {kind: driver is not None for kind, driver in types.items()},
        "levels": answers.document(),
        "guests": _guests(),
        "server": to_json(server_choice().levels(None)),
        "requirements": to_json(requirements),
        "fix": None if command is None else list(command),
    }


def _print(
    machine: Machine,
    requirements: tuple[Requirement, ...],
    types: dict[str, str | None],
    answers: KernelAnswers,
    command: tuple[str, ...] | None,
) -> None:
    say(f"machine       {machine.cpu_count} x {machine.cpu_model}, {format_size(machine.memory_bytes)}")
    say(f"system        {machine.distribution}, kernel {machine.kernel_release}")
    here = "no: measuring here needs root; start with sudo, or measure in a guest (--executor qemu)"
    say(f"root          {'yes' if machine.is_root else here}")
    limits = f"cgroup v{machine.cgroup_version}" if machine.cgroup_version else "no cgroups"
    say(f"limits        {limits}: {_limits(machine)}")
    say(
        f"pressure      {'yes' if machine.pressure_available else 'not in this kernel: those figures are absent'}"
    )
    say(f"server        {_server_line()}")
    say(f"guests        {_guests_line()}")
    say("file systems")
    for kind, driver in types.items():
        said = (
            "not in this kernel"
            if driver is None
            else "yes"
            if driver == kind
            else f"yes, by {driver}'s driver"
        )
        say(f"    {kind:<10} {said}")
    say("what it takes of what plans usually ask")
    for line in answers.lines(is_root=machine.is_root):
        say(line)
    say("needed for plans/quick.toml")
    for item in requirements:
        say(f"    {'found  ' if item.found else 'MISSING'} {item.name:<24} {item.reason}")
    if command is not None:
        sudo = "" if os.geteuid() == 0 else "sudo "
        say(f"fix: {sudo}{' '.join(command)}")
    elif all(item.found for item in requirements):
        say("nothing is missing")


def _server_line() -> str:
    """What questions run on, as the document has it in `server`."""
    choice = server_choice()
    return f"questions run on {choice.words(choice.levels(None))}; --server chooses another"


def _guests() -> dict[str, Any]:
    """What guests would have: QEMU, the kernels in the cache, and those that ZFS is built for."""
    from bedplate.executors.qemu.guest import PROGRAM  # noqa: PLC0415
    from bedplate.executors.qemu.kernels import known_kernels  # noqa: PLC0415
    from bedplate.executors.qemu.zfs import find_zfs  # noqa: PLC0415
    from bedplate.host.requirement import find_tool  # noqa: PLC0415

    kernels = known_kernels(cache_directory())
    return {
        "qemu": find_tool(PROGRAM) is not None,
        "kernels": [kernel.release for kernel in kernels],
        "zfs": [kernel.release for kernel in kernels if find_zfs(kernel, cache_directory()) is not None],
    }


def _guests_line() -> str:
    found = _guests()
    if not found["qemu"]:
        return "no QEMU (package qemu-system-x86)"
    kernels = [
        f"{release} (with ZFS)" if release in found["zfs"] else release for release in found["kernels"]
    ]
    return f"QEMU; kernels in the cache: {', '.join(kernels) or 'none yet, a plan fetches what it asks for'}"


def _limits(machine: Machine) -> str:
    if machine.cgroup_version is None:
        return "memory and throttle cannot be used"
    if machine.cgroup_version == 1 and not Path("/sys/fs/cgroup/memory").is_dir():
        return "the memory controller is not mounted"
    return "memory and throttle can be used"
