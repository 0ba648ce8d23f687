"""The machines of a page's studies side by side: a row for each fact, a column for each machine or kind of node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bedplate.analysis.comparison.compared import study_names
from bedplate.analysis.fleet import folded, node_kinds
from bedplate.units import format_size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bedplate.analysis.overview import Overview
    from bedplate.model.fleet import NodeFacts
    from bedplate.model.machine import StoredMachine


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
    """Studies of one machine, unchanged, share a column, and so do nodes of a fleet that are alike."""
    names = study_names(overviews)
    columns: list[_Column] = []
    for number, found in enumerate(overviews):
        for column in _columns(found, names[number] if len(overviews) > 1 else None):
            known = next((of for of in columns if of.whole == column.whole), None)
            if known is None:
                columns.append(column)
            else:
                known.names.extend(column.names)
    return MachinesView(
        heads=tuple(tuple(of.names) for of in columns),
        facts=_facts([of.facts for of in columns]),
        details=(
            ("Tools", _facts([of.machine.tools for of in columns], by_name=True)),
            ("Tunables", _facts([of.machine.tunables for of in columns], by_name=True)),
        ),
    )


@dataclass(frozen=True)
class _Column:
    names: list[str]
    machine: StoredMachine
    facts: Mapping[str, str]

    @property
    def whole(self) -> tuple[object, ...]:
        """All that is shown: the boot, which is another after each start, is not."""
        return (dict(self.facts), dict(self.machine.tools), dict(self.machine.tunables))


def _columns(found: Overview, name: str | None) -> list[_Column]:
    """One for a machine, one for each kind of node of a fleet; `name` where there are other studies."""
    machine = found.study.machine
    kinds = node_kinds(found.study)
    if not kinds:
        facts = _of_source(machine) if found.study.facts.is_imported else dict(_of(machine))
        return [_Column([name or found.study.facts.title], machine, facts)]
    before = "" if name is None else f"{name}: "
    return [
        _Column(
            [f"{before}node{'s' * (len(kind.nodes) > 1)} {folded(kind.nodes)}"],
            kind.facts.machine,
            {**dict(_of(kind.facts.machine)), "Host": folded(kind.hosts), **_of_node(kind.facts)},
        )
        for kind in kinds
    ]


def _of_source(machine: StoredMachine) -> Mapping[str, str]:
    """What the source of an imported study says of its machine: nobody looked for the rest, so nothing is said of it."""
    return {"Host": machine.hostname, **dict(machine.known), "Identity": machine.identity}


def _of_node(facts: NodeFacts) -> Mapping[str, str]:
    """What is known of a node beyond its machine; of an image file's disk nothing is."""
    size = facts.device_size_bytes
    known = {
        "Firmware": facts.firmware,
        "Scratch device": _disk(
            facts.device_model, facts.device_firmware, None if size is None else format_size(size)
        ),
        "Journal device": _disk(facts.journal_device_model, facts.journal_device_firmware),
    }
    return {name: value for name, value in known.items() if value}


def _disk(model: str | None, firmware: str | None, size: str | None = None) -> str:
    words = (model, f"firmware {firmware}" if firmware else None, size)
    return ", ".join(word for word in words if word)


def _facts(machines: Sequence[Mapping[str, str]], *, by_name: bool = False) -> tuple[MachineFact, ...]:
    names = dict.fromkeys(name for facts in machines for name in facts)
    return tuple(
        MachineFact(name, tuple(facts.get(name) for facts in machines))
        for name in (sorted(names) if by_name else names)
    )


def _of(machine: StoredMachine) -> tuple[tuple[str, str], ...]:
    return (
        ("Host", machine.hostname),
        ("Distribution", machine.distribution),
        ("Kernel", f"{machine.kernel_release} ({machine.architecture})"),
        ("CPU", machine.cpus_words),
        ("Memory", f"{machine.memory_words}, pages of {machine.page_words}"),
        ("Virtualisation", machine.virtualisation or "none found"),
        ("File systems", ", ".join(machine.filesystems)),
        (
            "Control groups",
            f"version {machine.cgroup_version}" if machine.cgroup_version else "no memory limits",
        ),
        ("Pressure (PSI)", "recorded" if machine.pressure_available else "not available"),
        ("Identity", machine.identity),
    )
