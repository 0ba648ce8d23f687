"""`bedplate doctor`: what this machine can run, what is missing, the fix."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bedplate.campaign.planning import own_plans, planned_study
from bedplate.cli.kernel_answers import KernelAnswers, ask_kernel
from bedplate.cli.printing import print_json, say
from bedplate.errors import EXIT_DONE, EXIT_REQUIREMENT_MISSING
from bedplate.host.cache import cache_directory
from bedplate.model.codec import to_json
from bedplate.model.filesystem import TRAITS
from bedplate.units import format_size

if TYPE_CHECKING:
    from bedplate.host.requirement import Requirement
    from bedplate.model.machine import Machine


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


def _guests() -> dict[str, Any]:
    """What guests would have: QEMU, the kernels in the cache, and those that ZFS is built for."""
    from bedplate.executors.qemu.command_line import PROGRAM  # noqa: PLC0415
    from bedplate.executors.qemu.kernels import known_kernels  # noqa: PLC0415
    from bedplate.executors.qemu.zfs_modules import find_zfs  # noqa: PLC0415
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
