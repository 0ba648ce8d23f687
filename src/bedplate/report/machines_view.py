"""The machines of a page's studies side by side: a row for each fact, a column for each machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.report.compared import study_names
from bedplate.units import format_size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bedplate.model.machine import Machine
    from bedplate.report.overview import Overview


@dataclass(frozen=True)
class MachineFact:
    """One fact of every machine, in their order; None where a machine does not have it."""

    name: str
    values: tuple[str | None, ...]

    @property
    def differs(self) -> bool:
        """Whether it tells the machines apart."""
        return len(set(self.values)) > 1


@dataclass(frozen=True)
class MachinesView:
    """`heads` name the studies of each machine; `details` are facts by kind."""

    heads: tuple[tuple[str, ...], ...]
    facts: tuple[MachineFact, ...]
    details: tuple[tuple[str, tuple[MachineFact, ...]], ...]


def machines_view(overviews: Sequence[Overview]) -> MachinesView:
    """Studies of one machine, unchanged, share a column."""
    machines: list[tuple[Machine, list[str]]] = []
    names = study_names(overviews)
    for number, found in enumerate(overviews):
        own = _whole(found.study.machine)
        name = names[number] if len(overviews) > 1 else found.study.facts.title
        known = next((of for machine, of in machines if _whole(machine) == own), None)
        if known is None:
            machines.append((found.study.machine, [name]))
        else:
            known.append(name)
    every = [machine for machine, _ in machines]
    return MachinesView(
        heads=tuple(tuple(of) for _, of in machines),
        facts=_facts([dict(_of(machine)) for machine in every]),
        details=(
            ("Tools", _facts([machine.tools for machine in every], by_name=True)),
            ("Tunables", _facts([machine.tunables for machine in every], by_name=True)),
        ),
    )


def _whole(machine: Machine) -> tuple[object, ...]:
    """All that is shown: the boot, which is another after each start, is not."""
    return (*_of(machine), dict(machine.tools), dict(machine.tunables))


def _facts(machines: Sequence[Mapping[str, str]], *, by_name: bool = False) -> tuple[MachineFact, ...]:
    names = dict.fromkeys(name for facts in machines for name in facts)
    return tuple(
        MachineFact(name, tuple(facts.get(name) for facts in machines))
        for name in (sorted(names) if by_name else names)
    )


def _of(machine: Machine) -> tuple[tuple[str, str], ...]:
    return (
        ("Host", machine.hostname),
        ("Distribution", machine.distribution),
        ("Kernel", f"{machine.kernel_release} ({machine.architecture})"),
        ("CPU", f"{machine.cpu_model}, {machine.cpu_count} CPUs"),
        ("Memory", f"{format_size(machine.memory_bytes)}, pages of {format_size(machine.page_size_bytes)}"),
        ("Virtualisation", machine.virtualisation or "none found"),
        ("File systems", ", ".join(machine.filesystems)),
        (
            "Control groups",
            f"version {machine.cgroup_version}" if machine.cgroup_version else "no memory limits",
        ),
        ("Pressure (PSI)", "recorded" if machine.pressure_available else "not available"),
        ("Identity", machine.identity),
    )
