"""What a machine is, as far as a figure depends on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bedplate.model.cell import digest
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
    def known(self) -> tuple[tuple[str, str], ...]:
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
        """Digest of what must not change within a study; the kernel is compared apart."""
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
