"""What a machine is, as far as a figure depends on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bedplate.model.cell import digest
from bedplate.model.devices import DeviceIdentity
from bedplate.units import format_size

NOT_SAID = "unknown"

"""Of a machine's fact in words: the source of an imported study does not say it."""


@dataclass(frozen=True)
class StoredMachine:
    """The machine of a study; of an imported one as far as its source says."""

    hostname: str
    """name of the machine"""
    distribution: str
    """name and version"""
    kernel_release: str
    """`uname -r`"""
    architecture: str
    """`uname -m`"""
    cpu_model: str
    """as the processor calls itself"""
    cpu_count: int | None
    """processors online; null where an imported study's source does not say"""
    memory_bytes: int | None
    """memory of the machine; null as above"""
    page_size_bytes: int | None
    """page of the kernel; null as above"""
    filesystems: tuple[str, ...]
    """types that the kernel has or can load"""
    cgroup_version: int | None
    """1, 2, or null where neither limits memory"""
    pressure_available: bool
    """whether the kernel has PSI"""
    virtualisation: str | None
    """kind of guest or container, null on bare metal"""
    boot_id: str
    """which boot"""
    is_root: bool
    """whether it was read by root"""
    tools: Mapping[str, str] = field(default_factory=dict)
    """program to version line; absent where the program is"""
    tunables: Mapping[str, str] = field(default_factory=dict)
    """kernel settings that figures depend on"""

    @property
    def cpus_words(self) -> str:
        """`Intel …, 8 CPUs`."""
        count = "an unknown number of" if self.cpu_count is None else self.cpu_count
        return f"{self.cpu_model}, {count} CPUs"

    @property
    def memory_words(self) -> str:
        """`16 GiB`; `unknown` where a source does not say."""
        return _size(self.memory_bytes)

    @property
    def page_words(self) -> str:
        """The same of a page of the kernel."""
        return _size(self.page_size_bytes)

    @property
    def stated_facts(self) -> tuple[tuple[str, str], ...]:
        """Heads and words of what the source of an imported study says of its machine; nothing stands for the rest."""
        count = self.cpu_count
        told = (
            ("Distribution", self.distribution),
            ("Kernel", self.kernel_release),
            ("CPU", self.cpus_words if count is not None else self.cpu_model),
            ("Memory", self.memory_words),
        )
        return tuple((head, words) for head, words in told if words != NOT_SAID)

    @property
    def identity(self) -> str:
        """Digest of what must not change within a study: processors, memory and page size; the kernel is compared apart."""
        return digest(
            {
                "architecture": self.architecture,
                "cpu_model": self.cpu_model,
                "cpu_count": self.cpu_count,
                # Firmware and kernels reserve differing slivers; a DIMM more or less is a change.
                "memory_gib": None if self.memory_bytes is None else round(self.memory_bytes / 2**30),
                "page_size_bytes": self.page_size_bytes,
            }
        )


@dataclass(frozen=True)
class Machine(StoredMachine):
    """Facts of a machine, read without root where that is possible."""

    cpu_count: int
    memory_bytes: int
    page_size_bytes: int


def _size(size_bytes: int | None) -> str:
    return NOT_SAID if size_bytes is None else format_size(size_bytes)


# Where results and images stand on a node while a visit lives: a disk of the node's own.
LOCAL_DIRECTORY = "/var/tmp"  # noqa: S108 -- a folder of bedplate's own is made in it

# How long a controller that does not answer is waited for.
CONTROLLER_DEADLINE_S = 86400.0

# In what nodes may differ, as plans call it, and what of a node's facts is meant.
DIFFERING: Mapping[str, tuple[str, ...]] = {
    "cpu": ("cpu_model", "cpu_count", "architecture", "page_size"),
    "memory": ("memory_gib",),
    "kernel": ("kernel",),
    "distribution": ("distribution",),
    "firmware": ("firmware", "device_firmware", "journal_device_firmware"),
    "device": ("device_model", "device_size", "journal_device_model"),
}


@dataclass(frozen=True)
class Fleet:
    """`[slurm]`: which nodes, how jobs are asked for, and what stands on the nodes.

    A repetition runs whole on one node: repetition r on node (r - 1) modulo their number. `time_s` is
    the limit of one job, None for one that is reckoned. `devices` are scratch devices by node, in place of
    the plan's, and `journal_devices` those of external journals. `gres` is a generic resource that every job asks for. `differing` are the keys of `DIFFERING`
    in which nodes may differ.
    """

    nodes: tuple[str, ...]
    partition: str | None = None
    constraint: str | None = None
    account: str | None = None
    gres: str | None = None
    time_s: float | None = None
    devices: Mapping[str, str] = field(default_factory=dict)
    local_directory: str = LOCAL_DIRECTORY
    controller_deadline_s: float = CONTROLLER_DEADLINE_S
    differing: tuple[str, ...] = ()
    journal_devices: Mapping[str, str] = field(default_factory=dict)

    @property
    def deciding(self) -> Mapping[str, object]:
        """What decides a result: how a job is asked for does not, and may change while a study runs."""
        # What came later stands here only where it was asked for: a study of before keeps its digest.
        later = {"journal_devices": dict(self.journal_devices)} if self.journal_devices else {}
        return {
            "nodes": self.nodes,
            "devices": dict(self.devices),
            "local_directory": self.local_directory,
            **later,
        }

    def node_of(self, repetition: int) -> str:
        """The node that a repetition, counted from 1, runs on."""
        return self.nodes[(repetition - 1) % len(self.nodes)]


@dataclass(frozen=True)
class NodeFacts:
    """What a node is, found by a job on it before the first visit; None for what it does not tell.

    `problems` are sentences: why no visit can run there. `device` and `journal_device` are what its visits erase, None for images
    and in older studies.
    """

    node: str
    """the node, as Slurm calls it"""
    machine: Machine
    firmware: str | None = None
    """the machine's own"""
    device_model: str | None = None
    """the scratch device; empty for an image file, and where it does not tell"""
    device_firmware: str | None = None
    """its firmware"""
    device_size_bytes: int | None = None
    """its size"""
    problems: tuple[str, ...] = ()
    journal_device_model: str | None = None
    """the device of external journals, where there is one"""
    journal_device_firmware: str | None = None
    """its firmware"""
    device: DeviceIdentity | None = None
    journal_device: DeviceIdentity | None = None

    @property
    def compared_facts(self) -> Mapping[str, str]:
        """What nodes are held against each other by, in words; what is not known is left out."""
        machine = self.machine
        known = {
            "cpu_model": machine.cpu_model,
            "cpu_count": str(machine.cpu_count),
            "architecture": machine.architecture,
            "page_size": str(machine.page_size_bytes),
            # Firmware and kernels reserve differing slivers.
            "memory_gib": str(round(machine.memory_bytes / 2**30)),
            "kernel": machine.kernel_release,
            "distribution": machine.distribution,
            "firmware": self.firmware,
            "device_model": self.device_model,
            "device_firmware": self.device_firmware,
            "journal_device_model": self.journal_device_model,
            "journal_device_firmware": self.journal_device_firmware,
            "device_size": None if self.device_size_bytes is None else str(self.device_size_bytes),
        }
        return {name: value for name, value in known.items() if value}

    @property
    def identity(self) -> str:
        """Digest of what must not change on a node within a study."""
        return digest({"machine": self.machine.identity, "kernel": self.machine.kernel_release})


def fleet_identity(node_facts: Mapping[str, NodeFacts]) -> str:
    """What stands for the machine in every record of a fleet's study: the same nodes, the same digest."""
    return digest({node: facts.machine.identity for node, facts in sorted(node_facts.items())})


def unwanted_differences(node_facts: Mapping[str, NodeFacts], differing: tuple[str, ...]) -> tuple[str, ...]:
    """A sentence for everything in which nodes differ although the plan does not say that they may."""
    sentences = []
    for name, keys in DIFFERING.items():
        if name in differing:
            continue
        for key in keys:
            nodes: dict[str, list[str]] = {}
            for node, facts in node_facts.items():
                if key in facts.compared_facts:
                    nodes.setdefault(facts.compared_facts[key], []).append(node)
            if len(nodes) > 1:
                words = "; ".join(f"{value} ({', '.join(which)})" for value, which in nodes.items())
                sentences.append(
                    f"the nodes differ in {key.replace('_', ' ')}: {words}; if that is wanted, write "
                    f'differing = ["{name}"] in [slurm], else leave nodes out'
                )
    return tuple(sentences)


def common_machine(node_facts: Mapping[str, NodeFacts]) -> Machine:
    """The machine that all nodes can stand for: what every one of them has. At least one node."""
    machines = [facts.machine for facts in node_facts.values()]
    first = machines[0]
    shared = set.intersection(*(set(machine.filesystems) for machine in machines))
    tunables = {
        name: value
        for name, value in first.tunables.items()
        if all(machine.tunables.get(name) == value for machine in machines)
    }
    return Machine(
        hostname=first.hostname,
        distribution=first.distribution,
        kernel_release=first.kernel_release,
        architecture=first.architecture,
        cpu_model=first.cpu_model,
        cpu_count=min(machine.cpu_count for machine in machines),
        memory_bytes=min(machine.memory_bytes for machine in machines),
        page_size_bytes=first.page_size_bytes,
        filesystems=tuple(kind for kind in first.filesystems if kind in shared),
        cgroup_version=first.cgroup_version,
        pressure_available=all(machine.pressure_available for machine in machines),
        virtualisation=first.virtualisation,
        boot_id=first.boot_id,
        is_root=all(machine.is_root for machine in machines),
        tools=first.tools,
        tunables=tunables,
    )
